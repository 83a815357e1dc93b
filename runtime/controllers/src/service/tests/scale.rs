//! Many Services: none waits for a slow one, and nothing is kept about those that are gone.

use cloudwit_model::Failure;
use tokio::time::{Instant, sleep};

use super::stage::{Stage, balancer, service};
use crate::service::*;

fn many(count: usize) -> Vec<Service> {
    (0..count).map(|index| balancer(&format!("s{index}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn service_with_endless_call_holds_one_worker_only() {
    let stage = Stage::new(many(0), 1, 2, true);
    stage.cloud.held.send_replace(Some(("ensure", "s0")));
    stage.set_services(many(50));
    let others = |stage: &Stage| {
        stage
            .cloud
            .calls("ensure")
            .iter()
            .filter(|call| call.service != "s0")
            .count()
    };
    stage.until("all others are ensured", |stage| others(stage) == 49).await;
    stage.set_nodes(3);
    stage
        .until("all others know the new nodes", |stage| stage.count("update") == 49)
        .await;
    assert_eq!(stage.count("ensure"), 50, "the slow one was called, and once");
    stage.cloud.held.send_replace(None);
    let knows = |stage: &Stage| {
        stage
            .cloud
            .calls("update")
            .iter()
            .any(|call| call.service == "s0" && call.targets == 3)
    };
    stage.until("the slow one knows them too once it goes on", knows).await;
}

/// Nodes walked over while so many Nodes come one after the other, ten in a second.
async fn walked_in_a_wave(stage: &Stage, nodes: usize) -> usize {
    let before = stage.controller.targets.walked();
    for count in 1..=nodes {
        stage.set_nodes(count);
        sleep(Duration::from_millis(100)).await;
        let somebody_to_tell = !stage.controller.records.is_empty();
        assert!(somebody_to_tell || stage.controller.node_queue.is_empty());
    }
    sleep(Duration::from_secs(10)).await;
    stage.controller.targets.walked() - before
}

#[tokio::test(start_paused = true)]
async fn node_wave_is_free_without_balancers_with_nodes() {
    let mut foreign = balancer("foreign");
    foreign.spec.as_mut().unwrap().load_balancer_class = Some("example.com/other".into());
    for services in [vec![], vec![service("plain", "ClusterIP")], vec![foreign]] {
        let stage = Stage::new(services, 0, 1, true);
        stage
            .until("the Services are listed", |stage| {
                stage.controller.context.services.is_synced()
            })
            .await;
        assert_eq!(walked_in_a_wave(&stage, 100).await, 0);
        stage.set_services(vec![balancer("web")]);
        stage
            .until("a load balancer that comes then has all", |stage| {
                stage.count("ensure") == 1
            })
            .await;
        assert_eq!(stage.cloud.calls("ensure")[0].targets, 100);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(
            (stage.count("ensure"), stage.count("update")),
            (1, 0),
            "and is told once"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn node_wave_costs_two_walks_a_window_for_any_balancers() {
    for balancers in [1, 40] {
        let stage = Stage::new(many(balancers), 0, 1, true);
        stage
            .until("all are ready", |stage| stage.count("ensure") == balancers)
            .await;
        // Ten seconds with a pass each 750 ms: one walk to see who is outdated, one for the list that all share.
        let walked = walked_in_a_wave(&stage, 100).await;
        assert!((1000..=1600).contains(&walked), "{walked} for {balancers}");
        let updates = stage.cloud.calls("update");
        assert_eq!(updates.last().unwrap().targets, 100);
        assert!(
            updates.len() <= 15 * balancers,
            "{} updates of {balancers}",
            updates.len()
        );
    }
}

/// The pass over all load balancers comes while the first call of this one has the nodes of before.
#[tokio::test(start_paused = true)]
async fn nodes_joining_during_creation_are_added_afterwards() {
    let stage = Stage::new(Vec::new(), 1, 1, true);
    stage.cloud.held.send_replace(Some(("ensure", "web")));
    stage.set_services(vec![balancer("web")]);
    stage
        .until("its call has begun", |stage| stage.count("ensure") == 1)
        .await;
    stage.set_nodes(5);
    sleep(Duration::from_secs(10)).await;
    stage.cloud.held.send_replace(None);
    stage
        .until("it has all nodes", |stage| stage.count("update") == 1)
        .await;
    assert_eq!(stage.cloud.calls("update")[0].targets, 5);
}

#[tokio::test(start_paused = true)]
async fn the_list_of_nodes_is_given_back_when_nothing_is_left_to_do() {
    let stage = Stage::new(many(3), 4, 2, true);
    stage
        .until("all are ready", |stage| {
            stage.count("ensure") == 3 && stage.controller.queue.is_empty()
        })
        .await;
    let walked = stage.controller.targets.walked();
    stage.controller.targets_now();
    assert_eq!(
        stage.controller.targets.walked() - walked,
        4,
        "it was not there any more"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_about_services_that_are_gone() {
    let mut services = many(40);
    for (index, service) in services.iter_mut().enumerate() {
        if index >= 30 {
            service.spec.as_mut().unwrap().load_balancer_class = Some("example.com/other".into());
        }
    }
    services.push(service("plain", "ClusterIP"));
    let stage = Stage::new(services, 2, 3, true);
    // Some are ready, some failed and wait for their next try, some wait for the cloud.
    let fails = |number: usize| match number % 3 {
        0 => Failure::Other("no luck".into()),
        1 => Failure::Denied("no right".into()),
        _ => Failure::Pending {
            after: Duration::from_secs(3600),
            token: "t".into(),
            message: "it builds".into(),
        },
    };
    lock(&stage.cloud.failures).extend((0..15).map(|number| ("ensure", fails(number))));
    stage.until("all were tried", |stage| stage.count("ensure") >= 30).await;
    stage.set_nodes(4);
    stage
        .until("those that are ready know the new nodes", |stage| {
            stage.count("update") >= 15
        })
        .await;
    assert!(stage.controller.records.len() >= 40 && !stage.controller.queue.is_empty());

    stage.set_services(Vec::new());
    let forgotten = |stage: &Stage| {
        let controller = &stage.controller;
        let entries = [
            controller.records.len(),
            lock(&controller.passes).len(),
            controller.queue.len(),
            controller.node_queue.len(),
        ];
        entries == [0; 4]
    };
    let began = Instant::now();
    stage.until("all are forgotten", forgotten).await;
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "without waiting for pauses that have become moot"
    );
    let deleted: HashSet<String> = stage
        .cloud
        .calls("delete")
        .into_iter()
        .map(|call| call.service)
        .collect();
    assert_eq!(deleted.len(), 30, "all that may have a load balancer, and no other");
}
