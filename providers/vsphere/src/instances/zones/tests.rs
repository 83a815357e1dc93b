//! Which tags count.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, recorded};

use super::*;

fn tag(category: &str, name: &str) -> Tag {
    Tag {
        category: category.into(),
        name: name.into(),
    }
}

fn chosen(tags: &[(&str, &[Tag])]) -> Option<Zone> {
    let objects: Vec<Reference> = tags.iter().map(|(id, _)| Reference::new("Folder", id)).collect();
    let tags: Vec<(Reference, Vec<Tag>)> = objects
        .iter()
        .cloned()
        .zip(tags.iter().map(|(_, tags)| tags.to_vec()))
        .collect();
    let categories = Categories {
        zone: "zone".into(),
        region: "region".into(),
    };
    choose(objects.iter(), &tags, &categories)
}

#[test]
fn the_nearest_tag_of_each_category_counts_and_both_are_needed() {
    let nearest = chosen(&[
        ("host", &[tag("other", "x"), tag("zone", "a")]),
        ("cluster", &[]),
        (
            "datacenter",
            &[tag("zone", "b"), tag("region", "r"), tag("region", "s")],
        ),
    ]);
    assert_eq!(nearest, Some(("a".into(), "r".into())));
    assert_eq!(chosen(&[("host", &[tag("zone", "a")])]), None);
    assert_eq!(chosen(&[("host", &[tag("region", "a")])]), None);
    assert_eq!(chosen(&[("host", &[tag("Zone", "a"), tag("region", "r")])]), None);
}

/// What is above a host, its pool and a machine, as vcsim returns it.
#[test]
fn chains_lead_from_the_bottom_up() {
    let host = FakeHost::new();
    host.config("global: {server: vc.test}");
    host.secret("vc.test.username", "u").secret("vc.test.password", "p");
    let parents = recorded(include_str!("../../../recorded/parents.xml"));
    let content = recorded(include_str!("../../../recorded/service_content.xml"));
    let view = recorded(include_str!("../../../recorded/view.xml"));
    host.serve(move |request| {
        let text = request.text();
        if text.contains("<RetrieveServiceContent") {
            FakeAnswer::xml(200, content)
        } else if text.contains("<Login ") {
            FakeAnswer::new(200, &[("set-cookie", "vmware_soap_session=b")], view)
        } else if text.contains("<CreateContainerView") {
            FakeAnswer::xml(200, view)
        } else {
            FakeAnswer::xml(200, parents)
        }
    });
    let provider = host.provider::<crate::Vsphere>();
    let sessions = Sessions::new(&provider.settings.vcenters[0], host.context());
    let start = Reference::new("HostSystem", "host-20");
    let above = sessions
        .with(|session| Ancestors::read(&sessions, session, std::slice::from_ref(&start)))
        .unwrap();
    let chain: Vec<&str> = above.chain(&start).map(|object| object.value.as_str()).collect();
    assert_eq!(
        chain,
        ["host-20", "computeresource-23", "group-4", "datacenter-2", "group-d1"]
    );
    let machine = Reference::new("VirtualMachine", "vm-91");
    assert_eq!(above.chain(&machine).count(), 4);
}
