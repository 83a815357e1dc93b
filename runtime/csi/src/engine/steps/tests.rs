use super::*;
use crate::engine::testing::{FakeCloud, GIB, from, new_volume, passphrase, to, volume};

fn failure<T: std::fmt::Debug>(result: Result<T, CloudError>) -> Failure {
    match result {
        Err(CloudError::Failure(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn none() -> VolumeSecrets {
    VolumeSecrets::default()
}

fn steps(cloud: &Arc<FakeCloud>) -> Steps {
    Steps::start(cloud.clone())
}

#[tokio::test(start_paused = true)]
async fn attach_checks_first() {
    let cloud = FakeCloud::new();
    cloud.add("v", Some("a"));
    let steps = steps(&cloud);
    let missing = steps.perform(&Work::Attach(to("gone", "a")), &none(), None).await;
    assert!(matches!(failure(missing), Failure::NotFound(_)));
    let elsewhere = steps.perform(&Work::Attach(to("v", "b")), &none(), None).await;
    let elsewhere = failure(elsewhere);
    assert!(matches!(&elsewhere, Failure::FailedPrecondition(reason) if reason.message.ends_with("attached to a")));
    let read_only = NewAttachment {
        read_only: true,
        ..to("v", "a")
    };
    let otherwise = steps.perform(&Work::Attach(read_only), &none(), None).await;
    assert!(matches!(failure(otherwise), Failure::AlreadyExists(_)));
    assert!(
        cloud.calls().iter().all(|call| call.starts_with("get")),
        "{:?}",
        cloud.calls()
    );
    let again = steps.perform(&Work::Attach(to("v", "a")), &none(), None).await;
    assert_eq!(
        again,
        Ok(Done::Attached(AttachedVolume::default())),
        "it is what was asked for"
    );
}

#[tokio::test(start_paused = true)]
async fn check_is_not_repeated_while_attachment_continues() {
    let cloud = FakeCloud::new();
    cloud.add("v", None);
    let attached = steps(&cloud)
        .perform(&Work::Attach(to("v", "a")), &none(), Some("token"))
        .await;
    assert_eq!(attached, Ok(Done::Attached(AttachedVolume::default())));
    assert_eq!(cloud.calls(), ["attach v"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_detached() {
    let cloud = FakeCloud::new();
    assert_eq!(
        steps(&cloud)
            .perform(&Work::Detach(from("gone", "a")), &none(), None)
            .await,
        Ok(Done::Gone)
    );
}

#[tokio::test(start_paused = true)]
async fn volume_of_the_same_name_has_to_fit() {
    let cloud = FakeCloud::new();
    let steps = steps(&cloud);
    let created = steps
        .perform(&Work::Create(new_volume("n")), &none(), None)
        .await
        .unwrap();
    assert_eq!(created, Done::Created(volume("id-of-n", 2 * GIB)));
    let larger = NewVolume {
        size: SizeRange {
            at_least: 3 * GIB,
            at_most: None,
        },
        ..new_volume("n")
    };
    let refused = failure(steps.perform(&Work::Create(larger), &none(), None).await);
    assert!(matches!(&refused, Failure::AlreadyExists(reason) if reason.message.contains("2147483648 bytes")));
    let copy = NewVolume {
        source: Some(VolumeSource::Volume("id-of-n".into())),
        ..new_volume("copy")
    };
    assert!(steps.perform(&Work::Create(copy.clone()), &none(), None).await.is_ok());
    let plain = NewVolume { source: None, ..copy };
    let refused = failure(steps.perform(&Work::Create(plain), &none(), None).await);
    assert!(matches!(refused, Failure::AlreadyExists(_)), "it began with something");
}

#[tokio::test(start_paused = true)]
async fn volume_is_at_least_as_large_as_its_source() {
    let cloud = FakeCloud::new();
    cloud.add_snapshot("s", 5 * GIB);
    let steps = steps(&cloud);
    let of = |source: &str, most| NewVolume {
        source: Some(VolumeSource::Snapshot(source.into())),
        size: SizeRange {
            at_least: 2 * GIB,
            at_most: most,
        },
        ..new_volume("n")
    };
    let small = steps
        .perform(&Work::Create(of("s", Some(4 * GIB))), &none(), None)
        .await;
    assert!(matches!(failure(small), Failure::OutOfRange(_)));
    assert!(steps.perform(&Work::Create(of("s", None)), &none(), None).await.is_ok());
    assert!(
        steps
            .perform(&Work::Create(of("s", None)), &none(), Some("token"))
            .await
            .is_ok()
    );
    assert_eq!(cloud.calls(), ["create n 5", "create n 5"], "also when it goes on");
}

#[tokio::test(start_paused = true)]
async fn volume_that_was_made_is_found_when_its_source_is_gone() {
    let cloud = FakeCloud::new();
    let steps = steps(&cloud);
    let of_gone = NewVolume {
        source: Some(VolumeSource::Snapshot("gone".into())),
        ..new_volume("n")
    };
    assert!(steps.perform(&Work::Create(of_gone), &none(), None).await.is_ok());
    assert_eq!(cloud.calls(), ["create n 2"], "the provider decides");
}

#[tokio::test(start_paused = true)]
async fn volume_that_is_large_enough_is_left_alone() {
    let cloud = FakeCloud::new();
    cloud.add("v", Some("a"));
    let steps = steps(&cloud);
    let expand = |gib: u64, online| Work::Expand {
        volume: "v".into(),
        size: SizeRange {
            at_least: gib * GIB,
            at_most: None,
        },
        online,
    };
    let expanded = |gib: u64| {
        Ok(Done::Expanded(ExpandedVolume {
            size: gib * GIB,
            on_node: true,
        }))
    };
    assert_eq!(steps.perform(&expand(1, false), &none(), None).await, expanded(2));
    let attached = failure(steps.perform(&expand(3, false), &none(), None).await);
    assert!(matches!(attached, Failure::FailedPrecondition(_)));
    assert_eq!(cloud.calls(), ["get v", "get v"]);
    assert_eq!(steps.perform(&expand(3, true), &none(), None).await, expanded(3));
}

#[tokio::test(start_paused = true)]
async fn snapshot_of_another_volume_has_the_name() {
    let cloud = FakeCloud::new();
    let steps = steps(&cloud);
    let of = |volume: &str| {
        Work::CreateSnapshot(NewSnapshot {
            name: "s".into(),
            volume: volume.into(),
            ..NewSnapshot::default()
        })
    };
    assert!(steps.perform(&of("v"), &none(), None).await.is_ok());
    let other = steps.perform(&of("w"), &none(), None).await;
    assert!(matches!(failure(other), Failure::AlreadyExists(_)));
}

#[tokio::test(start_paused = true)]
async fn attachments_with_other_secrets_share_no_call() {
    let cloud = FakeCloud::new();
    for id in ["a", "b", "c", "d"] {
        cloud.add(id, None);
    }
    let steps = steps(&cloud);
    let attach = |volume: &'static str, node: &'static str, secrets: VolumeSecrets| {
        let steps = &steps;
        async move { steps.perform(&Work::Attach(to(volume, node)), &secrets, None).await }
    };
    let done = tokio::join!(
        attach("a", "one", passphrase("hunter2")),
        attach("b", "two", passphrase("hunter2")),
        attach("c", "three", passphrase("other")),
        attach("d", "four", none()),
    );
    assert!(
        done.0.is_ok() && done.1.is_ok() && done.2.is_ok() && done.3.is_ok(),
        "{done:?}"
    );
    let mut called: Vec<(Vec<String>, String)> = Vec::new();
    for (call, value) in cloud.secret_calls() {
        let mut volumes: Vec<String> = call.split(' ').skip(1).map(str::to_owned).collect();
        volumes.sort();
        called.push((volumes, value));
    }
    called.sort();
    let call = |volumes: &[&str], value: &str| (volumes.iter().map(ToString::to_string).collect(), value.to_owned());
    assert_eq!(called, [call(&["a", "b"], "hunter2"), call(&["c"], "other")]);
    assert!(cloud.calls().contains(&"attach d".to_owned()), "{:?}", cloud.calls());
    assert_eq!(cloud.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_change_has_the_secrets_of_its_request() {
    let cloud = FakeCloud::new();
    cloud.add("v", None);
    let steps = steps(&cloud);
    let larger = SizeRange {
        at_least: 3 * GIB,
        at_most: None,
    };
    let works = [
        Work::Create(new_volume("n")),
        Work::Attach(to("v", "a")),
        Work::Detach(from("v", "a")),
        Work::Expand {
            volume: "v".into(),
            size: larger,
            online: true,
        },
        Work::Modify {
            volume: "v".into(),
            parameters: Default::default(),
        },
        Work::CreateSnapshot(NewSnapshot {
            name: "s".into(),
            volume: "v".into(),
            ..NewSnapshot::default()
        }),
        Work::DeleteSnapshot("id-of-s".into()),
        Work::Delete("v".into()),
    ];
    for work in &works {
        let done = steps.perform(work, &passphrase("hunter2"), None).await;
        assert!(done.is_ok(), "{work}: {done:?}");
    }
    assert_eq!(cloud.secret_calls().len(), works.len(), "{:?}", cloud.calls());
}
