//! The choice of subnets.

use super::*;

fn subnet(id: &str, zone: &str, traits: u8) -> Subnet {
    Subnet {
        id: id.into(),
        zone: zone.into(),
        cidr: String::new(),
        name: format!("name-{zone}"),
        traits: Traits(traits | Traits::WHOLE_ZONE),
    }
}

#[test]
fn subnets_are_one_per_zone_and_public_for_internet_facing() {
    let all = [
        subnet("s-3", "b", Traits::PUBLIC),
        subnet("s-2", "a", Traits::PUBLIC),
        subnet("s-1", "a", 0),
        subnet("s-4", "c", 0),
    ];
    assert_eq!(discover(&all, false, "").unwrap(), ["s-2", "s-3"]);
    assert_eq!(discover(&all, true, "").unwrap(), ["s-1", "s-3", "s-4"]);
}

#[test]
fn role_tag_wins_then_cluster_tag_then_smaller_id() {
    let public = Traits::PUBLIC;
    let mut all = vec![subnet("s-2", "a", public), subnet("s-1", "a", public)];
    assert_eq!(discover(&all, false, "").unwrap(), ["s-1"]);
    all.push(subnet("s-3", "a", public | Traits::OURS));
    assert_eq!(discover(&all, false, "").unwrap(), ["s-3"]);
    all.push(subnet("s-4", "a", public | Traits::FOR_PUBLIC));
    assert_eq!(discover(&all, false, "").unwrap(), ["s-4"]);
    assert_eq!(
        discover(&all, true, "").unwrap(),
        ["s-3"],
        "the role for the Internet says nothing about internal ones"
    );
    all.push(subnet("s-5", "a", Traits::FOR_INTERNAL));
    assert_eq!(discover(&all, true, "").unwrap(), ["s-5"]);
}

#[test]
fn other_clusters_subnets_and_local_zones_are_left_out() {
    let mut local = subnet("s-2", "us-west-2-lax-1a", Traits::PUBLIC);
    local.traits = Traits(Traits::PUBLIC);
    let all = [subnet("s-1", "a", Traits::PUBLIC | Traits::FOREIGN), local];
    for internal in [false, true] {
        assert!(
            matches!(
                discover(&all, internal, ""),
                Err(Failure {
                    kind: FailureKind::Invalid,
                    ..
                })
            ),
            "{internal}"
        );
    }
}

#[test]
fn annotation_takes_ids_or_names_and_reports_wrong_ones() {
    let all = [subnet("s-1", "a", 0), subnet("s-2", "b", 0), subnet("s-3", "b", 0)];
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(named(&all, &texts(&["s-2", "name-a"])).unwrap(), ["s-2", "s-1"]);
    let Err(Failure {
        kind: FailureKind::Invalid,
        message: text,
        ..
    }) = named(&all, &texts(&["s-9", "name-b", "s-1"]))
    else {
        panic!("they were taken");
    };
    assert!(
        text.contains("no subnet s-9") && text.contains("several subnets are called name-b"),
        "{text}"
    );
}

#[test]
fn configured_subnet_counts_only_where_all_are_foreign() {
    let foreign = |id: &str, traits| subnet(id, "a", traits | Traits::FOREIGN);
    let all = [
        foreign("s-1", 0),
        foreign("s-2", Traits::PUBLIC),
        foreign("s-3", Traits::PUBLIC),
    ];
    assert_eq!(discover(&all, false, "s-3").unwrap(), ["s-3"]);
    assert_eq!(discover(&all, true, "s-1").unwrap(), ["s-1"]);
    for fallback in ["s-1", "s-9", ""] {
        let refused = discover(&all, false, fallback);
        assert!(
            matches!(&refused, Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("no suitable subnets")),
            "{fallback}: {refused:?}"
        );
    }
    // One subnet without another cluster's tag, but private: no reason to take a private or a foreign one for the Internet.
    let mixed = [subnet("s-1", "a", 0), foreign("s-3", Traits::PUBLIC)];
    for fallback in ["s-1", "s-3"] {
        assert!(discover(&mixed, false, fallback).is_err(), "{fallback}");
    }
}
