//! Volumes of the provider `sim` as the component that is shipped, in the real host, on the simulated cloud: the whole way of each call, and bad days.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_host::HostOptions;
use cloudwit_model::volume::{
    AccessMode, CapacityQuery, Detachment, DeviceHint, NewAttachment, NewSnapshot, NewVolume, SizeRange, Topology,
    Volume, VolumeSource, VolumeUse,
};
use cloudwit_model::{Cloud as _, CloudError, Failure, FaultKind, VolumeCloud, VolumeSecrets};
use cloudwit_sim_cloud::{DiskSettings, Fault, Operation, SimCloud, SimCloudOptions};
use cloudwit_suite::common::sim_provider;
use cloudwit_suite::hosting::{Hosting, node, settings};
use sim_provider::{LoadedSim, load_sim};

mod secrets;

const GIB: u64 = 1 << 30;
const KEY: &str = "topology.sim.csi.cloudwit.dev/zone";

/// A cloud with machines in its three zones in turn, and the provider for it.
struct Scene {
    cloud: SimCloud,
    loaded: LoadedSim,
}

impl Scene {
    async fn start(machines: usize) -> Self {
        let cloud = SimCloud::start(SimCloudOptions::default()).await.unwrap();
        cloud.add_numbered_machines("node", machines);
        let loaded = load_sim(&cloud, "sim-token", |_| {}).await;
        Self { cloud, loaded }
    }

    fn provider(&self) -> &dyn VolumeCloud {
        self.loaded.provider.as_ref()
    }

    async fn made(&self, name: &str) -> Volume {
        self.provider()
            .create_volume(&wanted(name), None, &none())
            .await
            .unwrap()
    }
}

fn wanted(name: &str) -> NewVolume {
    let place = Topology(BTreeMap::from([(KEY.to_owned(), "sim-1a".to_owned())]));
    NewVolume {
        name: name.into(),
        size: SizeRange {
            at_least: 2 * GIB,
            at_most: None,
        },
        uses: vec![volume_use()],
        parameters: BTreeMap::new(),
        mutable_parameters: BTreeMap::new(),
        source: None,
        allowed: vec![place],
        preferred: Vec::new(),
        tags: BTreeMap::new(),
    }
}

/// The secrets of most requests.
fn none() -> VolumeSecrets {
    VolumeSecrets::default()
}

fn volume_use() -> VolumeUse {
    VolumeUse {
        block: false,
        fs_type: None,
        access: AccessMode::OneNode,
    }
}

fn to(volume: &str, machine: &str) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: machine.into(),
        read_only: false,
        volume_use: volume_use(),
        token: None,
    }
}

fn from(volume: &str, machine: &str) -> Detachment {
    Detachment {
        volume: volume.into(),
        node_id: machine.into(),
        token: None,
    }
}

fn failure<T: std::fmt::Debug>(answer: Result<T, CloudError>) -> Failure {
    match answer {
        Err(CloudError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn component_exports_what_counts_beside_volumes() {
    let scene = Scene::start(0).await;
    let names = scene.loaded.provider.abilities().names();
    for name in [
        "volumes",
        "volume-expansion",
        "volume-listing",
        "volume-snapshots",
        "volume-modification",
        "volume-capacity",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    let driver = scene.provider().volume_driver().await.unwrap();
    assert_eq!(driver.name, "sim.csi.cloudwit.dev");
    assert_eq!(driver.topology_keys, [KEY]);
    assert_eq!((driver.size_step, driver.usual), (GIB, 10 * GIB));
}

#[tokio::test]
async fn nodes_have_id_place_and_limit() {
    let scene = Scene::start(2).await;
    let asked = [node("node-1"), node("stranger"), node("node-0")];
    let found = scene.provider().volume_nodes(&asked).await.unwrap();
    let first = found[0].as_ref().unwrap();
    assert_eq!((first.id.as_str(), first.max_volumes), ("vm-2", Some(16)));
    assert_eq!(first.topology.0[KEY], "sim-1b");
    assert!(matches!(found[1], Err(Failure::NotFound(_))), "{found:?}");
    assert_eq!(found[2].as_ref().unwrap().id, "vm-1");
}

#[tokio::test]
async fn hundred_attachments_are_one_request_and_one_more_is_refused() {
    let scene = Scene::start(1).await;
    scene.cloud.set_disk_settings(DiskSettings {
        per_machine: 99,
        ..DiskSettings::default()
    });
    let mut moves = Vec::new();
    for number in 0..100 {
        let volume = scene.made(&format!("pvc-{number}")).await;
        moves.push(to(&volume.id, "vm-1"));
    }
    scene.cloud.reset_counters();
    let attached = scene.provider().attach_volumes(&moves, &none()).await.unwrap();
    assert_eq!(scene.cloud.counters().requests(Operation::MoveDisks), 1);
    assert_eq!(
        attached[98].as_ref().unwrap().devices,
        [DeviceHint::Serial("disk-99".into())]
    );
    assert!(matches!(attached[99], Err(Failure::Exhausted(_))), "{:?}", attached[99]);
    moves.push(to("disk-1", "vm-1"));
    let refused = scene.provider().attach_volumes(&moves, &none()).await.unwrap_err();
    assert!(
        matches!(&refused, CloudError::Fault(fault) if fault.kind == FaultKind::Host && fault.message.contains("101")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_takes_its_time_is_pending_until_it_is_done() {
    let scene = Scene::start(1).await;
    let settings = |milliseconds| DiskSettings {
        build_time: Duration::from_millis(milliseconds),
        attach_time: Duration::from_millis(milliseconds),
        ..DiskSettings::default()
    };
    scene.cloud.set_disk_settings(settings(3_600_000));
    let Failure::Pending { token, .. } = failure(scene.provider().create_volume(&wanted("pvc"), None, &none()).await)
    else {
        panic!("it is not pending")
    };
    // Neither the token nor its loss makes a second one.
    for token in [Some(token.as_str()), None] {
        let again = failure(scene.provider().create_volume(&wanted("pvc"), token, &none()).await);
        assert!(matches!(again, Failure::Pending { .. }), "{again:?}");
    }
    assert_eq!(scene.cloud.disks_made(), 1);

    scene.cloud.set_disk_settings(settings(0));
    let volume = scene.made("other").await;
    scene.cloud.set_disk_settings(settings(3_600_000));
    let id = volume.id.as_str();
    for _ in 0..2 {
        let attached = scene
            .provider()
            .attach_volumes(&[to(id, "vm-1")], &none())
            .await
            .unwrap();
        assert!(matches!(attached[0], Err(Failure::Pending { .. })), "{attached:?}");
    }
    let found = scene.provider().get_volumes(&[id.to_owned()]).await.unwrap().remove(0);
    assert_eq!(found.unwrap().unwrap().attachments[0].node_id, "vm-1");
    for _ in 0..2 {
        let detached = scene
            .provider()
            .detach_volumes(&[from(id, "vm-1")], &none())
            .await
            .unwrap();
        assert!(matches!(detached[0], Err(Failure::Pending { .. })), "{detached:?}");
    }
}

#[tokio::test]
async fn snapshot_is_made_listed_restored_and_deleted() {
    let scene = Scene::start(1).await;
    let volume = scene.made("pvc").await;
    let new = NewSnapshot {
        name: "snap".into(),
        volume: volume.id.clone(),
        ..NewSnapshot::default()
    };
    let provider = scene.provider();
    let snapshot = provider.create_snapshot(&new, None, &none()).await.unwrap();
    assert_eq!((snapshot.ready, snapshot.size), (true, 2 * GIB));
    assert_eq!(provider.create_snapshot(&new, None, &none()).await.unwrap(), snapshot);
    let page = provider
        .list_snapshots(Some(&volume.id), None, 1, &none())
        .await
        .unwrap();
    assert_eq!((page.items, page.next), (vec![snapshot.clone()], None));
    let source = Some(VolumeSource::Snapshot(snapshot.id.clone()));
    let restored = NewVolume {
        source: source.clone(),
        ..wanted("restored")
    };
    assert_eq!(
        provider.create_volume(&restored, None, &none()).await.unwrap().source,
        source
    );
    provider.delete_snapshot(&snapshot.id, None, &none()).await.unwrap();
    assert_eq!(
        provider.get_snapshots(&[snapshot.id], &none()).await.unwrap(),
        [Ok(None)]
    );
}

#[tokio::test]
async fn volumes_grow_change_and_are_listed_in_pages() {
    let scene = Scene::start(0).await;
    let provider = scene.provider();
    for name in ["a", "b", "c"] {
        scene.made(name).await;
    }
    let first = provider.list_volumes(None, 2).await.unwrap();
    let second = provider.list_volumes(first.next.as_deref(), 2).await.unwrap();
    let ids: Vec<&str> = first
        .items
        .iter()
        .chain(&second.items)
        .map(|volume| volume.id.as_str())
        .collect();
    assert_eq!(
        (ids.as_slice(), second.next),
        (["disk-1", "disk-2", "disk-3"].as_slice(), None)
    );

    let size = |at_least| SizeRange {
        at_least,
        at_most: None,
    };
    assert_eq!(
        provider
            .expand_volume("disk-1", size(5 * GIB), None, &none())
            .await
            .unwrap()
            .size,
        5 * GIB
    );
    let too_large = failure(provider.expand_volume("disk-1", size(17 << 40), None, &none()).await);
    assert!(matches!(too_large, Failure::OutOfRange(_)), "{too_large:?}");

    let parameters = BTreeMap::from([("iops".to_owned(), "300".to_owned())]);
    provider
        .modify_volume("disk-2", &parameters, None, &none())
        .await
        .unwrap();
    assert_eq!(scene.cloud.disks()[1].spec.iops, Some(300));

    let place = Topology(BTreeMap::from([(KEY.to_owned(), "sim-1a".to_owned())]));
    let query = CapacityQuery {
        at: Some(place),
        ..CapacityQuery::default()
    };
    let room = provider.volume_capacity(&query).await.unwrap();
    assert_eq!(room.available, (64 << 40) - 9 * GIB);
}

#[tokio::test]
async fn disk_that_vanishes_is_detached_and_deleted() {
    let scene = Scene::start(1).await;
    let id = scene.made("pvc").await.id;
    let provider = scene.provider();
    assert!(provider.attach_volumes(&[to(&id, "vm-1")], &none()).await.unwrap()[0].is_ok());
    let refused = failure(provider.delete_volume(&id, None, &none()).await);
    assert!(matches!(refused, Failure::FailedPrecondition(_)), "{refused:?}");
    assert!(scene.cloud.delete_disk(&id));
    assert_eq!(
        provider.get_volumes(std::slice::from_ref(&id)).await.unwrap(),
        [Ok(None)]
    );
    assert_eq!(
        provider.detach_volumes(&[from(&id, "vm-1")], &none()).await.unwrap(),
        [Ok(())]
    );
    let gone = provider.attach_volumes(&[to(&id, "vm-1")], &none()).await.unwrap();
    assert!(matches!(gone[0], Err(Failure::NotFound(_))), "{gone:?}");
    provider.delete_volume(&id, None, &none()).await.unwrap();
}

#[tokio::test]
async fn failing_cloud_is_no_answer_about_volumes() {
    let scene = Scene::start(1).await;
    let id = scene.made("pvc").await.id;
    scene.cloud.set_faults([Fault::status(500)]);
    let provider = scene.provider();
    let unavailable = failure(provider.get_volumes(std::slice::from_ref(&id)).await);
    assert!(matches!(unavailable, Failure::Unavailable(_)), "{unavailable:?}");
    scene.cloud.set_faults([Fault::slow_down(7)]);
    let limited = failure(provider.create_volume(&wanted("other"), None, &none()).await);
    let seven = Some(Duration::from_secs(7));
    assert!(
        matches!(limited, Failure::RateLimited { after, .. } if after == seven),
        "{limited:?}"
    );
    scene.cloud.set_faults([]);
    assert!(
        provider.get_volumes(&[id]).await.unwrap()[0]
            .as_ref()
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn answers_that_cannot_be_are_not_used() {
    let component =
        tokio::task::spawn_blocking(|| cloudwit_test_support::programs::guests::test_guest("wrong_volumes"));
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load_file(&component.await.unwrap(), settings()).await.unwrap();
    assert_eq!(provider.abilities().names(), ["volumes"]);
    let ids = ["a", "other", "b"].map(str::to_owned);
    let found = provider.get_volumes(&ids).await.unwrap();
    assert!(
        matches!(&found[1], Err(Failure::InvalidResponse(problem)) if problem.contains("another")),
        "{found:?}"
    );
    assert!(found[0].is_ok() && found[2].is_ok(), "{found:?}");
    let bad = |answer: CloudError, part: &str| {
        let is_bad = matches!(&answer, CloudError::Fault(fault) if fault.kind == FaultKind::BadAnswer && fault.message.contains(part));
        assert!(is_bad, "{part}: {answer:?}");
    };
    bad(
        provider.get_volumes(&["short".to_owned()]).await.unwrap_err(),
        "0 answers for 1 items",
    );
    bad(
        provider
            .create_volume(&wanted("half"), None, &none())
            .await
            .unwrap_err(),
        "at least",
    );
    let missing = provider.list_volumes(None, 1).await.unwrap_err();
    assert!(
        matches!(&missing, CloudError::Fault(fault) if fault.kind == FaultKind::NotExported),
        "{missing:?}"
    );
    let too_many = provider.list_volumes(None, 1001).await.unwrap_err();
    assert!(
        matches!(&too_many, CloudError::Fault(fault) if fault.kind == FaultKind::Host),
        "{too_many:?}"
    );
}
