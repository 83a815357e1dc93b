//! Forms of provider ids, how servers are requested, and what they mean.

use super::*;

fn node(provider_id: &str) -> NodeRef {
    NodeRef::named("n").with_provider_id(provider_id)
}

#[test]
fn every_form_of_provider_id_that_upstream_takes_is_taken() {
    for form in ["openstack:///u-1", "openstack://north/u-1", "/u-1", "north/u-1"] {
        assert_eq!(key(&node(form), Some("north")), Ok(Key::Id("u-1")), "{form}");
    }
    assert_eq!(key(&NodeRef::named("n"), None), Ok(Key::Name("n")));
    assert_eq!(key(&node(""), None), Ok(Key::Name("n")));
}

#[test]
fn ids_of_other_regions_and_clouds_are_refused_with_the_id() {
    for (form, region, word) in [
        ("openstack://south/u-1", Some("north"), "region south"),
        ("openstack://south/u-1", None, "not set"),
        ("aws:///z/i-1", Some("north"), "aws:///z/i-1"),
        ("openstack://u-1", Some("north"), "openstack:///ID"),
        ("openstack:///", Some("north"), "openstack:///ID"),
        ("openstack:///a/b", Some("north"), "openstack:///ID"),
    ] {
        let node = node(form);
        let Err(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) = key(&node, region)
        else {
            panic!("{form}")
        };
        assert!(text.contains(word) && text.contains(form), "{text}");
    }
}

#[test]
fn few_servers_are_read_singly_and_many_by_listing() {
    assert!(is_few(3, None));
    assert!(!is_few(4, None) && !is_few(4, Some(4)) && is_few(4, Some(5)));
}

#[test]
fn type_is_flavor_name_or_its_id_if_no_label() {
    let flavors = [
        ("m1 large!".to_owned(), "7".to_owned()),
        ("m1.small".into(), "1".into()),
    ];
    let typed = |name: &str, id: &str| {
        let server = Server {
            flavor_name: name.into(),
            flavor_id: id.into(),
            ..Server::default()
        };
        (needs_flavors(&server), instance_type(&server, &flavors))
    };
    assert_eq!(typed("m1.tiny", ""), (false, Some("m1.tiny".into())));
    assert_eq!(typed("m1 large!", ""), (true, Some("7".into())));
    assert_eq!(
        typed("", "1"),
        (true, Some("m1.small".into())),
        "old versions of Nova give the id alone"
    );
    assert_eq!(typed("", "9"), (true, Some("9".into())));
    assert_eq!(typed("gone !", ""), (true, None));
}

#[test]
fn zone_and_host_become_labels() {
    let server = Server {
        zone: "zone 1 (north)".into(),
        host_id: "ab12".into(),
        flavor_name: "m".into(),
        ..Server::default()
    };
    let told = instance(&server, "openstack:///a".into(), Some("north"), &[]);
    assert_eq!(
        (told.zone.as_deref(), told.region.as_deref()),
        (Some("zone-1-north"), Some("north"))
    );
    assert_eq!(told.labels, [Pair::new("topology.openstack.org/host-id", "ab12")]);
    let bare = instance(&Server::default(), "openstack:///a".into(), None, &[]);
    assert_eq!((bare.zone, bare.region, bare.labels.len()), (None, None, 0));
}
