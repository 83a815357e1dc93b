//! Services that share a call for new targets: how many calls there are, and that the result of each is its own.

use cloudwit_model::{Failure, Retry};
use tokio::time::sleep;

use super::stage::{Stage, balancer};
use crate::queue::KeyPlace;
use crate::service::*;

async fn ready(balancers: usize, workers: usize) -> Stage {
    let services = (0..balancers).map(|index| balancer(&format!("s{index}"))).collect();
    let stage = Stage::new(services, 1, workers, true);
    stage
        .until("all are ready", |stage| {
            stage.count("ensure") == balancers && stage.controller.queue.is_empty()
        })
        .await;
    stage
}

impl Stage {
    fn batches(&self) -> Vec<usize> {
        lock(&self.cloud.batches).iter().map(Vec::len).collect()
    }

    /// Requests of a provider that lists once a call and writes once for each load balancer.
    fn requests(&self) -> usize {
        self.batches().iter().map(|size| 1 + size).sum()
    }

    /// Events, also those that are folded into one.
    fn updated(&self) -> usize {
        const MESSAGE: &str = "Updated load balancer with new hosts";
        let (events, folded) = (lock(&self.api.events), lock(&self.api.counted_up));
        let first = events.iter().filter(|(_, message)| message == MESSAGE).count();
        first + folded.iter().filter(|message| *message == MESSAGE).count()
    }

    fn failures(&self, name: &str) -> Option<u32> {
        self.controller
            .queue
            .state(&format!("default/{name}"))
            .map(|state| state.failures)
    }
}

#[tokio::test(start_paused = true)]
async fn node_behind_200_services_costs_one_request_each() {
    for (workers, batches) in [(1, vec![50; 4]), (8, vec![25; 8]), (200, vec![1; 200])] {
        let stage = ready(200, workers).await;
        *lock(&stage.cloud.takes) = Duration::from_millis(5);
        stage.set_nodes(2);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(stage.batches(), batches, "{workers} workers");
        assert_eq!((stage.count("update"), stage.updated()), (200, 200), "each once");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_nodes_behind_200_services_cost_400_requests() {
    for workers in [1, 8] {
        let stage = ready(200, workers).await;
        *lock(&stage.cloud.takes) = Duration::from_millis(5);
        for count in 2..=11 {
            stage.set_nodes(count);
            sleep(Duration::from_millis(50)).await;
        }
        sleep(Duration::from_secs(10)).await;
        assert!((408..=416).contains(&stage.requests()), "{} of 800", stage.requests());
        assert_eq!(stage.cloud.calls("update").last().unwrap().targets, 11);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_a_shared_call_is_one_services_alone() {
    let stage = ready(10, 1).await;
    lock(&stage.cloud.failures).push_back(("update", Failure::Other("no luck".into())));
    stage.set_nodes(2);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((stage.batches(), stage.updated()), (vec![10], 9));
    assert_eq!((stage.failures("s0"), stage.controller.queue.len()), (Some(1), 1));
    let (key, controller) = (Key::from("default/s0"), &stage.controller);
    let service = controller.context.services.get(&key);
    let text = controller.records.explain(&key, service.as_deref(), &controller.queue);
    assert!(text.is_some_and(|text| text.contains("no luck")));
    sleep(Duration::from_secs(30)).await;
    assert_eq!((stage.batches(), stage.updated()), (vec![10, 1], 10));
}

#[tokio::test(start_paused = true)]
async fn a_pending_service_comes_back_with_its_token() {
    let stage = ready(3, 1).await;
    let pending = Failure::Pending {
        after: Duration::from_secs(7),
        token: "t-1".into(),
        message: "it moves".into(),
    };
    lock(&stage.cloud.failures).push_back(("update", pending));
    stage.set_nodes(2);
    sleep(Duration::from_secs(6)).await;
    assert_eq!((stage.batches(), stage.updated()), (vec![3], 2));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.batches(), [3, 1]);
    assert_eq!(*lock(&stage.cloud.tokens), ["t-1"]);
    assert!(stage.event("UpdateLoadBalancerFailed").is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_faulted_batch_each_service_is_tried_alone() {
    let stage = ready(10, 1).await;
    lock(&stage.cloud.faulty).insert("s3");
    stage.set_nodes(2);
    sleep(Duration::from_secs(1)).await;
    assert_eq!((stage.batches(), stage.updated()), (vec![10], 0));
    stage
        .until("all others have the Node", |stage| stage.updated() == 9)
        .await;
    assert!(
        stage.batches()[1..].iter().all(|size| *size == 1),
        "{:?}",
        stage.batches()
    );
    assert!(stage.failures("s3") >= Some(1));

    // Those that were answered share calls again; the one that faults stays alone.
    let before = stage.batches().len();
    stage.set_nodes(3);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.updated(), 18);
    assert!(stage.batches()[before..].contains(&9), "{:?}", stage.batches());

    lock(&stage.cloud.faulty).clear();
    stage.until("it has the Node too", |stage| stage.updated() == 19).await;
    let before = stage.batches().len();
    stage.set_nodes(4);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.batches()[before..], [10]);
}

#[tokio::test(start_paused = true)]
async fn service_changed_during_call_is_processed_after_it() {
    let stage = ready(3, 2).await;
    stage.cloud.held.send_replace(Some(("update", "s1")));
    stage.set_nodes(2);
    stage.set_nodes(3);
    stage
        .until("the calls have begun", |stage| stage.count("update") == 3)
        .await;
    let mut services: Vec<Service> = lock(&stage.api.services).values().cloned().collect();
    services.retain(|service| service.metadata.name.as_deref() != Some("s0"));
    let changed = services
        .iter_mut()
        .find(|service| service.metadata.name.as_deref() == Some("s1"));
    let changed = changed.unwrap();
    changed.metadata.resource_version = Some("99".into());
    changed.spec.as_mut().unwrap().load_balancer_ip = Some("203.0.113.9".into());
    stage.set_services(services);
    sleep(Duration::from_secs(1)).await;
    stage.cloud.held.send_replace(None);
    stage
        .until("one is deleted and one ensured", |stage| {
            stage.count("delete") == 1 && stage.count("ensure") == 4
        })
        .await;
    assert_eq!(stage.cloud.calls("delete")[0].service, "s0");
    assert_eq!(stage.cloud.calls("ensure")[3].service, "s1");
}

#[tokio::test(start_paused = true)]
async fn a_lost_balancer_is_made_again_and_costs_the_others_nothing() {
    let stage = ready(5, 1).await;
    lock(&stage.cloud.failures).push_back(("update", Failure::NotFound("gone".into())));
    stage.set_nodes(2);
    stage
        .until("it is made again", |stage| stage.count("ensure") == 6)
        .await;
    assert_eq!((stage.batches(), stage.updated()), (vec![5], 4));
    sleep(Duration::from_secs(60)).await;
    assert!(stage.controller.queue.is_empty());
    assert_eq!(stage.count("update"), 5, "it was made with the new Node");
}

#[tokio::test(start_paused = true)]
async fn each_service_of_a_failed_call_has_its_own_pause() {
    let stage = ready(4, 1).await;
    *lock(&stage.cloud.always) = Some(("update", Failure::Unavailable("down".into())));
    stage.set_nodes(2);
    sleep(Duration::from_secs(1)).await;
    for name in ["s0", "s1", "s2", "s3"] {
        let state = stage.controller.queue.state(&format!("default/{name}")).unwrap();
        assert!(
            matches!(state.place, KeyPlace::Waiting(_)) && state.failures == 1,
            "{state:?}"
        );
    }
    assert_eq!(Failure::Unavailable("down".into()).retry(), Retry::Backoff);
}
