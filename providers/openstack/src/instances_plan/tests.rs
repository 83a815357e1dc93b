//! Forms of provider ids, what is asked for, and what answers mean.

use super::*;

fn node(provider_id: &str) -> NodeRef {
    NodeRef::named("n").with_provider_id(provider_id)
}

fn server(id: &str, name: &str) -> Server {
    Server {
        id: id.into(),
        name: name.into(),
        ..Server::default()
    }
}

#[test]
fn every_form_of_provider_id_that_upstream_takes_is_taken() {
    for form in ["openstack:///u-1", "openstack://north/u-1", "/u-1", "north/u-1"] {
        assert_eq!(Search::of(&node(form), Some("north")), Search::Id("u-1"), "{form}");
    }
    assert_eq!(Search::of(&NodeRef::named("n"), None), Search::Name("n"));
    assert_eq!(Search::of(&node(""), None), Search::Name("n"));
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
        let Search::Wrong(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) = Search::of(&node, region)
        else {
            panic!("{form}")
        };
        assert!(text.contains(word) && text.contains(form), "{text}");
    }
}

#[test]
fn each_server_is_asked_for_once_and_many_by_a_listing() {
    let searches = [Search::Id("b"), Search::Name("n"), Search::Id("a"), Search::Id("b")];
    let wanted = Wanted::of(&searches);
    assert_eq!(
        (wanted.ids.as_slice(), wanted.names.as_slice()),
        (&["a", "b"][..], &["n"][..])
    );
    assert!(wanted.is_few(None));
    let more = Wanted::of(&[Search::Id("a"), Search::Id("b"), Search::Id("c"), Search::Id("d")]);
    assert!(!more.is_few(None) && !more.is_few(Some(4)) && more.is_few(Some(5)));
    assert!(more.has("d", "x") && !more.has("x", "d"));
}

#[test]
fn absence_by_id_needs_novas_word() {
    let found = Found {
        servers: vec![server("a", "one")],
        gone: vec!["b".into()],
        unclear: vec![("c".into(), Failure::unavailable("no answer"))],
    };
    assert_eq!(found.answer(&Search::Id("a")).unwrap().unwrap().name, "one");
    assert_eq!(found.answer(&Search::Id("b")), Ok(Err(Evidence::ById)));
    assert_eq!(found.answer(&Search::Id("c")), Err(Failure::unavailable("no answer")));
    assert!(
        matches!(found.answer(&Search::Id("d")), Err(Failure { kind: FailureKind::Other, message: text, .. }) if text.contains('d'))
    );
    assert_eq!(found.answer(&Search::Name("b")), Ok(Err(Evidence::ByName)));
}

#[test]
fn two_servers_of_one_name_are_told_with_their_ids() {
    let found = Found {
        servers: vec![server("a", "twin"), server("b", "twin")],
        ..Found::default()
    };
    let answer = found.answer(&Search::Name("twin"));
    assert!(
        matches!(&answer, Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("a, b") && text.contains("twin")),
        "{answer:?}"
    );
}

#[test]
fn the_type_is_the_flavors_name_or_where_that_is_no_label_its_id() {
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
