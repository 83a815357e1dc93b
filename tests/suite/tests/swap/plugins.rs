//! One bad plugin takes everything down, or never comes back: what hurt users of other hosts of plugins, replayed in this one.

use cloudwit_host::{HostOptions, Limits, SwapResult};
use cloudwit_model::{Cloud, CloudError, FaultKind};
use cloudwit_suite::hosting::{Hosting, TRIGGER, guest_file, limited, node, settings};

fn kind(error: CloudError) -> FaultKind {
    match error {
        CloudError::Fault(fault) => fault.kind,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn kubewarden_682_unloadable_provider_does_not_affect_others() {
    let hosting = Hosting::new(HostOptions::default());
    let good = hosting.swappable(&guest_file("only_instances").await, settings()).await;
    let bad = hosting.swappable(&guest_file("panics").await, settings()).await;
    let swap = bad.swap(Ok((guest_file("crashes_early").await, settings()))).await;
    assert_eq!(swap.result, SwapResult::Load);
    for provider in [&good, &bad] {
        assert!(provider.lookup(&[node("a")]).await.is_ok());
    }
}

#[tokio::test]
async fn kubewarden_740_error_is_visible_without_call_and_clears() {
    let hosting = Hosting::new(HostOptions::default());
    let file = guest_file("only_instances").await;
    let provider = hosting.swappable(&file, settings()).await;
    provider.swap(Ok((guest_file("crashes_early").await, settings()))).await;
    let status = provider.status();
    let refused = status.refused().unwrap();
    assert!(refused.message.contains("does not start") && refused.message.contains("forgot who I am"));
    assert!(status.line().contains("forgot who I am"), "{}", status.line());
    let swap = provider.swap(Ok((file, settings()))).await;
    assert_eq!(swap.result, SwapResult::Unchanged);
    assert_eq!(provider.status().refused(), None, "what runs is what the files say");
}

#[tokio::test]
async fn envoy_16726_a_trap_costs_one_call_and_needs_no_restart() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.swappable(&guest_file("panics").await, settings()).await;
    for _ in 0..3 {
        assert_eq!(
            kind(provider.lookup(&[node(TRIGGER)]).await.unwrap_err()),
            FaultKind::Trap
        );
        assert!(provider.lookup(&[node("a")]).await.is_ok());
    }
    assert_eq!(provider.status().last_fault.unwrap().fault.kind, FaultKind::Trap);
    assert_eq!(hosting.metric("cloudwit_provider_instances_in_use"), Some(0.0));
}

#[tokio::test]
async fn envoy_33600_calls_beside_a_failing_one_succeed() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.swappable(&guest_file("panics").await, settings()).await;
    let (bad, good) = ([node(TRIGGER)], [node("a")]);
    let calls = (0..40).map(|number| provider.lookup(if number % 2 == 0 { &bad } else { &good }));
    let answers = futures::future::join_all(calls).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.is_ok(), number % 2 == 1, "call {number}");
    }
}

#[tokio::test]
async fn envoy_38801_guest_without_answer_is_a_fault() {
    let hosting = Hosting::new(HostOptions::default());
    let limits = Limits {
        cpu_time: std::time::Duration::from_millis(200),
        ..Limits::default()
    };
    let provider = hosting.swappable(&guest_file("spins").await, limited(limits)).await;
    assert_eq!(
        kind(provider.lookup(&[node(TRIGGER)]).await.unwrap_err()),
        FaultKind::Deadline
    );
    assert!(provider.lookup(&[node("a")]).await.is_ok());
}
