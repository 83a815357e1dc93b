//! Photon Controller's persistent disks: their life as the sidecars ask for it, csi-sanity, and the days on which tasks fail, answers are lost and machines are locked.

use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_node_stub::NodeStub;
use cloudwit_suite::common::csi_requests::{GIB, delete, publish, unpublish, wanted_at};
use cloudwit_suite::common::csi_sanity::controller_passes;
use cloudwit_suite::common::csi_served::Controller;
use cloudwit_suite::common::csi_stand_in::{StandInDriver, load};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::photon_files;
use futures::future::join_all;
use serde_json::{Value, json};
use tonic::Code;

/// csi-sanity 5.6 has so many specs of a driver that neither grows nor copies its volumes; fewer would mean that the focus fits no more.
const FEWEST: usize = 30;

async fn driver() -> StandInDriver {
    let cloud = StandIn::start("photon", &[]).await.unwrap();
    let files = async |cloud: &StandIn, deployment: &_| photon_files(cloud, "", deployment).await.unwrap();
    StandInDriver::start("photon", cloud, files).await
}

async fn machine(driver: &StandInDriver, name: &str) -> String {
    let made = driver.does("add_machine", json!({ "name": name })).await;
    made["id"].as_str().unwrap().to_owned()
}

/// Two GiB, anywhere.
fn wanted(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        accessibility_requirements: None,
        ..wanted_at(name, "", "")
    }
}

async fn made(client: &mut Controller, name: &str) -> String {
    let answer = client.create_volume(wanted(name)).await.unwrap().into_inner();
    answer.volume.unwrap().volume_id
}

async fn disks(driver: &StandInDriver) -> Vec<Value> {
    driver.does("disks", json!({})).await.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_disk_is_created_attached_moved_and_deleted() {
    let driver = driver().await;
    let (one, two) = (machine(&driver, "one").await, machine(&driver, "two").await);
    driver.does("tasks_take", json!({ "seconds": 0.3 })).await;
    let mut client = driver.client().await;
    let claim = [
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("flavor", "standard"),
    ];
    let new = CreateVolumeRequest {
        parameters: claim.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..wanted("pvc-1")
    };
    let create =
        async |client: &mut Controller, new| client.create_volume(new).await.unwrap().into_inner().volume.unwrap();
    let volume = create(&mut client, new.clone()).await;
    assert_eq!(volume.capacity_bytes, 2 * GIB);
    assert_eq!(create(&mut client, new.clone()).await, volume);
    let id = volume.volume_id;
    let all = disks(&driver).await;
    let [disk] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(
        (&disk["name"], &disk["capacityGb"], &disk["flavor"]),
        (&json!("pvc-1"), &json!(2), &json!("standard"))
    );
    let tags = disk["tags"].to_string();
    for tag in ["cloudwit:volume=pvc-1", "pvc/name=data", "pvc/namespace=shop"] {
        assert!(tags.contains(tag), "{tags}");
    }
    let other = CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes: 9 * GIB,
            limit_bytes: 0,
        }),
        ..new
    };
    let refused = client.create_volume(other).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused:?}");

    let published = client.controller_publish_volume(publish(&id, &one)).await.unwrap();
    let context = published.into_inner().publish_context;
    assert_eq!(
        context["device.csi.cloudwit.dev/wwn"],
        format!("0x{}", id.replace('-', ""))
    );
    client.controller_publish_volume(publish(&id, &one)).await.unwrap();
    assert_eq!(driver.calls("attach_disk").await, 1);
    let elsewhere = client.controller_publish_volume(publish(&id, &two)).await.unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition);
    assert!(elsewhere.message().contains(&one), "{elsewhere:?}");
    let listed = client
        .list_volumes(ListVolumesRequest::default())
        .await
        .unwrap()
        .into_inner()
        .entries;
    assert_eq!(
        listed[0].status.as_ref().unwrap().published_node_ids,
        std::slice::from_ref(&one)
    );
    let attached = client.delete_volume(delete(&id)).await.unwrap_err();
    assert_eq!(attached.code(), Code::FailedPrecondition, "{attached:?}");

    for _ in 0..2 {
        client.controller_unpublish_volume(unpublish(&id, &one)).await.unwrap();
    }
    client.controller_publish_volume(publish(&id, &two)).await.unwrap();
    assert_eq!(disks(&driver).await[0]["vms"], json!([two]));
    client.controller_unpublish_volume(unpublish(&id, &two)).await.unwrap();
    for _ in 0..2 {
        client.delete_volume(delete(&id)).await.unwrap();
    }
    assert!(disks(&driver).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_disks_at_once_wait_for_a_locked_machine() {
    const MANY: usize = 4;
    let driver = driver().await;
    let machine = machine(&driver, "one").await;
    driver.does("tasks_take", json!({ "seconds": 0.2 })).await;
    let client = driver.client().await;
    let move_there = (0..MANY).map(|number| {
        let (mut client, machine) = (client.clone(), machine.clone());
        async move {
            let id = made(&mut client, &format!("pvc-{number}")).await;
            client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
        }
    });
    join_all(move_there).await;
    let at = disks(&driver)
        .await
        .into_iter()
        .filter(|disk| disk["vms"] == json!([machine]));
    assert_eq!(at.count(), MANY);
    let calls = driver.cloud.calls().await.unwrap();
    let locked = calls
        .iter()
        .filter(|call| call.name.ends_with("attach_disk") && call.status == 400);
    println!("{MANY} attachments, {} met a locked machine", locked.count());
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_failed_task_is_reported_and_leaves_nothing() {
    let driver = driver().await;
    let machine = machine(&driver, "one").await;
    let mut client = driver.client().await;
    let fail = |operation: &str, code: &str| json!({ "operation": operation, "code": code, "message": "in words" });
    driver.does("tasks_take", json!({ "seconds": 0.2 })).await;
    driver
        .does("fail", fail("CREATE_DISK", "NotEnoughDatastoreCapacity"))
        .await;
    let full = client.create_volume(wanted("pvc-1")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    assert!(
        disks(&driver).await.is_empty(),
        "the answer is final, so nothing is left"
    );
    assert!(
        full.message().contains("NotEnoughDatastoreCapacity: in words"),
        "{full:?}"
    );
    let id = made(&mut client, "pvc-2").await;
    assert_eq!(disks(&driver).await.len(), 1, "the one that failed is deleted");

    driver.does("fail", fail("ATTACH_DISK", "DeviceBusy")).await;
    let busy = client
        .controller_publish_volume(publish(&id, &machine))
        .await
        .unwrap_err();
    assert!(busy.message().contains("DeviceBusy"), "{busy:?}");
    client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
    driver.does("limit_disks", json!({ "gigabytes": 3 })).await;
    let over = client.create_volume(wanted("pvc-3")).await.unwrap_err();
    assert_eq!(over.code(), Code::ResourceExhausted, "{over:?}");
    let room = client.get_capacity(GetCapacityRequest::default()).await.unwrap();
    assert_eq!(room.into_inner().available_capacity, GIB);

    let odd = CreateVolumeRequest {
        parameters: [("flavour".to_owned(), "standard".to_owned())].into(),
        ..wanted("pvc-odd")
    };
    let refused = client.create_volume(odd).await.unwrap_err();
    assert!(
        refused.code() == Code::InvalidArgument && refused.message().contains("flavour"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_lost_answers_make_no_second_disk() {
    let driver = driver().await;
    let mut client = driver.client().await;
    for (number, obey) in [true, false].into_iter().enumerate() {
        let name = format!("pvc-{number}");
        let lost = json!([{ "method": "POST", "path": "/disks$", "status": 0, "obey": obey }]);
        driver.cloud.faults(lost).await.unwrap();
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        made(&mut client, &name).await;
    }
    assert_eq!(disks(&driver).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn photon_answer_that_is_not_the_clouds_is_no_absence() {
    let driver = driver().await;
    let machine = machine(&driver, "one").await;
    let mut client = driver.client().await;
    let id = made(&mut client, "pvc-1").await;
    client.controller_publish_volume(publish(&id, &machine)).await.unwrap();
    for (status, value) in [
        (404, json!("<html>not found</html>")),
        (404, json!({ "code": "NotFound", "message": "nothing here" })),
        (503, json!("")),
        (200, json!("<html>login</html>")),
    ] {
        let fault = json!([{ "path": "/disks/", "status": status, "value": value, "times": -1 }]);
        driver.cloud.faults(fault).await.unwrap();
        let unsaid = client
            .controller_unpublish_volume(unpublish(&id, &machine))
            .await
            .unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        let unsaid = client.delete_volume(delete(&id)).await.unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        driver.cloud.heal().await.unwrap();
    }
    assert_eq!(driver.calls("detach_disk").await, 0);
    // The machine goes, and the disk after it.
    driver.does("delete", json!({ "id": machine })).await;
    client
        .controller_unpublish_volume(unpublish(&id, &machine))
        .await
        .unwrap();
    let missing = client
        .controller_publish_volume(publish(&id, &machine))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    driver.does("delete_disk", json!({ "id": id })).await;
    let missing = client
        .controller_publish_volume(publish(&id, &machine))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&id)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn csi_sanity_finds_nothing_wrong_with_the_controller_on_photon() {
    let cloud = StandIn::start("photon", &[]).await.unwrap();
    let made = cloud.call("add_machine", json!({ "name": "one" })).await.unwrap();
    let config = format!("[Global]\ntarget = {}/open\nproject = p-1\n", cloud.url());
    let stub = NodeStub {
        id: made["id"].as_str().unwrap().into(),
        topology: Topology::default(),
        // No limit.
        most: 0,
    };
    controller_passes(load("photon", &cloud, config).await, stub, FEWEST).await;
}
