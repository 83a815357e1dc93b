//! Bad days of Cinder: answers that never come, quotas, backends that fail, full servers, states that take their time, and what others do behind the driver's back.

use std::time::Duration;

use cloudwit_test_support::clouds::openstack::Service;
use cloudwit_test_support::clouds::openstack::volumes::MOST_DISKS;
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::gate::fault::Fault;
use http::{Method, StatusCode};
use tonic::Code;

use crate::driver::{Cinder, wanted};
use crate::sidecar_requests::{GIB, delete, grow, overdue, publish, unpublish, within};

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_never_come_make_no_second_volume() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let gate = cinder.gate(Service::BlockStorage);
    for (number, fault) in [
        Fault::broken(10),
        Fault::cut(10),
        Fault::status(StatusCode::BAD_GATEWAY),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("pvc-{number}");
        // Cinder has taken the request.
        let fault = gate.fail(Point::after(Method::POST, "/v3/volumes"), fault.times(1));
        let failed = client.create_volume(wanted(&name)).await.unwrap_err();
        assert!(matches!(failed.code(), Code::Unavailable | Code::Aborted), "{failed:?}");
        assert_eq!(fault.met(), 1);
        cinder.made(&mut client, &name).await;
        gate.open();
    }
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_that_is_used_up_has_another_place_chosen() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let id = cinder.made(&mut client, "pvc-1").await;
    for (what, limit) in [("volumes", 1), ("gigabytes", 3)] {
        cinder.project.quota(Service::BlockStorage, what, limit).await.unwrap();
    }
    let full = client.create_volume(wanted("pvc-2")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    assert!(full.message().contains("quota"), "{full:?}");
    let large = client.controller_expand_volume(grow(&id, 9 * GIB)).await.unwrap_err();
    assert_eq!(large.code(), Code::ResourceExhausted, "{large:?}");
    client.controller_expand_volume(grow(&id, 3 * GIB)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_creation_is_final_once_nothing_is_left() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    // The backend fails more often than the scheduler tries it, which then has none left.
    cinder.project.fail_volumes(9).await.unwrap();
    let full = client.create_volume(wanted("pvc-1")).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    assert!(full.message().contains("Cinder gave"), "{full:?}");
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 0);
    assert_eq!(cinder.count(Service::BlockStorage, "POST", "/volumes").await, 1);
    cinder.project.fail_volumes(0).await.unwrap();
    cinder.made(&mut client, "pvc-1").await;
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_creation_between_two_rpcs_is_read_by_the_next() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    cinder.project.fail_volumes(9).await.unwrap();
    let (mut late, mut lost) = (0, 0);
    let full = loop {
        // As short as an RPC of a busy sidecar.
        let new = within(Duration::from_millis(1_500), wanted("pvc-1"));
        let status = client.create_volume(new).await.unwrap_err();
        match status.code() {
            Code::DeadlineExceeded => late += 1,
            // The client gave it up before the answer arrived, which may have been the refusal.
            Code::Cancelled => lost += 1,
            _ => break status,
        }
        let posts = cinder.count(Service::BlockStorage, "POST", "/volumes").await;
        assert!(late + lost < 200 && posts <= 1 + lost, "{late} {lost} {posts}");
    };
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    assert!(late + lost > 0);
    let posts = cinder.count(Service::BlockStorage, "POST", "/volumes").await;
    assert!((1..=1 + lost).contains(&posts), "{lost} {posts}");
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_never_end_are_given_up_by_the_call_alone() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    cinder.project.volume_pace(None).await.unwrap();
    let soon = Duration::from_secs(5);
    let late = overdue(|| {
        let (new, mut client) = (within(soon, wanted("pvc-1")), client.clone());
        async move { client.create_volume(new).await }
    })
    .await;
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(late.message().starts_with("still waiting: "), "{late:?}");
    cinder.project.volume_pace(Some(0.0)).await.unwrap();
    let id = cinder.made(&mut client, "pvc-1").await;
    assert_eq!(cinder.project.volumes().await.unwrap().len(), 1);
    client.delete_volume(delete(&id)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_has_another_one_chosen() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let many = i64::try_from(MOST_DISKS).unwrap() + 1;
    cinder
        .project
        .quota(Service::BlockStorage, "volumes", many)
        .await
        .unwrap();
    cinder.project.volume_pace(Some(0.0)).await.unwrap();
    // The server's own disk takes a place.
    let mut ids = Vec::new();
    for number in 0..MOST_DISKS {
        ids.push(cinder.made(&mut client, &format!("pvc-{number}")).await);
    }
    let last = ids.pop().unwrap();
    for id in &ids {
        client
            .controller_publish_volume(publish(id, cinder.server(0)))
            .await
            .unwrap();
    }
    let full = client.controller_publish_volume(publish(&last, cinder.server(0))).await;
    let full = full.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
    client
        .controller_publish_volume(publish(&last, cinder.server(1)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_volume_that_comes_to_no_server_is_neither_waited_for_nor_kept() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let id = cinder.made(&mut client, "pvc-1").await;
    cinder.project.volume_status(&id, "reserved").await.unwrap();
    let left = client
        .controller_publish_volume(publish(&id, cinder.server(0)))
        .await
        .unwrap_err();
    assert_eq!(left.code(), Code::FailedPrecondition, "{left:?}");
    assert!(left.message().contains("--state available"), "{left:?}");
    client
        .controller_unpublish_volume(unpublish(&id, cinder.server(0)))
        .await
        .unwrap();
    cinder.project.volume_status(&id, "available").await.unwrap();
    client
        .controller_publish_volume(publish(&id, cinder.server(1)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_take_away_is_gone_and_nothing_waits_for_it() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let (one, two) = (
        cinder.made(&mut client, "pvc-1").await,
        cinder.made(&mut client, "pvc-2").await,
    );
    client
        .controller_publish_volume(publish(&one, cinder.server(0)))
        .await
        .unwrap();
    cinder.project.vanish_volume(&one).await.unwrap();
    client
        .controller_unpublish_volume(unpublish(&one, cinder.server(0)))
        .await
        .unwrap();
    let missing = client
        .controller_publish_volume(publish(&one, cinder.server(0)))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound, "{missing:?}");
    client.delete_volume(delete(&one)).await.unwrap();

    cinder.project.delete_server(&cinder.servers[1]).await.unwrap();
    let no_server = client
        .controller_publish_volume(publish(&two, cinder.server(1)))
        .await
        .unwrap_err();
    assert_eq!(no_server.code(), Code::NotFound, "{no_server:?}");
    client
        .controller_unpublish_volume(unpublish(&two, cinder.server(1)))
        .await
        .unwrap();
    client
        .controller_publish_volume(publish(&two, cinder.server(0)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_that_is_not_cinders_word_is_no_absence() {
    let cinder = Cinder::start().await;
    let mut client = cinder.client().await;
    let id = cinder.made(&mut client, "pvc-1").await;
    client
        .controller_publish_volume(publish(&id, cinder.server(0)))
        .await
        .unwrap();
    let gate = cinder.gate(Service::BlockStorage);
    for fault in [
        Fault::status(StatusCode::SERVICE_UNAVAILABLE),
        Fault::status(StatusCode::NOT_FOUND).body("text/html", "<html>no such backend</html>"),
        Fault::cut(40),
    ] {
        let fault = gate.fail(Point::before(Method::GET, "/v3/volumes"), fault);
        let unsaid = client
            .controller_unpublish_volume(unpublish(&id, cinder.server(0)))
            .await
            .unwrap_err();
        assert!(matches!(unsaid.code(), Code::Unavailable | Code::Aborted), "{unsaid:?}");
        assert!(fault.met() >= 1);
        gate.open();
    }
    assert_eq!(
        cinder.count(Service::Compute, "DELETE", "os-volume_attachments").await,
        0
    );
}
