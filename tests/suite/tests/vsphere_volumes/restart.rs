//! The process is killed while tasks run: the next one finds what they make.

use std::time::Duration;

use cloudwit_test_support::clouds::vcsim::VolumeOptions;
use tonic::Code;

use crate::driver::{Cns, wanted};
use crate::sidecar_requests::{delete, overdue, publish, unpublish, within};

#[tokio::test(flavor = "multi_thread")]
async fn process_that_dies_in_mid_task_makes_nothing_twice() {
    let slow = VolumeOptions {
        task_delay: Duration::from_secs(6),
        ..VolumeOptions::default()
    };
    let mut cns = Cns::start(slow, "").await;
    let client = cns.client().await;
    let soon = Duration::from_secs(2);
    loop {
        let late = overdue(|| {
            let (new, mut client) = (within(soon, wanted("pvc-1")), client.clone());
            async move { client.create_volume(new).await }
        })
        .await;
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
        // On a busy machine the first RPC may be over before vCenter has been asked.
        if late.message().contains("creating the volume pvc-1") {
            break;
        }
    }
    assert_eq!(cns.calls("CnsCreateVolume"), 1);
    cns.restart().await;
    let mut client = cns.client().await;
    let id = cns.made(&mut client, "pvc-1").await;
    assert_eq!((cns.calls("CnsCreateVolume"), cns.volumes().await.len()), (1, 1));

    let late = overdue(|| {
        let (new, mut client) = (within(soon, publish(&id, cns.machine(0))), client.clone());
        async move { client.controller_publish_volume(new).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    cns.restart().await;
    let mut client = cns.client().await;
    let published = client
        .controller_publish_volume(publish(&id, cns.machine(0)))
        .await
        .unwrap();
    assert!(published.into_inner().publish_context["diskUUID"].starts_with("6000c29"));
    let late = overdue(|| {
        let (gone, mut client) = (within(soon, unpublish(&id, cns.machine(0))), client.clone());
        async move { client.controller_unpublish_volume(gone).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    cns.restart().await;
    let mut client = cns.client().await;
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(0)))
        .await
        .unwrap();
    let late = overdue(|| {
        let (gone, mut client) = (within(soon, delete(&id)), client.clone());
        async move { client.delete_volume(gone).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    cns.restart().await;
    cns.client().await.delete_volume(delete(&id)).await.unwrap();
    assert!(cns.volumes().await.is_empty());
}
