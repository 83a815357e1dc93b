//! Calls of well-behaved guests: what reaches them, what they may ask the host, and how many run at a time.

use std::time::{Duration, Instant};

use cloudwit_host::{HostOptions, Limits, ProviderSettings};
use cloudwit_model::{
    Cloud, CloudError, Evidence, Failure, FaultKind, NewRoute, NodeRef, ObjectEvent, Presence, Route, RouteTokens,
    Service, Subject, Target, TargetUpdate,
};
use cloudwit_suite::hosting::{Hosting, LONG, TRIGGER, limited, node, settings};
use cloudwit_test_support::eventually;
use futures::future::join_all;

const IN_USE: &str = "cloudwit_provider_instances_in_use";

fn trigger(answers: usize) -> Vec<NodeRef> {
    (0..answers)
        .map(|number| {
            if number == 0 {
                node(TRIGGER)
            } else {
                node(&number.to_string())
            }
        })
        .collect()
}

/// A Node at which the guest `sleeps` sleeps only so long.
fn sleep_for(milliseconds: u64) -> Vec<NodeRef> {
    vec![NodeRef {
        system_uuid: Some(milliseconds.to_string()),
        ..node(TRIGGER)
    }]
}

#[tokio::test]
async fn every_kind_of_answer_arrives_as_it_was_given() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("only_instances", settings()).await;
    assert_eq!(provider.lookup(&[]).await.unwrap(), []);
    let answers = provider.lookup(&trigger(18)).await.unwrap();
    let Ok(Presence::Running(full)) = &answers[0] else {
        panic!("{:?}", answers[0])
    };
    assert_eq!(full.provider_id, "test://full");
    assert_eq!(
        (
            full.instance_type.as_deref(),
            full.zone.as_deref(),
            full.region.as_deref()
        ),
        (Some("large"), None, Some("north"))
    );
    assert_eq!(full.labels["rack"], "7");
    assert_eq!(full.addresses.len(), 2);
    assert!(matches!(&answers[1], Ok(Presence::Stopped(off)) if off.provider_id == "test://off"));
    assert_eq!(answers[2], Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(answers[3], Ok(Presence::Absent(Evidence::ByName)));
    let failures: Vec<&Failure> = answers[4..].iter().map(|answer| answer.as_ref().unwrap_err()).collect();
    // A pause of 1 ms is moved to the shortest that is allowed.
    let after = Duration::from_millis(100);
    assert_eq!(
        *failures[1],
        Failure::Pending {
            after,
            token: "t".into(),
            message: "b".into()
        }
    );
    let labels: Vec<&str> = failures.iter().map(|failure| failure.label()).collect();
    let all = [
        "not_found",
        "pending",
        "rate_limited",
        "denied",
        "invalid",
        "conflict",
        "unavailable",
        "implemented_elsewhere",
        "other",
        "already_exists",
        "exhausted",
        "out_of_range",
        "failed_precondition",
        "aborted",
    ];
    let shown: Vec<String> = failures[9..12].iter().map(|failure| failure.to_string()).collect();
    assert_eq!(
        shown,
        [
            "already exists: j (DuplicateName)",
            "exhausted: k: OverQuota",
            "out of range: l"
        ]
    );
    assert_eq!(labels, all);
}

#[tokio::test]
async fn the_largest_batch_is_taken_and_a_larger_one_is_not() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("only_instances", settings()).await;
    let nodes: Vec<NodeRef> = (0..1001).map(|number| node(&number.to_string())).collect();
    assert_eq!(provider.lookup(&nodes[..1000]).await.unwrap().len(), 1000);
    let error = provider.lookup(&nodes).await.unwrap_err();
    assert!(
        error.to_string().contains("1001 Nodes at once, at most 1000"),
        "{error}"
    );
}

#[tokio::test]
async fn state_outlives_calls_and_locks_do_not() {
    let hosting = Hosting::new(HostOptions::default());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret").unwrap();
    let grants = format!(
        "secrets: [{{name: key, file: {}, uses: [hmac]}}]\ncluster: {{nodes: true}}\n",
        file.path().display()
    );
    let settings = ProviderSettings {
        grants: serde_saphyr::from_str(&grants).unwrap(),
        ..settings()
    };
    let provider = hosting.load("asks_host", settings).await;
    let mut ids = std::collections::BTreeSet::new();
    for count in 1..=3 {
        let answer = provider.lookup(&trigger(2)).await.unwrap_err().to_string();
        for part in [
            "cluster \"test-cluster\"",
            "time left true",
            "dry run false",
            &format!("count {count};"),
            "swapped false",
            "lock true false",
            "digest 32",
            "hmac Ok(32)",
            "revealed false",
            "other key false",
            "nodes Ok(1)",
            "services Err(\"the view of all Services is not granted; to allow it, write in the grants: cluster: {services: true}\")",
            "asked about 2",
        ] {
            assert!(answer.contains(part), "{part} is missing in: {answer}");
        }
        let id = answer.split("call ").nth(1).unwrap().split('.').next().unwrap();
        assert!(ids.insert(id.to_owned()), "{id} comes again");
    }
}

#[tokio::test]
async fn events_are_only_about_the_objects_of_the_call_and_bounded() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting
        .load(
            "sends_events",
            limited(Limits {
                events: 10,
                ..Limits::default()
            }),
        )
        .await;
    provider.lookup(&trigger(1)).await.unwrap();
    let events = hosting.outside.events();
    assert_eq!(events.len(), 10);
    let fine = |event: &ObjectEvent| event.subject == Subject::Node(TRIGGER.into()) && event.reason == "Counted";
    assert!(events.iter().all(fine), "{events:?}");
}

#[tokio::test]
async fn balancer_calls_pass_tokens_and_annotation_changes() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("no_ingress", settings()).await;
    let service = Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u-1".into(),
        ..Service::default()
    };
    let targets = [Target {
        node: node("a"),
        ready: false,
    }];
    assert_eq!(provider.balancer_name(&service).await.unwrap(), "au1");
    let changes = provider.update_targets(&service, &targets, Some("t-7")).await.unwrap();
    assert_eq!(
        (changes[0].key.as_str(), changes[0].value.as_deref()),
        ("token", Some("t-7"))
    );
    let changes = provider.delete_balancer(&service, None).await.unwrap();
    assert_eq!((changes[0].key.as_str(), changes[0].value.as_deref()), ("token", None));
}

fn services(count: usize) -> Vec<Service> {
    let service = |number| Service {
        namespace: "default".into(),
        name: format!("s{number}"),
        uid: format!("u-{number}"),
        ..Service::default()
    };
    (0..count).map(service).collect()
}

fn updates(services: &[Service]) -> Vec<TargetUpdate<'_>> {
    let update = |service| TargetUpdate { service, token: None };
    services.iter().map(update).collect()
}

/// By the kit's default, one after the other; one of them fails, and another continues.
#[tokio::test]
async fn target_updates_are_answered_in_order_and_fail_alone() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("no_ingress", settings()).await;
    let mut services = services(50);
    services[7].name = TRIGGER.into();
    let mut updates = updates(&services);
    updates[49].token = Some("t-49");
    let results = provider.update_targets_of(&updates, &[]).await.unwrap();
    assert_eq!(results.len(), 50);
    assert!(matches!(&results[7], Err(Failure::Conflict(_))), "{:?}", results[7]);
    assert_eq!(results[49].as_ref().unwrap()[0].value.as_deref(), Some("t-49"));
    let fine = results.iter().filter(|result| result.as_ref().is_ok_and(Vec::is_empty));
    assert_eq!(fine.count(), 48);
    assert_eq!(provider.update_targets_of(&[], &[]).await, Ok(vec![]), "without a call");
}

#[tokio::test]
async fn target_updates_of_another_length_are_a_fault() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("wrong_updates", settings()).await;
    let services = services(3);
    let fault = |error| match error {
        CloudError::Fault(fault) => fault,
        other => panic!("{other:?}"),
    };
    let short = fault(provider.update_targets_of(&updates(&services), &[]).await.unwrap_err());
    assert_eq!(short.kind, FaultKind::BadAnswer);
    assert!(short.message.contains("load-balancers.update-targets"), "{short}");
    let many = vec![updates(&services)[0]; 51];
    let refused = fault(provider.update_targets_of(&many, &[]).await.unwrap_err());
    assert_eq!(refused.kind, FaultKind::Host);
    assert!(refused.message.contains("51 Services"), "{refused}");
}

/// Tokens reach the change that they are about, and changes without one are begun.
#[tokio::test]
async fn reachable_balancer_reports_remaining_work() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("unfinished", settings()).await;
    let service = &services(1)[0];
    let mut token = None;
    let mut told = Vec::new();
    loop {
        let balancer = provider.ensure_balancer(service, &[], token.as_deref()).await.unwrap();
        assert_eq!(balancer.ingress.len(), 1);
        let Some(work) = balancer.remaining else { break };
        assert_eq!(work.after, Duration::from_secs(5));
        told.push(work.message);
        token = Some(work.token);
    }
    assert_eq!(told, ["0 targets are added", "targets are checked"]);
}

#[tokio::test]
async fn pending_route_changes_are_continued_by_their_tokens() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.load("unfinished", settings()).await;
    let create = ["10.0.1.0/24", "10.0.2.0/24"].map(|destination| NewRoute {
        name_hint: "u".into(),
        destination: destination.into(),
        node: node("a"),
    });
    let delete = [Route {
        id: "r".into(),
        destination: "10.0.3.0/24".into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    }];
    let token_of = |result: &Result<(), Failure>| match result {
        Ok(()) => None,
        Err(Failure::Pending { token, after, .. }) if *after == Duration::from_secs(5) => Some(token.clone()),
        other => panic!("{other:?}"),
    };
    let (one, two) = (Some("1".to_owned()), Some("2".to_owned()));
    let first = provider
        .apply_routes(&create, &delete, RouteTokens::NONE)
        .await
        .unwrap();
    assert_eq!(
        first.created.iter().map(token_of).collect::<Vec<_>>(),
        [one.clone(), one.clone()]
    );
    assert_eq!(token_of(&first.deleted[0]), one);
    let tokens = RouteTokens {
        created: vec![None, two],
        deleted: vec![one.clone()],
    };
    let next = provider.apply_routes(&create, &delete, &tokens).await.unwrap();
    assert_eq!(next.created.iter().map(token_of).collect::<Vec<_>>(), [one, None]);
    assert_eq!(token_of(&next.deleted[0]).as_deref(), Some("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_calls_at_once_8_run_at_a_time_and_all_are_answered() {
    const PAUSE: u64 = 50;
    let hosting = Hosting::new(HostOptions {
        pool_size: 8,
        ..HostOptions::default()
    });
    let provider = hosting
        .load(
            "sleeps",
            limited(Limits {
                concurrency: 64,
                ..Limits::default()
            }),
        )
        .await;
    let nodes = sleep_for(PAUSE);
    let started = Instant::now();
    let answers = join_all((0..64).map(|_| provider.lookup(&nodes))).await;
    // Eight rounds; with more at a time it would be less.
    assert!(
        started.elapsed() >= Duration::from_millis(8 * PAUSE),
        "{:?}",
        started.elapsed()
    );
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(hosting.metric(IN_USE), Some(0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_gets_no_instance_in_time_is_the_hosts_fault() {
    let hosting = Hosting::new(HostOptions {
        pool_size: 1,
        ..HostOptions::default()
    });
    let hog = hosting.load("sleeps", settings()).await;
    let limits = Limits {
        wall_time: Duration::from_secs(10),
        ..Limits::default()
    };
    let starved = hosting.load("only_instances", limited(limits)).await;
    let task = tokio::spawn(async move { hog.lookup(&sleep_for(3_600_000)).await });
    eventually(LONG, "the only instance is in use", || async {
        hosting.metric(IN_USE) == Some(1.0)
    })
    .await;
    match starved.lookup(&[node("a")]).await {
        Err(CloudError::Fault(fault)) => {
            assert_eq!(fault.kind, FaultKind::Host);
            assert!(fault.message.contains("no instance was free for 10s"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    task.abort();
    eventually(LONG, "the instance is free", || async {
        hosting.metric(IN_USE) == Some(0.0)
    })
    .await;
    assert_eq!(starved.lookup(&[node("a")]).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_cancels_it_at_once() {
    let hosting = Hosting::new(HostOptions {
        pool_size: 1,
        ..HostOptions::default()
    });
    let provider = hosting.load("sleeps", settings()).await;
    let nodes = sleep_for(3_600_000);
    let mut call = Box::pin(provider.lookup(&nodes));
    tokio::select! {
        answer = &mut call => panic!("{answer:?}"),
        () = eventually(LONG, "the call runs", || async { hosting.metric(IN_USE) == Some(1.0) }) => {}
    }
    drop(call);
    assert_eq!(hosting.metric(IN_USE), Some(0.0));
    let cancelled =
        "cloudwit_provider_calls_total{provider=\"guest\",operation=\"instances.lookup\",result=\"cancelled\"}";
    assert_eq!(hosting.metric(cancelled), Some(1.0));
    // The pool has one place, so this only works when the dropped call gave it back.
    assert_eq!(provider.lookup(&[node("a")]).await.unwrap().len(), 1);
}

/// A Node at which the guest `holds_memory` has so many mebibytes for so many milliseconds.
fn hold(mebibytes: u64, milliseconds: u64) -> Vec<NodeRef> {
    vec![NodeRef {
        provider_id: Some(mebibytes.to_string()),
        system_uuid: Some(milliseconds.to_string()),
        ..node(TRIGGER)
    }]
}

#[tokio::test]
async fn calls_together_stay_within_the_guest_memory() {
    let hosting = Hosting::new(HostOptions {
        guest_memory_bytes: Some(150 << 20),
        ..HostOptions::default()
    });
    let provider = hosting.load("holds_memory", settings()).await;
    let nodes = hold(60, 20);
    let answers = join_all((0..10).map(|_| provider.lookup(&nodes))).await;
    for answer in answers {
        assert!(matches!(answer.unwrap()[0], Ok(Presence::Running(_))));
    }
    let memory = provider.guest_memory();
    assert_eq!((memory.used, memory.share), (0, 150 << 20));
    assert!((60 << 20..=150 << 20).contains(&memory.peak), "{memory:?}");
}

/// Four calls that never end want twice the memory there is: each ends by its own deadline, whether it has memory or waits for some.
#[tokio::test]
async fn calls_that_wait_for_memory_end_by_their_wall_time() {
    let hosting = Hosting::new(HostOptions {
        guest_memory_bytes: Some(130 << 20),
        ..HostOptions::default()
    });
    let limits = Limits {
        wall_time: Duration::from_secs(10),
        ..Limits::default()
    };
    let provider = hosting.load("holds_memory", limited(limits)).await;
    let nodes = hold(60, 3_600_000);
    for ended in join_all((0..4).map(|_| provider.lookup(&nodes))).await {
        let Err(CloudError::Fault(fault)) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(fault.kind, FaultKind::Deadline, "{fault}");
    }
    let memory = provider.guest_memory();
    assert!(memory.used == 0 && memory.peak <= 130 << 20, "{memory:?}");
}

#[tokio::test]
async fn a_provider_full_of_memory_leaves_another_its_share() {
    let hosting = Hosting::new(HostOptions {
        guest_memory_bytes: Some(200 << 20),
        ..HostOptions::default()
    });
    let named = |name: &str| ProviderSettings {
        name: name.into(),
        ..settings()
    };
    let hungry = hosting.load("holds_memory", named("hungry")).await;
    let modest = hosting.load("holds_memory", named("modest")).await;
    let hours = hold(60, 3_600_000);
    let full = join_all((0..10).map(|_| hungry.lookup(&hours)));
    let others = async {
        eventually(LONG, "the memory is held", || async {
            hungry.guest_memory().used > 60 << 20
        })
        .await;
        modest.lookup(&hold(60, 0)).await.unwrap()
    };
    tokio::select! {
        answers = others => assert!(matches!(answers[0], Ok(Presence::Running(_)))),
        _ = full => panic!("nobody can have ended"),
    }
}
