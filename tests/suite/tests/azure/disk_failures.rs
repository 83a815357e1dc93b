//! Bad days of managed disks: full zones and machines, lost answers, changes by others, throttling, machines and disks that go; and labels of PersistentVolumes.

use std::collections::BTreeMap;

use cloudwit_csi::proto::*;
use cloudwit_model::{InTreeSource, InTreeVolume, VolumeLabels as _};
use cloudwit_suite::common::csi_process::made;
use cloudwit_suite::common::csi_requests::{GIB, delete, grow, publish, unpublish};
use cloudwit_suite::common::csi_stand_in::load;
use cloudwit_test_support::clouds::stand_in::StandIn;
use serde_json::json;
use tonic::Code;

use crate::disks::{COMPUTE, WRITES, ZONE, ZONE_KEY, created, disk, disk_id, driver, machine, parameters, wanted};

#[tokio::test(flavor = "multi_thread")]
async fn full_zones_and_machines_of_azure_have_others_chosen() {
    let driver = driver().await;
    machine(&driver, "one").await;
    machine(&driver, "two").await;
    let mut client = driver.client().await;
    // That a zone is full is known at once, or when the operation has ended, which leaves a disk that failed.
    for at_once in [true, false] {
        driver
            .does("disks", json!({ "full": [ZONE], "at_once": at_once }))
            .await;
        driver.does("operations_take", json!({ "seconds": 0.2 })).await;
        let full = client.create_volume(wanted("pvc-1")).await.unwrap_err();
        assert_eq!(full.code(), Code::ResourceExhausted, "{at_once}: {full:?}");
        assert_eq!(disk(&driver, &disk_id("pvc-1")).await, json!(null), "nothing is left");
    }
    let mut anywhere = wanted("pvc-1");
    let places = anywhere.accessibility_requirements.as_mut().unwrap();
    places.requisite.push(Topology {
        segments: [(ZONE_KEY.to_owned(), "westeurope-3".to_owned())].into(),
    });
    let elsewhere = created(&mut client, anywhere).await;
    assert_eq!(elsewhere.accessible_topology[0].segments[ZONE_KEY], "westeurope-3");
    assert_eq!(disk(&driver, &elsewhere.volume_id).await["zones"], json!(["3"]));
    driver.does("disks", json!({ "full": [], "limit": 1 })).await;
    let quota = client.create_volume(wanted("pvc-2")).await.unwrap_err();
    assert_eq!(quota.code(), Code::ResourceExhausted, "{quota:?}");
    driver.does("disks", json!({ "limit": null, "most": 1 })).await;

    let mut ids = Vec::new();
    for name in ["pvc-2", "pvc-3", "pvc-4"] {
        ids.push(made(&mut client, wanted(name)).await);
    }
    client.controller_publish_volume(publish(&ids[0], "one")).await.unwrap();
    // What the list of sizes says is not what the machine takes.
    let full = client
        .controller_publish_volume(publish(&ids[1], "one"))
        .await
        .unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    // Of two at once one has room.
    let both = ids[1..].iter().map(|id| {
        let mut client = client.clone();
        async move { client.controller_publish_volume(publish(id, "two")).await.map(drop) }
    });
    let outcomes = futures::future::join_all(both).await;
    let codes: Vec<_> = outcomes
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.code())
        .collect();
    assert_eq!(codes, [Code::ResourceExhausted]);
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_lost_answers_make_no_second_disk_and_no_absence() {
    let driver = driver().await;
    machine(&driver, "one").await;
    let mut client = driver.client().await;
    for (number, obey) in [true, false].into_iter().enumerate() {
        let lost = json!([{ "method": "PUT", "path": "/disks/", "status": 0, "obey": obey }]);
        driver.cloud.faults(lost).await.unwrap();
        let name = format!("pvc-{number}");
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        made(&mut client, wanted(&name)).await;
    }
    let id = disk_id("pvc-0");
    let lost = json!([{ "method": "PUT", "path": "/virtualMachines/one", "status": 0, "obey": true }]);
    driver.cloud.faults(lost).await.unwrap();
    client.controller_publish_volume(publish(&id, "one")).await.unwrap_err();
    client.controller_publish_volume(publish(&id, "one")).await.unwrap();
    assert_eq!(driver.calls(WRITES).await, 1);
    for (status, value) in [
        (404, json!("<html>not found</html>")),
        (503, json!("")),
        (200, json!("<html>login</html>")),
    ] {
        let fault = json!([{ "path": "/virtualMachines", "status": status, "value": value, "times": -1 }]);
        driver.cloud.faults(fault).await.unwrap();
        let unsaid = client
            .controller_unpublish_volume(unpublish(&id, "one"))
            .await
            .unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        driver.cloud.heal().await.unwrap();
    }
    assert_eq!(driver.calls(WRITES).await, 1);
    // The machine goes, then a disk.
    driver
        .does("delete", json!({ "path": format!("{COMPUTE}/virtualMachines/one") }))
        .await;
    client.controller_unpublish_volume(unpublish(&id, "one")).await.unwrap();
    let missing = client.controller_publish_volume(publish(&id, "one")).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&id)).await.unwrap();
    machine(&driver, "two").await;
    driver.does("delete", json!({ "path": disk_id("pvc-1") })).await;
    let missing = client
        .controller_publish_volume(publish(&disk_id("pvc-1"), "two"))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&disk_id("pvc-1"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_that_others_change_is_read_again() {
    let driver = driver().await;
    machine(&driver, "one").await;
    let mut client = driver.client().await;
    let id = made(&mut client, wanted("pvc-1")).await;
    let edited = json!({ "error": { "code": "PreconditionFailed", "message": "the machine was changed" } });
    let fault = json!([{ "method": "PUT", "path": "virtualMachines/one", "status": 412, "value": edited, "times": 2 }]);
    driver.cloud.faults(fault).await.unwrap();
    client.controller_publish_volume(publish(&id, "one")).await.unwrap();
    assert_eq!(driver.calls(WRITES).await, 3);
    // A disk that somebody else attached stays.
    let other = made(&mut client, wanted("pvc-2")).await;
    let path = format!("{COMPUTE}/virtualMachines/one");
    let mut held = disk(&driver, &path).await;
    let lone = json!({ "lun": 7, "createOption": "Attach", "caching": "ReadOnly", "managedDisk": { "id": other } });
    held["properties"]["storageProfile"]["dataDisks"]
        .as_array_mut()
        .unwrap()
        .push(lone);
    driver.does("put", json!({ "path": path, "resource": held })).await;
    client.controller_unpublish_volume(unpublish(&id, "one")).await.unwrap();
    let held = disk(&driver, &path).await;
    let disks = held["properties"]["storageProfile"]["dataDisks"].as_array().unwrap();
    assert!(disks.len() == 1 && disks[0]["lun"] == 7, "{disks:?}");
    // A machine that is being changed is waited for.
    let busy = json!({ "error": { "code": "OperationNotAllowed", "message": "too many requests" } });
    let slow = json!([{ "method": "PUT", "path": "virtualMachines/one", "status": 429, "value": busy, "headers": { "Retry-After": "1" } }]);
    driver.cloud.faults(slow).await.unwrap();
    let throttled = client.controller_publish_volume(publish(&id, "one")).await;
    assert!(
        throttled.is_err_and(|error| error.code() == Code::Unavailable),
        "the pause is the sidecar's"
    );
    client.controller_publish_volume(publish(&id, "one")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_operations_of_azure_are_reported_and_begun_anew() {
    let driver = driver().await;
    machine(&driver, "one").await;
    let mut client = driver.client().await;
    driver.does("operations_take", json!({ "seconds": 0.2 })).await;
    let fails = async |verb: &str| {
        driver
            .does("disks", json!({ "failing": { verb: "InternalExecutionError" } }))
            .await
    };
    fails("create").await;
    let failed = client.create_volume(wanted("pvc-1")).await.unwrap_err();
    assert!(
        failed.code() == Code::Aborted && failed.message().contains("InternalExecutionError"),
        "{failed:?}"
    );
    assert_eq!(disk(&driver, &disk_id("pvc-1")).await, json!(null), "nothing is left");
    let id = made(&mut client, wanted("pvc-1")).await;
    // The machine's list has the disk, and the machine does not.
    fails("attach").await;
    let failed = client.controller_publish_volume(publish(&id, "one")).await.unwrap_err();
    assert_eq!(failed.code(), Code::Aborted, "{failed:?}");
    client.controller_publish_volume(publish(&id, "one")).await.unwrap();
    assert_eq!(disk(&driver, &id).await["properties"]["diskState"], "Attached");
    fails("change").await;
    let failed = client.controller_expand_volume(grow(&id, 4 * GIB)).await.unwrap_err();
    assert_eq!(failed.code(), Code::Aborted, "{failed:?}");
    client.controller_expand_volume(grow(&id, 4 * GIB)).await.unwrap();
    driver.does("disks", json!({ "offline_only": true })).await;
    let online = client.controller_expand_volume(grow(&id, 8 * GIB)).await.unwrap_err();
    assert_eq!(online.code(), Code::FailedPrecondition, "{online:?}");
    let faster = ControllerModifyVolumeRequest {
        volume_id: id.clone(),
        mutable_parameters: parameters(&[("skuName", "Premium_LRS")]),
        ..Default::default()
    };
    let online = client.controller_modify_volume(faster).await.unwrap_err();
    assert_eq!(online.code(), Code::FailedPrecondition, "{online:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_disks_of_persistent_volumes_have_labels() {
    let cloud = StandIn::start("azure", &[]).await.unwrap();
    for (name, zones) in [("zonal", json!(["2"])), ("regional", json!([]))] {
        let resource = json!({ "location": "westeurope", "zones": zones, "properties": {} });
        let path = disk_id(name);
        cloud
            .call("put", json!({ "path": path, "resource": resource }))
            .await
            .unwrap();
    }
    let account = cloud.call("account", json!({})).await.unwrap();
    let config = json!({
        "useManagedIdentityExtension": true, "subscriptionId": account["subscription"], "resourceGroup": "demo", "location": "westeurope",
        "resourceManagerEndpoint": cloud.url(), "metadataEndpoint": cloud.url(),
    });
    let provider = load("azure", &cloud, config.to_string()).await;
    assert_eq!(provider.label_sources().await.unwrap(), [InTreeSource::AzureDisk]);
    let volumes = ["zonal", "regional", "gone"].map(|name| InTreeVolume {
        source: InTreeSource::AzureDisk,
        // As the user wrote it.
        id: disk_id(name).to_ascii_lowercase(),
        zone: None,
    });
    let labels = provider.volume_labels(&volumes).await.unwrap();
    let pairs = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let region = ("topology.kubernetes.io/region", "westeurope");
    let zone = ("topology.kubernetes.io/zone", "westeurope-2");
    assert_eq!(labels[0].as_ref().unwrap(), &pairs(&[region, zone]));
    assert_eq!(labels[1].as_ref().unwrap(), &pairs(&[region]));
    assert!(labels[2].as_ref().unwrap_err().to_string().contains("there is no disk"));
}
