//! The process ends in the middle of something and another one begins.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_of_a_delete_leaks_nothing() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    create(&alone, "retyped").await;
    until("both are ready", || async {
        has_address(&alone, "web").await && has_address(&alone, "retyped").await
    })
    .await;
    cloud.hold("delete");
    delete(&alone, "web").await;
    patch(&alone, "retyped", json!({ "spec": { "type": "ClusterIP" } })).await;
    until("the delete has begun", || async { cloud.count("delete") == 1 }).await;
    running.stop().await;
    assert_eq!(cloud.balancers().len(), 2, "it died before the cloud did anything");
    cloud.release();
    let _running = run(&alone, &cloud);
    until("the Service is gone", || is_gone(&alone, "web")).await;
    until("the other one let go", || async {
        get(&alone, "retyped").await.unwrap().finalizers().is_empty()
    })
    .await;
    assert_eq!(cloud.balancers(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_between_delete_and_finalizer_continues_there() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    running.stop().await;
    delete(&alone, "web").await;
    cloud.lose_all();
    cloud.fail_next("delete", Failure::NotFound("no such load balancer".into()));
    let _running = run(&alone, &cloud);
    until("the Service is gone", || is_gone(&alone, "web")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_in_the_middle_of_an_ensure_ends_in_the_right_state() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    cloud.hold("ensure");
    let running = run(&alone, &cloud);
    create(&alone, "kept").await;
    until("the ensure has begun", || async { cloud.count("ensure") == 1 }).await;
    running.stop().await;
    delete(&alone, "kept").await;
    create(&alone, "kept-2").await;
    cloud.release();
    let _running = run(&alone, &cloud);
    until("the deleted one is gone", || is_gone(&alone, "kept")).await;
    until("the new one is ready", || has_address(&alone, "kept-2")).await;
    assert_eq!(cloud.only().unwrap().name, "kept-2");
    assert_eq!(cloud.balancers().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_service_is_ensured_once_and_not_written() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    running.stop().await;
    let before = get(&alone, "web").await.unwrap().resource_version();
    let _running = run(&alone, &cloud);
    settle(&alone, "marker").await;
    assert_eq!(cloud.calls().iter().filter(|call| call.name == "web").count(), 2);
    assert_eq!(get(&alone, "web").await.unwrap().resource_version(), before);
}
