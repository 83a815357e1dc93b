//! What sidecars ask, and what they must read there.

use std::time::{Duration, Instant};

use cloudwit_csi::engine::batches::GATHER;
use cloudwit_csi::proto::*;
use cloudwit_sim_cloud::{DiskSettings, Fault, FaultKind, Operation};
use futures::future::join_all;
use prometheus_client::encoding::text::encode;
use tonic::Code;

use crate::scene::{Controller, Scene, dial};
use crate::sidecar_requests::{overdue, publish, unpublish, wanted_at, within};

pub fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, "topology.sim.csi.cloudwit.dev/zone", "sim-1a")
}

async fn made(client: &mut Controller, name: &str) -> Volume {
    let answer = client.create_volume(wanted(name)).await.unwrap();
    answer.into_inner().volume.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_disk_is_awaited_in_request_and_found_by_next() {
    let scene = Scene::start(1).await;
    scene.cloud.set_disk_settings(DiskSettings {
        attach_time: Duration::from_secs(3600),
        ..DiskSettings::default()
    });
    let mut client = scene.controller().await;
    let id = made(&mut client, "pvc-slow").await.volume_id;
    let late = overdue(|| {
        let request = within(Duration::from_millis(1500), publish(&id, "vm-1"));
        let mut client = client.clone();
        async move { client.controller_publish_volume(request).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    assert!(late.message().starts_with("still waiting: "), "{late:?}");
    assert_eq!(scene.driver.operations.count(), 1, "it goes on");
    scene.cloud.set_disk_settings(DiskSettings::default());
    scene.cloud.finish_disks();
    client
        .controller_publish_volume(within(Duration::from_secs(60), publish(&id, "vm-1")))
        .await
        .unwrap();
    assert_eq!(scene.driver.operations.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_on_the_machine_reads_how_to_find_the_device() {
    let scene = Scene::start(1).await;
    let mut client = scene.controller().await;
    let volume = made(&mut client, "pvc-device").await;
    let published = client
        .controller_publish_volume(publish(&volume.volume_id, "vm-1"))
        .await
        .unwrap();
    let context = published.into_inner().publish_context;
    assert!(context.contains_key("device.csi.cloudwit.dev/serial"), "{context:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_moves_only_after_it_was_detached() {
    let scene = Scene::start(4).await;
    let mut client = scene.controller().await;
    let id = made(&mut client, "pvc-moves").await.volume_id;
    client.controller_publish_volume(publish(&id, "vm-1")).await.unwrap();
    let elsewhere = client
        .controller_publish_volume(publish(&id, "vm-4"))
        .await
        .unwrap_err();
    assert_eq!(elsewhere.code(), Code::FailedPrecondition);
    assert!(elsewhere.message().contains("vm-1"), "{elsewhere:?}");
    for node in ["vm-1", "vm-1", ""] {
        client.controller_unpublish_volume(unpublish(&id, node)).await.unwrap();
    }
    client.controller_publish_volume(publish(&id, "vm-4")).await.unwrap();
    client.controller_unpublish_volume(unpublish(&id, "")).await.unwrap();
    let seen = client
        .controller_get_volume(ControllerGetVolumeRequest { volume_id: id })
        .await
        .unwrap();
    assert_eq!(seen.into_inner().status.unwrap().published_node_ids, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_machine_is_not_final_and_no_machine_is() {
    let scene = Scene::start(1).await;
    scene.cloud.set_disk_settings(DiskSettings {
        per_machine: 1,
        ..DiskSettings::default()
    });
    let mut client = scene.controller().await;
    let (one, two) = (made(&mut client, "pvc-1").await, made(&mut client, "pvc-2").await);
    client
        .controller_publish_volume(publish(&one.volume_id, "vm-1"))
        .await
        .unwrap();
    let full = client
        .controller_publish_volume(publish(&two.volume_id, "vm-1"))
        .await
        .unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    let no_machine = client
        .controller_publish_volume(publish(&two.volume_id, "vm-99"))
        .await
        .unwrap_err();
    assert_eq!(no_machine.code(), Code::NotFound, "{no_machine:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_parameter_of_a_class_is_named() {
    let scene = Scene::start(1).await;
    let mut client = scene.controller().await;
    let odd = CreateVolumeRequest {
        parameters: [("tpye".to_owned(), "fast".to_owned())].into(),
        ..wanted("pvc-odd")
    };
    let refused = client.create_volume(odd).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("tpye"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_cloud_is_retried_without_a_second_disk() {
    let scene = Scene::start(1).await;
    let mut client = scene.controller().await;
    for (number, kind) in [FaultKind::CutAfter, FaultKind::Cut, FaultKind::Garbage]
        .into_iter()
        .enumerate()
    {
        let name = format!("pvc-{number}");
        scene
            .cloud
            .set_faults([Fault::new(kind).on(Operation::CreateDisk).times(1)]);
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        made(&mut client, &name).await;
    }
    let all = client.list_volumes(ListVolumesRequest::default()).await.unwrap();
    assert_eq!((all.into_inner().entries.len(), scene.cloud.disks_made()), (3, 3));
}

/// Beside the sequential way, which has two requests for each attachment: a look and the attachment itself.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_volumes_at_once_share_requests() {
    const MANY: usize = 200;
    let scene = Scene::start(4).await;
    scene.cloud.set_disk_settings(DiskSettings {
        per_machine: 200,
        ..DiskSettings::default()
    });
    scene.cloud.set_latency(Duration::from_millis(20));
    let client = scene.controller().await;
    let begun = Instant::now();
    let create = (0..MANY).map(|number| {
        let mut client = client.clone();
        async move { made(&mut client, &format!("pvc-{number}")).await.volume_id }
    });
    let ids = join_all(create).await;
    let created = begun.elapsed();
    scene.cloud.reset_counters();
    scene.cloud.set_latency(GATHER);
    let begun = Instant::now();
    let attach = ids.iter().map(|id| {
        let mut client = client.clone();
        async move { client.controller_publish_volume(publish(id, "vm-1")).await.unwrap() }
    });
    join_all(attach).await;
    let (attached, requests) = (begun.elapsed(), scene.cloud.counters().total());
    println!("{MANY} volumes: created in {created:?}; attached in {attached:?} by {requests} requests");
    assert!(scene.cloud.disks().iter().all(|disk| disk.attachments.len() == 1));
    // Looks are gathered for that long, and attachments to one machine wait for each other, so the time has room for no more.
    let rounds = attached.as_millis() / GATHER.as_millis();
    assert!(
        u128::from(requests) <= 2 * rounds + 4,
        "{requests} requests for {MANY} attachments in {attached:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn socket_goes_with_the_lead_and_is_for_the_group() {
    use std::os::unix::fs::PermissionsExt;
    let mut scene = Scene::start(1).await;
    let mut client = scene.controller().await;
    made(&mut client, "pvc-last").await;
    // Whoever is answered has a socket that is finished: at first it has the mode of any other file.
    let mode = std::fs::metadata(scene.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    scene.end().await;
    assert!(!scene.socket().exists());
    let refused = client.create_volume(wanted("pvc-late")).await;
    assert!(refused.is_err(), "whoever is connected is cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_socket_costs_its_connection() {
    use tokio::io::AsyncWriteExt;
    let scene = Scene::start(1).await;
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b""] {
        let mut stream = tokio::net::UnixStream::connect(scene.socket()).await.unwrap();
        // The server may have hung up already.
        let _ = stream.write_all(garbage).await;
    }
    let mut client = Controller::new(dial(scene.socket()).await);
    made(&mut client, "pvc-after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_and_secrets_are_nowhere() {
    let scene = Scene::start(1).await;
    let mut client = scene.controller().await;
    let secret = CreateVolumeRequest {
        secrets: [("key".to_owned(), "hunter2-hunter2".to_owned())].into(),
        parameters: [("tpye".to_owned(), "x".to_owned())].into(),
        ..wanted("pvc-secret")
    };
    let refused = client.create_volume(secret).await.unwrap_err();
    assert!(!refused.message().contains("hunter2"));
    let mut text = String::new();
    encode(&mut text, &scene.registry).unwrap();
    let line = "cloudwit_csi_request_duration_seconds_count{driver=\"sim.csi.cloudwit.dev\",method=\"CreateVolume\",code=\"InvalidArgument\"} 1";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("cloudwit_csi_operations{driver=\"sim.csi.cloudwit.dev\"} 0"),
        "{text}"
    );
}
