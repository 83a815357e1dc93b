//! Many Services: nobody waits for a slow one, and nothing is remembered about those that are gone.

use cloudwit_model::Failure;
use tokio::time::Instant;

use super::stage::{Stage, balancer, service};
use super::*;

fn many(count: usize) -> Vec<Service> {
    (0..count).map(|index| balancer(&format!("s{index}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_call_never_ends_holds_one_worker_and_no_other_service() {
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
    assert!(lock(&stage.controller.records).len() >= 40 && !stage.controller.queue.is_empty());

    stage.set_services(Vec::new());
    let forgotten = |stage: &Stage| {
        let controller = &stage.controller;
        // One after the other: `settled` takes the lock of the records itself.
        let settled = controller.settled().len();
        let entries = [
            lock(&controller.records).len(),
            lock(&controller.passes).len(),
            controller.queue.len(),
            controller.node_queue.len(),
            settled,
        ];
        entries == [0; 5]
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
