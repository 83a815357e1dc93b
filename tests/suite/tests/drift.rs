//! Load balancers that are deleted or changed outside: on a real API server, with the real process and the simulated cloud.
//!
//! When looks come, and in which order, is proven with a moved clock in `runtime/controllers/src/service/tests/drift.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use cloudwit_sim_cloud::{LoadBalancer, Operation};
use cloudwit_test_support::scenes::rig::{Rig, SOON, ingress};
use cloudwit_test_support::{ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::{Event, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

const NAMES: [&str; 5] = ["deleted", "moved", "changed", "a", "b"];

/// Makes the Services and waits until all have addresses.
async fn ready(rig: &mut Rig) -> Vec<Service> {
    rig.start().unwrap();
    for name in NAMES {
        ServiceBuilder::new(name).create(&rig.client).await.unwrap();
    }
    let rig = &*rig;
    eventually(SOON, "all have addresses", || async {
        let services = rig.services().list(&ListParams::default()).await.unwrap().items;
        let ready: Vec<Service> = services.into_iter().filter(|one| !ingress(one).is_empty()).collect();
        (ready.len() == NAMES.len()).then_some(ready)
    })
    .await
}

fn balancer_of(rig: &Rig, services: &[Service], name: &str) -> LoadBalancer {
    let service = services.iter().find(|service| service.name_any() == name).unwrap();
    let balancers = rig.cloud.load_balancers();
    let own = balancers.into_iter().find(|one| one.spec.owner == service.uid());
    own.unwrap()
}

async fn drift_events(rig: &Rig, services: &[Service]) -> Vec<(String, String)> {
    let events: Api<Event> = Api::default_namespaced(rig.client.clone());
    let drifted = ListParams::default().fields("reason=LoadBalancerDrifted");
    let mut found: Vec<(String, String)> = events
        .list(&drifted)
        .await
        .unwrap()
        .into_iter()
        .filter(|event| {
            services
                .iter()
                .any(|service| service.uid() == event.involved_object.uid)
        })
        .map(|event| (event.involved_object.name.unwrap(), event.message.unwrap()))
        .collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn drifted_balancers_are_repaired_and_others_untouched() {
    let mut rig = Rig::new(&["--service-drift-period=1s", "--service-drift-per-minute=600"])
        .await
        .unwrap();
    let services = ready(&mut rig).await;
    rig.cloud.reset_counters();
    let (deleted, moved) = (
        balancer_of(&rig, &services, "deleted").id,
        balancer_of(&rig, &services, "moved").id,
    );
    rig.cloud.delete_load_balancer(&deleted).unwrap();
    rig.cloud.set_load_balancer_address(&moved, "203.0.113.50").unwrap();
    let changed = balancer_of(&rig, &services, "changed");
    let mut spec = changed.spec.clone();
    spec.ports[0].port = 8080;
    spec.source_ranges = vec!["192.0.2.0/24".into()];
    rig.cloud.change_load_balancer(&changed.id, spec).unwrap();
    rig.settled("both have their new addresses", async || {
        let deleted = ingress(&rig.services().get("deleted").await.unwrap());
        let moved = ingress(&rig.services().get("moved").await.unwrap());
        // The cloud counts its addresses up.
        match (deleted.as_slice(), moved.as_slice()) {
            ([new], [other]) if new == "198.51.100.6" && other == "203.0.113.50" => Ok(()),
            found => Err(format!("{found:?}")),
        }
    })
    .await;
    rig.settled("Events say so", async || {
        let events = drift_events(&rig, &services).await;
        match events.as_slice() {
            [(first, gone), (second, other)]
                if first == "deleted"
                    && gone.contains("not found")
                    && second == "moved"
                    && other.contains("address differs") =>
            {
                Ok(())
            }
            _ => Err(format!("{events:?}")),
        }
    })
    .await;
    assert_eq!(balancer_of(&rig, &services, "moved").id, moved, "it is kept");
    rig.settled("ports and sources are as the Service says", async || {
        let now = balancer_of(&rig, &services, "changed");
        match now == changed {
            true => Ok(()),
            false => Err(format!("{now:?}")),
        }
    })
    .await;
    let counters = rig.cloud.counters();
    assert_eq!(counters.requests(Operation::CreateLoadBalancer), 1);
    assert_eq!(counters.requests(Operation::UpdateLoadBalancer), 1);
    for never in [Operation::UpdateTargets, Operation::DeleteLoadBalancer] {
        assert_eq!(counters.requests(never), 0, "{never}");
    }
    for service in services
        .iter()
        .filter(|service| ["changed", "a", "b"].contains(&service.name_any().as_str()))
    {
        let now = rig.services().get(&service.name_any()).await.unwrap();
        assert_eq!(now.resource_version(), service.resource_version());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_never_cost_more_than_their_budget() {
    // Everything is due all the time, but one look in a second is all there is.
    let mut rig = Rig::new(&["--service-drift-period=100ms", "--service-drift-per-minute=60"])
        .await
        .unwrap();
    ready(&mut rig).await;
    let looks = || rig.cloud.counters().requests(Operation::ListLoadBalancers);
    let began = Instant::now();
    rig.cloud.reset_counters();
    eventually(SOON, "there are looks", || async { looks() >= 10 }).await;
    // Nine pauses of a second between them; a busy machine may have told us late of the first.
    let took = began.elapsed();
    assert!(took > Duration::from_secs(6), "{} looks in {took:?}", looks());
}

#[tokio::test(flavor = "multi_thread")]
async fn period_of_nought_never_checks() {
    let mut rig = Rig::new(&["--service-drift-period=0", "--route-reconciliation-period=1s"])
        .await
        .unwrap();
    let services = ready(&mut rig).await;
    rig.cloud
        .delete_load_balancer(&balancer_of(&rig, &services, "deleted").id)
        .unwrap();
    rig.cloud.reset_counters();
    // A clock that the process itself ticks: with looks switched on there were many by then.
    eventually(SOON, "other loops have come round", || async {
        rig.cloud.counters().requests(Operation::ListRoutes) >= 4
    })
    .await;
    let counters = rig.cloud.counters();
    assert_eq!(counters.requests(Operation::ListLoadBalancers), 0, "{counters:?}");
    assert_eq!(counters.requests(Operation::GetLoadBalancer), 0, "{counters:?}");
    assert_eq!(drift_events(&rig, &services).await, []);
}
