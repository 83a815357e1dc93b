use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::volumes::testing::{SmallCompute, disk_id, kind, machine_id, token};

fn attach_all(cloud: &SmallCompute, volumes: &[&str], node: &str, token: Option<&str>) -> Each<Attached> {
    let one = |volume: &&str| NewAttachment {
        volume: (*volume).into(),
        node_id: node.into(),
        read_only: false,
        volume_use: VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        },
        token: token.map(str::to_owned),
    };
    let all: Vec<NewAttachment> = volumes.iter().map(one).collect();
    cloud.call().attach_volumes(&all).unwrap()
}

fn attach(cloud: &SmallCompute, volume: &str, node: &str, token: Option<&str>) -> Result<Attached, Failure> {
    attach_all(cloud, &[volume], node, token).remove(0)
}

fn detach_all(cloud: &SmallCompute, volumes: &[&str], node: &str, token: Option<&str>) -> Each<()> {
    let one = |volume: &&str| Detachment {
        volume: (*volume).into(),
        node_id: node.into(),
        token: token.map(str::to_owned),
    };
    let all: Vec<Detachment> = volumes.iter().map(one).collect();
    cloud.call().detach_volumes(&all).unwrap()
}

fn detach(cloud: &SmallCompute, volume: &str, node: &str, token: Option<&str>) -> Result<(), Failure> {
    detach_all(cloud, &[volume], node, token).remove(0)
}

fn lun(attached: &Result<Attached, Failure>) -> &str {
    &attached.as_ref().unwrap().context[0].value
}

#[test]
fn disks_of_a_machine_are_one_write_and_one_operation() {
    let cloud = SmallCompute::new();
    let disks = ["a", "b", "c"].map(|name| cloud.disk(name));
    let ids = disks.each_ref().map(String::as_str);
    cloud.state.borrow_mut().is_slow = true;
    let begun: Vec<String> = attach_all(&cloud, &ids, "one", None).into_iter().map(token).collect();
    assert!(begun.iter().all(|one| *one == begun[0]));
    let before = cloud.host.requests().len();
    attach_all(&cloud, &ids, "one", Some(&begun[0]))
        .into_iter()
        .for_each(|one| drop(token(one)));
    let looks = cloud.host.requests().split_off(before);
    let looks = looks.iter().filter(|request| request.url.contains("DiskOperations"));
    assert_eq!(looks.count(), 1);
    cloud.finish();
    let attached = attach_all(&cloud, &ids, "one", Some(&begun[0]));
    assert_eq!(attached.iter().map(lun).collect::<Vec<_>>(), ["0", "1", "2"]);
    let hints = format!("{:?}", attached[1].as_ref().unwrap().devices);
    assert!(
        hints.contains("/dev/disk/azure/scsi1/lun1") && hints.contains("data/by-lun/1"),
        "{hints}"
    );
    assert_eq!(cloud.changes(), [format!("PUT {}", machine_id("one"))]);

    cloud.state.borrow_mut().is_slow = true;
    let begun = token(detach_all(&cloud, &ids[..2], "one", None).remove(1));
    cloud.finish();
    assert_eq!(detach_all(&cloud, &ids[..2], "one", Some(&begun)), [Ok(()), Ok(())]);
    assert_eq!(cloud.changes().len(), 2);
    assert_eq!(
        lun(&attach(&cloud, ids[1], "one", None)),
        "0",
        "the lowest number that is free"
    );
}

#[test]
fn machines_are_found_by_names_of_nodes() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    let uniform =
        "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/7";
    cloud.machine(uniform, "set000007");
    // The cluster's Node has the machine's id.
    let node = ClusterNode {
        ref_: NodeRef::named("set000007").with_provider_id(format!("azure://{uniform}")),
        labels: Vec::new(),
        pod_cidrs: Vec::new(),
    };
    cloud.host.view(vec![node], Vec::new());
    attach(&cloud, &disk, "set000007", None).unwrap();
    let found = cloud
        .call()
        .get_volumes(std::slice::from_ref(&disk))
        .unwrap()
        .remove(0)
        .unwrap()
        .unwrap();
    assert_eq!(found.attachments[0].node_id, "set000007");
    // Without it the list of machines does, or the machine that the disk is attached to.
    cloud.host.view(Vec::new(), Vec::new());
    detach(&cloud, &disk, "set000007", None).unwrap();
    assert_eq!(cloud.changes().len(), 2);
    attach(&cloud, &disk, "ONE", None).unwrap();
    let found = cloud
        .call()
        .get_volumes(std::slice::from_ref(&disk))
        .unwrap()
        .remove(0)
        .unwrap()
        .unwrap();
    assert_eq!(found.attachments[0].node_id, "one");
}

#[test]
fn detaching_what_is_not_there_is_success() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    for (volume, node) in [
        (disk.as_str(), "one"),
        (disk.as_str(), "gone"),
        (disk_id("gone").as_str(), "one"),
        ("no disk", "one"),
    ] {
        assert_eq!(detach(&cloud, volume, node, None), Ok(()), "{volume} {node}");
    }
    assert!(cloud.changes().is_empty());
    cloud.state.borrow_mut().refusals = vec![(
        "GET /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/",
        503,
        "x",
        "",
    )];
    assert_eq!(kind(detach(&cloud, &disk, "one", None)), FailureKind::Unavailable);
}

#[test]
fn disk_of_a_machine_that_is_gone_is_waited_for() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    attach(&cloud, &disk, "one", None).unwrap();
    cloud
        .state
        .borrow_mut()
        .resources
        .remove(&machine_id("one").to_ascii_lowercase());
    token(detach(&cloud, &disk, "one", None));
    // It is attached to another one by now.
    let mut held = cloud.get(&disk);
    held["managedBy"] = json!(machine_id("two"));
    cloud.put(&disk, held);
    assert_eq!(detach(&cloud, &disk, "one", None), Ok(()));
}

#[test]
fn disk_that_is_gone_leaves_the_list_of_its_machine() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    attach(&cloud, &disk, "one", None).unwrap();
    cloud.state.borrow_mut().resources.remove(&disk.to_ascii_lowercase());
    assert_eq!(detach(&cloud, &disk, "one", None), Ok(()));
    assert_eq!(
        cloud.get(&machine_id("one"))["properties"]["storageProfile"]["dataDisks"],
        json!([])
    );
}

#[test]
fn what_cannot_be_attached_is_named() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    assert_eq!(
        kind(attach(&cloud, &disk_id("gone"), "one", None)),
        FailureKind::NotFound
    );
    assert_eq!(kind(attach(&cloud, &disk, "gone", None)), FailureKind::NotFound);
    attach(&cloud, &disk, "one", None).unwrap();
    let elsewhere = attach(&cloud, &disk, "two", None).unwrap_err();
    assert!(
        elsewhere.kind == FailureKind::FailedPrecondition && elsewhere.message.contains("virtualMachines/one"),
        "{elsewhere:?}"
    );
    let far = cloud.disk("far");
    cloud.edit(&far, "/zones/0", json!("2"));
    let wrong = attach(&cloud, &far, "one", None).unwrap_err();
    assert!(
        wrong.kind == FailureKind::Invalid && wrong.message.contains("westeurope-2"),
        "{wrong:?}"
    );
    let shared = cloud.disk("shared");
    cloud.edit(
        &shared,
        "/properties",
        json!({ "provisioningState": "Succeeded", "maxShares": 2, "diskSizeGB": 2 }),
    );
    attach(&cloud, &shared, "one", None).unwrap();
    let data = cloud.get(&machine_id("one"))["properties"]["storageProfile"]["dataDisks"][1].clone();
    assert_eq!(data["caching"], "None");
    cloud.machine(&machine_id("three"), "three");
    let mut held = cloud.get(&shared);
    held["managedByExtended"] = json!([machine_id("one"), machine_id("two")]);
    cloud.put(&shared, held);
    assert_eq!(
        kind(attach(&cloud, &shared, "three", None)),
        FailureKind::FailedPrecondition
    );
}

#[test]
fn full_machine_is_exhausted_and_its_room_is_used() {
    let cloud = SmallCompute::new();
    let disks = ["a", "b", "c", "d", "e"].map(|name| cloud.disk(name));
    let ids = disks.each_ref().map(String::as_str);
    let outcomes = attach_all(&cloud, &ids, "one", None);
    assert!(outcomes[..4].iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(kind(outcomes[4].clone()), FailureKind::Exhausted);
    assert_eq!(cloud.changes().len(), 1);
}

#[test]
fn refusal_about_one_disk_costs_that_one() {
    let cloud = SmallCompute::new();
    let disks = ["a", "bad", "c"].map(|name| cloud.disk(name));
    let ids = disks.each_ref().map(String::as_str);
    cloud.state.borrow_mut().refused_bodies = vec![("disks/bad", 400, "BadRequest")];
    let outcomes = attach_all(&cloud, &ids, "one", None);
    assert_eq!(lun(&outcomes[0]), "0");
    token(outcomes[1].clone());
    let outcomes = attach_all(&cloud, &ids[1..], "one", None);
    assert_eq!(kind(outcomes[0].clone()), FailureKind::Invalid);
    assert_eq!(lun(&outcomes[1]), "1");
}

#[test]
fn failed_operation_of_several_is_followed_by_single_ones() {
    let cloud = SmallCompute::new();
    let disks = ["a", "b"].map(|name| cloud.disk(name));
    let ids = disks.each_ref().map(String::as_str);
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(attach_all(&cloud, &ids, "one", None).remove(0));
    {
        let mut state = cloud.state.borrow_mut();
        state.is_slow = false;
        state.error = Some(("InternalExecutionError", "no"));
    }
    let failed = attach_all(&cloud, &ids, "one", Some(&begun));
    assert!(
        failed.iter().all(|one| kind(one.clone()) == FailureKind::Other),
        "{failed:?}"
    );
    cloud.state.borrow_mut().error = None;
    let outcomes = attach_all(&cloud, &ids, "one", None);
    assert_eq!(lun(&outcomes[0]), "0");
    token(outcomes[1].clone());
    assert_eq!(lun(&attach(&cloud, ids[1], "one", None)), "1");
}

#[test]
fn failed_attachment_in_the_list_is_written_again() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    let listed = json!([{ "lun": 3, "managedDisk": { "id": disk } }]);
    cloud.edit(&machine_id("one"), "/properties/storageProfile/dataDisks", listed);
    cloud.edit(&machine_id("one"), "/properties/provisioningState", json!("Failed"));
    assert_eq!(lun(&attach(&cloud, &disk, "one", None)), "3");
    assert_eq!(cloud.changes().len(), 1);
    assert_eq!(cloud.get(&disk)["managedBy"], machine_id("one"));
}

#[test]
fn busy_or_edited_machine_is_waited_for() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    cloud.edit(&machine_id("one"), "/properties/provisioningState", json!("Updating"));
    token(attach(&cloud, &disk, "one", None));
    cloud.edit(&machine_id("one"), "/properties/provisioningState", json!("Succeeded"));
    cloud.state.borrow_mut().refusals = vec![("PUT", 412, "PreconditionFailed", "edited")];
    token(attach(&cloud, &disk, "one", None));
    cloud.state.borrow_mut().refusals.clear();
    attach(&cloud, &disk, "one", None).unwrap();
    cloud.edit(
        &machine_id("one"),
        "/properties/storageProfile/dataDisks/0",
        json!({ "lun": 0, "toBeDetached": true, "managedDisk": { "id": disk } }),
    );
    token(attach(&cloud, &disk, "one", None));
    token(detach(&cloud, &disk, "one", None));
    cloud.edit(&machine_id("one"), "/etag", json!(""));
    let other = cloud.disk("other");
    assert_eq!(kind(attach(&cloud, &other, "one", None)), FailureKind::Other);
}
