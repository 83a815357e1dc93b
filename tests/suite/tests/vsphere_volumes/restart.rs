//! The process is killed while tasks run: the next one finds what they make.

use std::time::Duration;

use cloudwit_test_support::clouds::vcsim::VolumeOptions;
use tonic::Code;

use crate::driver::{Cns, wanted};
use crate::sidecar_requests::{delete, publish, unpublish, within};

#[tokio::test(flavor = "multi_thread")]
async fn process_that_dies_in_mid_task_makes_nothing_twice() {
    let slow = VolumeOptions {
        task_delay: Duration::from_secs(4),
        ..VolumeOptions::default()
    };
    let mut cns = Cns::start(slow, "").await;
    let mut client = cns.client().await;
    let soon = Duration::from_secs(2);
    let late = client.create_volume(within(soon, wanted("pvc-1"))).await.unwrap_err();
    assert_eq!((late.code(), cns.calls("CnsCreateVolume")), (Code::DeadlineExceeded, 1));
    cns.restart().await;
    let mut client = cns.client().await;
    let id = cns.made(&mut client, "pvc-1").await;
    assert_eq!((cns.calls("CnsCreateVolume"), cns.volumes().await.len()), (1, 1));

    let late = client
        .controller_publish_volume(within(soon, publish(&id, cns.machine(0))))
        .await;
    assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
    cns.restart().await;
    let mut client = cns.client().await;
    let published = client
        .controller_publish_volume(publish(&id, cns.machine(0)))
        .await
        .unwrap();
    assert!(published.into_inner().publish_context["diskUUID"].starts_with("6000c29"));
    let late = client
        .controller_unpublish_volume(within(soon, unpublish(&id, cns.machine(0))))
        .await;
    assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
    cns.restart().await;
    let mut client = cns.client().await;
    client
        .controller_unpublish_volume(unpublish(&id, cns.machine(0)))
        .await
        .unwrap();
    let late = client.delete_volume(within(soon, delete(&id))).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    cns.restart().await;
    cns.client().await.delete_volume(delete(&id)).await.unwrap();
    assert!(cns.volumes().await.is_empty());
}
