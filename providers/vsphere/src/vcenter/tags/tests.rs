//! Both forms of the API: the older as vcsim has it, the newer as its documentation shows it.

use cloudwit_guest_sdk::testing::{FakeHost, basic, recorded};
use serde_json::json;

use super::*;
use crate::Vsphere;

const URL: &str = "https://vc.test:443";
const TAG: &str = "urn:vmomi:InventoryServiceTag:1748da1b-e76d-478e-9bdd-9e2858ca296b:GLOBAL";
const CATEGORY: &str = "urn:vmomi:InventoryServiceCategory:f88f8f44-bfbe-42c4-be9f-f2ee99ed3d08:GLOBAL";

fn attached(host: &FakeHost) -> Result<Vec<(Reference, Vec<Tag>)>, Failure> {
    let provider = host.provider::<Vsphere>();
    let objects = [
        Reference::new("HostSystem", "host-20"),
        Reference::new("Datacenter", "datacenter-2"),
        Reference::new("Folder", "group-d1"),
    ];
    let objects: Vec<&Reference> = objects.iter().collect();
    Tags::new(&provider.settings.vcenters[0], host.context()).attached(&objects)
}

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config("global: {server: vc.test}");
    host.secret("vc.test.username", "u").secret("vc.test.password", "p");
    host
}

fn old(path: &str) -> String {
    format!("{URL}/rest/com/vmware/cis/{path}")
}

fn logs_in_the_old_way(host: &FakeHost) {
    host.expect("POST", &format!("{URL}/api/session"))
        .with_header("authorization", &basic("vc.test.username", "vc.test.password"))
        .answers_with(404, &[], "404 page not found");
    host.expect("POST", &old("session"))
        .with_header("authorization", &basic("vc.test.username", "vc.test.password"))
        .answers_with(200, &[], recorded(include_str!("../../../recorded/rest_session.json")));
}

fn associations(host: &FakeHost) {
    let path = "tagging/tag-association?~action=list-attached-tags-on-objects";
    host.expect("POST", &old(path))
        .with_header("vmware-api-session-id", "b165958b-78c2-4d31-8493-f893c14450aa")
        .with_json(json!({"object_ids": [
            {"id": "host-20", "type": "HostSystem"},
            {"id": "datacenter-2", "type": "Datacenter"},
            {"id": "group-d1", "type": "Folder"},
        ]}))
        .answers_with(
            200,
            &[],
            recorded(include_str!("../../../recorded/rest_associations.json")),
        );
}

fn expected() -> Vec<(Reference, Vec<Tag>)> {
    let north = Tag {
        category: "k8s-region".into(),
        name: "north".into(),
    };
    vec![
        (Reference::new("HostSystem", "host-20"), vec![]),
        (Reference::new("Datacenter", "datacenter-2"), vec![north]),
        (Reference::new("Folder", "group-d1"), vec![]),
    ]
}

#[test]
fn older_api_is_used_as_fallback_and_names_read_once() {
    let host = host();
    logs_in_the_old_way(&host);
    associations(&host);
    let escaped = |id: &str| id.replace(':', "%3A");
    host.expect("GET", &old(&format!("tagging/tag/id:{}", escaped(TAG))))
        .answers_with(
            200,
            &[],
            recorded(include_str!("../../../recorded/rest_tag_Datacenter.json")),
        );
    host.expect("GET", &old(&format!("tagging/category/id:{}", escaped(CATEGORY))))
        .answers_with(
            200,
            &[],
            recorded(include_str!("../../../recorded/rest_category_Datacenter.json")),
        );
    assert_eq!(attached(&host), Ok(expected()));
    // The second time the session and the names are known.
    associations(&host);
    assert_eq!(attached(&host), Ok(expected()));
}

#[test]
fn the_newer_api_answers_without_a_wrapping() {
    let host = host();
    host.expect("POST", &format!("{URL}/api/session"))
        .answers_with(201, &[], "\"sid\"");
    let root = format!("{URL}/api/cis/tagging/");
    host.expect(
        "POST",
        &format!("{root}tag-association?action=list-attached-tags-on-objects"),
    )
    .with_header("vmware-api-session-id", "sid")
    .answers(
        200,
        json!([{"object_id": {"id": "datacenter-2", "type": "Datacenter"}, "tag_ids": ["t"]}]),
    );
    host.expect("GET", &format!("{root}tag/t"))
        .answers(200, json!({"id": "t", "name": "north", "category_id": "c"}));
    host.expect("GET", &format!("{root}category/c"))
        .answers(200, json!({"id": "c", "name": "k8s-region"}));
    assert_eq!(attached(&host).unwrap(), expected()[1..2]);
}

#[test]
fn expired_session_is_renewed_and_vanished_tag_ignored() {
    let host = host();
    logs_in_the_old_way(&host);
    let path = "tagging/tag-association?~action=list-attached-tags-on-objects";
    host.expect("POST", &old(path)).answers_with(401, &[], "");
    logs_in_the_old_way(&host);
    associations(&host);
    host.expect("GET", &old(&format!("tagging/tag/id:{}", TAG.replace(':', "%3A"))))
        .answers_with(404, &[], recorded(include_str!("../../../recorded/rest_no_tag.json")));
    let told = attached(&host).unwrap();
    assert!(told.iter().all(|(_, tags)| tags.is_empty()), "{told:?}");
}

#[test]
fn wrong_credentials_cut_answers_and_other_servers_are_reported() {
    let wrong = host();
    wrong
        .expect("POST", &format!("{URL}/api/session"))
        .answers_with(401, &[], "");
    assert!(matches!(
        attached(&wrong),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
    drop(wrong);

    let cut = host();
    logs_in_the_old_way(&cut);
    let path = "tagging/tag-association?~action=list-attached-tags-on-objects";
    cut.expect("POST", &old(path))
        .answers_with(200, &[], "{\"value\": [{\"object_id\":");
    assert!(matches!(
        attached(&cut),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    drop(cut);

    let other = host();
    other
        .expect("POST", &format!("{URL}/api/session"))
        .answers_with(404, &[], "");
    other.expect("POST", &old("session")).answers_with(404, &[], "");
    assert!(
        matches!(attached(&other), Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("tells no tags"))
    );
}
