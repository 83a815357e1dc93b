use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use super::testing::{SmallPhoton, detach, kind};
use super::{GIB, LARGEST};

#[test]
fn only_the_clouds_own_word_is_that_there_is_no_disk() {
    let cloud = SmallPhoton::new();
    cloud.state.borrow_mut().refusals = vec![("GET /disks", 404, "NotFound")];
    let found = cloud.call().get_volumes(&["1".into()]).unwrap().remove(0);
    assert_eq!(kind(found), FailureKind::Unavailable);
    assert_eq!(kind(detach(&cloud, "1", None)), FailureKind::Unavailable);
    assert_eq!(kind(cloud.call().delete_volume("1", None)), FailureKind::Unavailable);
    cloud.state.borrow_mut().refusals.clear();
    let found = cloud
        .call()
        .get_volumes(&["1".into(), "no id/".into(), String::new()])
        .unwrap();
    assert_eq!(found, [Ok(None), Ok(None), Ok(None)]);
}

#[test]
fn many_disks_are_read_from_the_projects_list() {
    let cloud = SmallPhoton::new();
    let ids: Vec<String> = (1..=5).map(|number| number.to_string()).collect();
    for id in &ids[..4] {
        cloud.disk(id, "DETACHED", &[]);
    }
    let found = cloud.call().get_volumes(&ids).unwrap();
    let found: Vec<bool> = found.into_iter().map(|one| one.unwrap().is_some()).collect();
    assert_eq!(found, [true, true, true, true, false]);
    assert_eq!(cloud.sent(0), ["GET /projects/p-1/disks", "GET /disks/5"]);
}

#[test]
fn pages_have_the_clusters_disks_in_order() {
    let cloud = SmallPhoton::new();
    for id in ["3", "1", "2", "4"] {
        cloud.disk(id, "DETACHED", &[]);
    }
    cloud.state.borrow_mut().disks[3]["tags"] = json!(["cloudwit:volume=x", "cloudwit:cluster=green"]);
    let (mut after, mut found) = (None::<String>, Vec::new());
    loop {
        let page = cloud.call().list_volumes(after.as_deref(), 2).unwrap();
        found.push(page.volumes.into_iter().map(|volume| volume.id).collect::<Vec<_>>());
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, [vec!["1", "2"], vec!["3"]]);
    assert_eq!(kind(cloud.call().list_volumes(Some("2"), 2)), FailureKind::Aborted);
}

#[test]
fn room_is_what_the_projects_limit_leaves() {
    let cloud = SmallPhoton::new();
    let room = |ticket: serde_json::Value| {
        cloud.state.borrow_mut().ticket = ticket;
        let query = CapacityQuery {
            uses: Vec::new(),
            parameters: Vec::new(),
            at: None,
        };
        cloud.call().volume_capacity(&query).map(|room| room.available)
    };
    let line = |value: f64, unit: &str| json!([{ "key": "persistent-disk.capacity", "value": value, "unit": unit }]);
    assert_eq!(
        room(json!({ "limits": line(10.0, "GB"), "usage": line(2048.0, "MB") })),
        Ok(8 * GIB)
    );
    assert_eq!(
        room(json!({ "limits": line(10.0, "GB"), "usage": line(11.0, "GB") })),
        Ok(0)
    );
    assert_eq!(
        room(json!({ "limits": line(2.5, "GB"), "usage": null })),
        Ok(5 * GIB / 2)
    );
    for without in [
        json!(null),
        json!({ "limits": [] }),
        json!({ "limits": line(9.0, "COUNT") }),
    ] {
        assert_eq!(room(without), Ok(LARGEST));
    }
}

#[test]
fn node_is_its_machine() {
    let cloud = SmallPhoton::new();
    let nodes = [
        NodeRef::named("one").with_provider_id("photon://vm-1"),
        NodeRef::named("gone").with_provider_id("photon://vm-9"),
        NodeRef::named("nowhere"),
    ];
    let found = cloud.call().volume_nodes(&nodes).unwrap();
    assert_eq!(found[0].as_ref().map(|node| node.id.as_str()), Ok("vm-1"));
    for missing in &found[1..] {
        assert!(missing.as_ref().is_err_and(Failure::is_not_found), "{missing:?}");
    }
}
