//! Services: made, changed, deleted, and turned into others while the process dies.

use std::time::Duration;

use cloudwit_sim_cloud::BalancerState;
use cloudwit_test_support::gate::{Point, Stop};
use cloudwit_test_support::scenes::rig::{Rig, SOON, ingress, is_kept};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use futures::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::steps::{Step, balancer_of};

/// As many as can be stopped at once. A call that is held keeps its worker.
const FLAGS: [&str; 3] = [
    "--concurrent-service-syncs=16",
    "--controllers=service-lb-controller",
    "--service-drift-period=0",
];

async fn create(rig: &Rig, name: &str) -> Service {
    ServiceBuilder::new(name).create(&rig.client).await.unwrap()
}

async fn create_all(rig: &Rig, steps: &[(&str, Step)]) -> Vec<Service> {
    join_all(steps.iter().map(|(name, _)| create(rig, name))).await
}

/// Stops each Service at its step.
fn stop_all(rig: &Rig, services: &[Service], steps: &[(&str, Step)]) -> Vec<Stop> {
    let steps = steps.iter().map(|(_, step)| *step);
    services
        .iter()
        .zip(steps)
        .map(|(service, step)| step.stop(rig, service))
        .collect()
}

async fn all_reached(stops: &[Stop]) {
    for stop in stops {
        stop.reached().await;
    }
}

/// Nothing when each Service has exactly one load balancer, which works, and its address.
async fn not_ready(rig: &Rig, names: &[&str]) -> Result<(), String> {
    let balancers = rig.cloud.load_balancers();
    for name in names {
        let service = rig.services().get(name).await.map_err(|error| error.to_string())?;
        let own: Vec<_> = balancers.iter().filter(|one| one.spec.owner == service.uid()).collect();
        let [balancer] = own.as_slice() else {
            return Err(format!("{name} has {} load balancers", own.len()));
        };
        let address: Vec<String> = balancer.address.iter().cloned().collect();
        if address.is_empty() || ingress(&service) != address || !is_kept(&service) {
            return Err(format!(
                "{name} has {:?}, its load balancer {address:?}",
                ingress(&service)
            ));
        }
        let port = service.spec.unwrap().ports.unwrap()[0].port;
        if i32::from(balancer.spec.ports[0].port) != port {
            return Err(format!("{name} is not at port {port}"));
        }
    }
    match balancers.len() == names.len() {
        true => Ok(()),
        false => Err(format!("{} load balancers", balancers.len())),
    }
}

/// Deletes all Services and waits until neither they nor anything of them is left.
async fn delete_all(rig: &Rig, names: &[&str]) {
    for name in names {
        rig.services().delete(name, &DeleteParams::default()).await.unwrap();
    }
    rig.settled("all are gone", || all_gone(rig, names)).await;
}

async fn all_gone(rig: &Rig, names: &[&str]) -> Result<(), String> {
    let services = rig.services().list(&ListParams::default()).await;
    let left: Vec<String> = services
        .map_err(|error| error.to_string())?
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| names.contains(&name.as_str()))
        .collect();
    match (left.as_slice(), rig.cloud.load_balancers().as_slice()) {
        ([], []) => Ok(()),
        (left, balancers) => Err(format!("{left:?} and {} load balancers are left", balancers.len())),
    }
}

async fn patch(rig: &Rig, name: &str, spec: serde_json::Value) -> Service {
    let patch = Patch::Merge(json!({ "spec": spec }));
    rig.services()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_at_any_step_of_ensure_leaves_one_balancer_each() {
    let steps = [
        ("before-finalizer", Step::BeforeFinalizer),
        ("after-finalizer", Step::AfterFinalizer),
        ("searching", Step::Searching),
        ("before-create", Step::BeforeCreate),
        ("late-create", Step::BeforeCreate),
        ("after-create", Step::AfterCreate),
        ("before-status", Step::BeforeStatus),
        ("after-status", Step::AfterStatus),
        ("before-event", Step::BeforeEvent),
    ];
    let mut names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let services = create_all(&rig, &steps).await;
    let stops = stop_all(&rig, &services, &steps);
    rig.start().unwrap();
    all_reached(&stops).await;
    eventually(SOON, "the status of the one without an Event is there", || async {
        !ingress(&rig.services().get("before-event").await.unwrap()).is_empty()
    })
    .await;
    // What is made from now on is not finished when the process dies.
    rig.cloud.set_balancer_build_time(Duration::from_secs(3600));
    let pending = create(&rig, "pending").await;
    names.push("pending");
    eventually(SOON, "the process waits for the cloud", || async {
        rig.log().contains("waiting for the cloud")
    })
    .await;
    assert_eq!(balancer_of(&rig, &pending).unwrap().state, BalancerState::Building);
    rig.cloud.set_balancer_build_time(Duration::ZERO);
    assert_eq!(
        rig.cloud.load_balancers_made(),
        5,
        "after-create to before-event, and pending"
    );
    rig.kill().unwrap();

    let doomed = create(&rig, "made-while-nobody-ran").await;
    names.push("made-while-nobody-ran");
    assert!(!is_kept(&doomed));
    rig.start().unwrap();
    rig.settled("all but the one that is being built are ready", async || {
        let names: Vec<&str> = names.iter().filter(|name| **name != "pending").copied().collect();
        match not_ready(&rig, &names).await {
            Err(wrong) if wrong == format!("{} load balancers", names.len() + 1) => Ok(()),
            other => other,
        }
    })
    .await;
    rig.cloud.finish_load_balancers();
    rig.settled("all are ready", || not_ready(&rig, &names)).await;
    // The request of the first process was still on its way; a process that waited for long has sent it again.
    let late = rig.to_cloud.deliver(&stops[4]).await;
    assert!(!late.is_empty() && late.iter().all(|status| *status == 409), "{late:?}");
    assert_eq!(not_ready(&rig, &names).await, Ok(()));
    assert_eq!(rig.cloud.load_balancers_made(), names.len() as u64);
    for service in &services {
        let uid = service.uid().unwrap();
        rig.settled("each has the Event that tells so", async || {
            let events = rig.events(&uid).await.unwrap();
            match events.get("EnsuredLoadBalancer") {
                Some(_) => Ok(()),
                None => Err(format!("{}: {events:?}", service.name_any())),
            }
        })
        .await;
    }
    delete_all(&rig, &names).await;
    assert_eq!(rig.cloud.load_balancers_made(), names.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_while_changing_balancers_leaves_requested_state() {
    let steps = [
        ("before-change", Step::BeforeChange),
        ("after-change", Step::AfterChange),
        ("before-targets", Step::BeforeTargets),
        ("after-targets", Step::AfterTargets),
    ];
    let names = steps.map(|(name, _)| name);
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let services = create_all(&rig, &steps).await;
    rig.start().unwrap();
    rig.settled("all are ready", || not_ready(&rig, &names)).await;
    let stops = stop_all(&rig, &services, &steps);
    for name in ["before-change", "after-change"] {
        patch(&rig, name, json!({ "ports": [{ "name": "http", "port": 8080 }] })).await;
    }
    all_reached(&stops[..2]).await;
    let machine = rig.cloud.add_numbered_machines("node", 1).remove(0);
    let node = NodeBuilder::new("node-0").provider_id(&format!("sim://{}", machine.id));
    node.initialised().create(&rig.client).await.unwrap();
    all_reached(&stops[2..]).await;
    rig.kill().unwrap();

    rig.start().unwrap();
    let all_have_the_node = || {
        let balancers = rig.cloud.load_balancers();
        balancers.iter().all(|one| one.spec.targets == [machine.id.clone()])
    };
    rig.settled("all have the new ports and the new Node", async || {
        not_ready(&rig, &names).await?;
        match all_have_the_node() {
            true => Ok(()),
            false => Err(format!("{:?}", rig.cloud.load_balancers())),
        }
    })
    .await;
    assert_eq!(rig.cloud.load_balancers_made(), names.len() as u64);
    delete_all(&rig, &names).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_at_any_step_of_delete_or_type_change_leaves_nothing() {
    let deleted = [
        ("deleted-searching", Step::Searching),
        ("deleted-before", Step::BeforeDelete),
        ("deleted-late", Step::BeforeDelete),
        ("deleted-after", Step::AfterDelete),
        ("deleted-unreleased", Step::BeforeRelease),
        ("deleted-released", Step::AfterRelease),
    ];
    let changed = [
        ("changed-searching", Step::Searching),
        ("changed-before", Step::BeforeDelete),
        ("changed-after", Step::AfterDelete),
        ("changed-unreleased", Step::BeforeRelease),
        ("changed-released", Step::AfterRelease),
    ];
    let steps: Vec<(&str, Step)> = deleted.iter().chain(&changed).copied().collect();
    let mut names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
    names.extend([
        "deleted-building",
        "deleted-while-nobody-ran",
        "changed-while-nobody-ran",
    ]);
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let services = create_all(&rig, &steps).await;
    for name in ["deleted-while-nobody-ran", "changed-while-nobody-ran"] {
        create(&rig, name).await;
    }
    rig.start().unwrap();
    let ready: Vec<&str> = names
        .iter()
        .filter(|name| **name != "deleted-building")
        .copied()
        .collect();
    rig.settled("all are ready", || not_ready(&rig, &ready)).await;
    rig.cloud.set_balancer_build_time(Duration::from_secs(3600));
    let building = create(&rig, "deleted-building").await;
    eventually(SOON, "it is being built", || async { balancer_of(&rig, &building) }).await;

    let mut stops = stop_all(&rig, &services, &steps);
    stops.push(Step::BeforeDelete.stop(&rig, &building));
    let cluster_ip = json!({ "type": "ClusterIP" });
    for (name, _) in &changed {
        patch(&rig, name, cluster_ip.clone()).await;
    }
    for (name, _) in &deleted {
        rig.services().delete(name, &DeleteParams::default()).await.unwrap();
    }
    rig.services()
        .delete("deleted-building", &DeleteParams::default())
        .await
        .unwrap();
    all_reached(&stops).await;
    rig.kill().unwrap();
    let made = rig.cloud.load_balancers_made();
    rig.services()
        .delete("deleted-while-nobody-ran", &DeleteParams::default())
        .await
        .unwrap();
    patch(&rig, "changed-while-nobody-ran", cluster_ip).await;

    rig.start().unwrap();
    let gone: Vec<&str> = names
        .iter()
        .filter(|name| name.starts_with("deleted"))
        .copied()
        .collect();
    rig.settled("the deleted are gone, and all load balancers", || all_gone(&rig, &gone))
        .await;
    for name in names.iter().filter(|name| name.starts_with("changed")) {
        rig.settled("it is let go", async || {
            let service = rig.services().get(name).await.unwrap();
            match is_kept(&service) || !ingress(&service).is_empty() {
                true => Err(format!("{name}: {:?}, {:?}", service.finalizers(), service.status)),
                false => Ok(()),
            }
        })
        .await;
    }
    let late = rig.to_cloud.deliver(&stops[2]).await;
    assert!(
        !late.is_empty() && late.iter().all(|status| *status == 404),
        "what it asked for is done already: {late:?}"
    );
    assert_eq!(rig.cloud.load_balancers_made(), made);
}

/// Type changes that are taken back, or that end with a Service of somebody else's class, while nobody runs.
#[tokio::test(flavor = "multi_thread")]
async fn type_change_reverted_while_dead_keeps_or_renews_balancer() {
    let steps = [
        ("kept", Step::Searching),
        ("renewed", Step::AfterDelete),
        ("released", Step::AfterRelease),
    ];
    let names = steps.map(|(name, _)| name);
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let services = create_all(&rig, &steps).await;
    rig.start().unwrap();
    rig.settled("all are ready", || not_ready(&rig, &names)).await;
    let kept = balancer_of(&rig, &services[0]).unwrap();
    let stops = stop_all(&rig, &services, &steps);
    for name in names {
        patch(&rig, name, json!({ "type": "ClusterIP" })).await;
    }
    all_reached(&stops).await;
    rig.kill().unwrap();
    for name in names {
        patch(&rig, name, json!({ "type": "LoadBalancer" })).await;
    }
    rig.start().unwrap();
    rig.settled("all are ready", || not_ready(&rig, &names)).await;
    assert_eq!(balancer_of(&rig, &services[0]).unwrap().id, kept.id);
    assert_eq!(rig.cloud.load_balancers_made(), 5, "two were deleted before the kill");
    let stop = rig.to_cloud.stop_at(Point::before(Method::POST, "/v1/load-balancers"));
    delete_all(&rig, &names).await;
    assert_eq!(stop.count(), 0);
}
