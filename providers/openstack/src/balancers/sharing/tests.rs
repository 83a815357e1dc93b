//! Whose what is.

use super::*;

const NAME: &str = "kube_service_c_default_web";
const OTHER: &str = "kube_service_c_default_api";

fn tags(tags: &[&str]) -> Vec<String> {
    tags.iter().map(|tag| (*tag).into()).collect()
}

fn balancer(name: &str, with: &[&str]) -> LoadBalancer {
    LoadBalancer {
        id: "lb-1".into(),
        name: name.into(),
        tags: tags(with),
        ..LoadBalancer::default()
    }
}

fn claim(balancer: &LoadBalancer, served: bool) -> Claim {
    Claim::new(
        NAME,
        &Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001"),
        balancer,
        served,
    )
}

#[test]
fn owner_is_found_by_current_and_former_name() {
    assert!(claim(&balancer(NAME, &[]), false).owner);
    assert!(claim(&balancer("a1bf6e8a36f0a4d3e9a3c00000000000", &[]), false).owner);
    assert!(!claim(&balancer(OTHER, &[NAME]), false).owner);
}

#[test]
fn what_has_no_tag_is_the_owners() {
    let owner = claim(&balancer(NAME, &[]), false);
    assert!(owner.holds(&[]) && owner.holds(&tags(&["x", NAME])) && !owner.holds(&tags(&[OTHER])));
    let sharer = claim(&balancer(OTHER, &[OTHER]), false);
    assert!(!sharer.holds(&[]) && sharer.holds(&tags(&[NAME])));
}

#[test]
fn tags_of_people_and_of_other_services_stay() {
    let claim = claim(&balancer(NAME, &[]), false);
    assert_eq!(
        claim.with_tag(&tags(&["mine", OTHER])),
        Some(tags(&["mine", OTHER, NAME]))
    );
    assert_eq!(claim.with_tag(&tags(&[NAME])), None);
    assert_eq!(claim.without_tag(&tags(&["mine", NAME, OTHER])), tags(&["mine", OTHER]));
    assert_eq!(claim.others(&tags(&["mine", NAME, OTHER])), [OTHER]);
}

#[test]
fn shared_balancer_goes_with_last_service_unless_manual() {
    let goes = |name: &str, with: &[&str]| {
        let balancer = balancer(name, with);
        claim(&balancer, false).takes_it_along(&balancer)
    };
    assert!(goes(NAME, &[NAME]) && goes(OTHER, &[NAME]) && goes(NAME, &["mine"]));
    assert!(!goes(NAME, &[NAME, OTHER]) && !goes("by-hand", &[NAME]));
}

#[test]
fn renamed_cluster_finds_its_own_only_if_it_served() {
    let old = "kube_service_old_default_web";
    let balancer = balancer(old, &[old, OTHER]);
    let known = claim(&balancer, true);
    assert_eq!((known.former.as_deref(), known.owner), (Some(old), true));
    assert_eq!(known.with_tag(&balancer.tags), Some(tags(&[OTHER, NAME])));
    assert_eq!(
        known.renamed("pool_0_kube_service_old_default_web").as_deref(),
        Some("pool_0_kube_service_c_default_web")
    );
    assert_eq!(known.renamed("pool_0_kube_service_c_default_web"), None);
    let namesake = claim(&balancer, false);
    assert_eq!((namesake.former, namesake.owner), (None, false));
}

#[test]
fn sharing_needs_tags_room_and_a_public_service() {
    let shared = balancer(OTHER, &[OTHER]);
    let stranger = claim(&shared, false);
    assert_eq!(check(&stranger, &shared, false, true, 2), Ok(()));
    let why = |internal, tags, most| {
        check(&stranger, &shared, internal, tags, most)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(why(false, false, 2).contains("no tags"));
    assert!(why(true, true, 2).contains("internal"));
    assert!(
        why(false, true, 1)
            .contains("shared by 1 Services already (kube_service_c_default_api) and max-shared-lb is 1")
    );
    let own = balancer(NAME, &[NAME, OTHER]);
    let public_for_others = check(&claim(&own, false), &own, true, true, 2).unwrap_err();
    assert!(
        public_for_others.message().contains("internal"),
        "the owner cannot take the others' address away"
    );
    let alone = balancer(NAME, &[NAME]);
    assert_eq!(check(&claim(&alone, false), &alone, true, true, 2), Ok(()));
    let member = balancer(OTHER, &[OTHER, NAME]);
    assert_eq!(
        check(&claim(&member, false), &member, false, true, 1),
        Ok(()),
        "who is in stays in"
    );
}

#[test]
fn foreign_ports_are_reported_together() {
    let listener = |port, protocol: &str, with: &[&str]| Listener {
        id: format!("l-{port}"),
        port,
        protocol: protocol.into(),
        tags: tags(with),
        ..Listener::default()
    };
    let listeners = [
        listener(80, "HTTP", &[OTHER]),
        listener(81, "TCP", &[]),
        listener(53, "UDP", &[OTHER]),
        listener(82, "TCP", &[NAME]),
    ];
    let sharer = claim(&balancer(OTHER, &[OTHER]), false);
    let wanted = [80, 81, 53, 82].map(|port| WantedPort {
        protocol: "TCP",
        port,
        ..WantedPort::default()
    });
    let failure = check_ports(&sharer, &wanted, &listeners).unwrap_err();
    assert_eq!(
        failure.message(),
        "the load balancer's ports are taken: HTTP port 80 is listener l-80 of kube_service_c_default_api; \
         TCP port 81 is listener l-81 of somebody else"
    );
    assert_eq!(check_ports(&sharer, &wanted[2..], &listeners), Ok(()));
}
