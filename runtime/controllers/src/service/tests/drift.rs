//! Looks for load balancers that were deleted or changed outside, with a moved clock.

use cloudwit_model::{Balancer, Endpoint, Failure, Ingress, IpMode};
use tokio::time::sleep;

use super::stage::{Stage, balancer};
use crate::service::*;

/// Short enough that the first look, which comes up to half a period late, is within the patience of `Stage::until`.
const PERIOD: Duration = Duration::from_secs(300);

async fn ready(count: usize, change: impl FnOnce(&mut crate::options::ServiceOptions)) -> Stage {
    let services = (0..count).map(|index| balancer(&format!("s{index}"))).collect();
    let stage = Stage::with(services, |options| {
        options.drift_period = Some(PERIOD);
        change(options);
    });
    stage
        .until("all are ready", |stage| {
            lock(&stage.api.services)
                .values()
                .all(|service| service.status.is_some())
        })
        .await;
    stage
}

fn at(ip: &str) -> Balancer {
    let endpoint = Endpoint::Ip(ip.parse().unwrap(), IpMode::Vip);
    Balancer {
        ingress: vec![Ingress {
            endpoint,
            ports: Vec::new(),
        }],
        annotations: Vec::new(),
        remaining: None,
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_balancer_costs_one_get_per_period_and_no_write() {
    let stage = ready(10, |_| {}).await;
    let patches = *lock(&stage.api.patches);
    sleep(PERIOD * 10).await;
    let gets = stage.count("get");
    assert!((80..=110).contains(&gets), "{gets}");
    assert_eq!(
        (stage.count("ensure"), stage.count("update")),
        (20, 0),
        "the first ones, and one full look each"
    );
    assert_eq!(
        (*lock(&stage.api.patches), stage.event("LoadBalancerDrifted")),
        (patches, None)
    );
}

/// `kubernetes/cloud-provider-openstack#1597`, `oracle/oci-cloud-controller-manager#196`.
#[tokio::test(start_paused = true)]
async fn openstack_1597_externally_deleted_balancer_is_rebuilt_live() {
    let stage = ready(1, |_| {}).await;
    *lock(&stage.cloud.shown) = Some(None);
    stage.until("the loss is seen", |stage| stage.count("get") == 1).await;
    *lock(&stage.cloud.shown) = None;
    stage
        .until("it is built again", |stage| stage.count("ensure") == 2)
        .await;
    assert!(stage.event("LoadBalancerDrifted").unwrap().contains("not found"));
    sleep(PERIOD * 2).await;
    assert_eq!(stage.count("ensure"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_address_other_than_the_status_is_ensured_again() {
    let stage = ready(1, |_| {}).await;
    *lock(&stage.cloud.shown) = Some(Some(at("203.0.113.99")));
    *lock(&stage.cloud.ingress) = at("203.0.113.99").ingress;
    stage
        .until("the status has the new address", |stage| {
            let service = lock(&stage.api.services)["s0"].clone();
            crate::kube::service::ingress(&service)[0].ip.as_deref() == Some("203.0.113.99")
        })
        .await;
    assert_eq!((stage.count("get"), stage.count("ensure")), (1, 2));
    sleep(PERIOD * 5).await;
    assert_eq!(stage.count("ensure"), 2);
}

#[tokio::test(start_paused = true)]
async fn permanently_differing_answer_is_accepted_after_one_ensure() {
    let stage = ready(1, |_| {}).await;
    *lock(&stage.cloud.shown) = Some(Some(Balancer::default()));
    sleep(PERIOD * 10).await;
    assert!(stage.count("get") >= 8, "{}", stage.count("get"));
    assert_eq!(
        stage.count("ensure"),
        3,
        "the first, that of the difference, and a full look"
    );
}

/// What the provider mends behind an address that is right all the time: the cloud builds, and the Service waits for it as always.
#[tokio::test(start_paused = true)]
async fn full_check_waits_for_build_and_hides_failed_one() {
    let stage = ready(1, |_| {}).await;
    let waiting = Failure::Pending {
        after: Duration::from_secs(60),
        token: "t".into(),
        message: "a listener is made".into(),
    };
    lock(&stage.cloud.failures).push_back(("ensure", Failure::Unavailable("down".into())));
    lock(&stage.cloud.failures).push_back(("ensure", waiting));
    // The sixth look comes within 5 to 7 periods, the twelfth within 10 to 14, the eighteenth not before the 15th.
    sleep(PERIOD * 9).await;
    assert_eq!(
        (stage.count("ensure"), stage.event("SyncLoadBalancerFailed")),
        (2, None)
    );
    sleep(PERIOD * 6).await;
    let pauses = stage.cloud.pauses("ensure");
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    assert!((59.0..=61.0).contains(&pauses[2]), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn budget_stretches_the_period_and_zero_switches_checks_off() {
    let stage = ready(60, |options| options.drift_per_minute = 2).await;
    sleep(PERIOD * 2).await;
    let before = stage.count("get");
    sleep(PERIOD * 6).await;
    let gets = stage.count("get") - before;
    assert!((59..=61).contains(&gets), "two a minute for half an hour, not {gets}");

    let stage = ready(3, |options| options.drift_period = None).await;
    sleep(PERIOD * 10).await;
    assert_eq!(stage.count("get"), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_check_changes_nothing_and_pause_holds_for_all() {
    let stage = ready(20, |_| {}).await;
    let slow_down = Failure::RateLimited {
        after: Some(Duration::from_secs(3600)),
        message: "slow down".into(),
    };
    *lock(&stage.cloud.always) = Some(("get", slow_down));
    sleep(Duration::from_secs(3500)).await;
    let first = stage.cloud.calls("get").len();
    assert!(first <= 2, "{first} looks, although the first was told to wait");
    assert_eq!(
        (stage.count("ensure"), stage.event("SyncLoadBalancerFailed")),
        (20, None)
    );
    *lock(&stage.cloud.always) = None;
    stage.until("looks go on", |stage| stage.count("get") > first + 5).await;
}

#[tokio::test(start_paused = true)]
async fn drift_check_due_in_call_does_not_repeat_failed_call() {
    let stage = ready(1, |_| {}).await;
    *lock(&stage.cloud.always) = Some(("update", Failure::Denied("no rights".into())));
    stage.cloud.held.send_replace(Some(("update", "s0")));
    stage.set_nodes(3);
    stage
        .until("the update is under way", |stage| stage.count("update") == 1)
        .await;
    // Every Service has its turn within two periods.
    sleep(PERIOD * 2).await;
    stage.cloud.held.send_replace(None);
    sleep(Duration::from_secs(299)).await;
    assert_eq!(
        stage.count("update"),
        1,
        "a refusal is repeated after 300 s, not before"
    );
    stage
        .until("it is tried again", |stage| stage.count("update") == 2)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_waits_for_the_cloud_is_not_looked_at() {
    let stage = ready(1, |_| {}).await;
    *lock(&stage.cloud.always) = Some(("update", Failure::Denied("no rights".into())));
    stage.set_nodes(3);
    stage
        .until("the update fails", |stage| stage.count("update") == 1)
        .await;
    sleep(PERIOD * 4).await;
    assert_eq!(stage.count("get"), 0);
    let pauses = stage.cloud.pauses("update");
    assert!(
        pauses.iter().all(|pause| *pause >= 300.0),
        "its pace is its own: {pauses:?}"
    );
}
