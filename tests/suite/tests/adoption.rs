//! What an upstream controller left behind is taken over as it is: on a real API server, with the real process and the simulated cloud.
//!
//! Services with upstream's finalizer, address and load balancer (named `a` and the uid, as
//! `kubernetes/cloud-provider/cloud.go:DefaultLoadBalancerName` says), Nodes that were initialised, and their routes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_sim_cloud::{
    BalancerPort, BalancerSpec, LoadBalancer, Machine, NewMachine, Operation, PortProtocol, RouteSpec, Scheme,
};
use cloudwit_test_support::gate::Point;
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::scenes::deployment::CLUSTER_NAME;
use cloudwit_test_support::scenes::rig::{CLEANUP_FINALIZER, Rig, SOON, ingress, is_kept};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use http::Method;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

/// Short periods, so that several passes of each loop are seen.
/// One worker: what comes after a Service is begun when its turn is over.
const FLAGS: [&str; 5] = [
    "--concurrent-service-syncs=1",
    "--node-status-update-frequency=1s",
    "--node-monitor-period=500ms",
    "--route-reconciliation-period=1s",
    "--service-drift-period=0",
];

/// `a` and the uid without dashes, 32 characters.
fn default_name(service: &Service) -> String {
    let mut name = format!("a{}", service.uid().unwrap().replace('-', ""));
    name.truncate(32);
    name
}

fn spec(service: &Service, cluster: &str, owner: Option<&str>) -> BalancerSpec {
    let port = service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0].clone();
    BalancerSpec {
        name: default_name(service),
        cluster: cluster.into(),
        owner: owner.map(str::to_owned),
        scheme: Scheme::Public,
        ports: vec![BalancerPort {
            protocol: PortProtocol::Tcp,
            port: port.port.try_into().unwrap(),
            node_port: port.node_port.unwrap().try_into().unwrap(),
        }],
        targets: Vec::new(),
        source_ranges: Vec::new(),
        affinity_seconds: None,
        health_check_port: None,
        requested_address: None,
    }
}

/// A Service as upstream's service controller leaves it when it is stopped, with its load balancer.
async fn left_behind(rig: &Rig, name: &str, is_marked: bool) -> (Service, LoadBalancer) {
    let service = ServiceBuilder::new(name).create(&rig.client).await.unwrap();
    let uid = service.uid();
    let owner = uid.as_deref().filter(|_| is_marked);
    let balancer = rig
        .cloud
        .add_load_balancer(spec(&service, CLUSTER_NAME, owner))
        .unwrap();
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": [CLEANUP_FINALIZER] } }));
    let upstream = PatchParams::default();
    rig.services().patch(name, &upstream, &finalizer).await.unwrap();
    let status = Patch::Merge(json!({ "status": { "loadBalancer": { "ingress": [{ "ip": balancer.address }] } } }));
    let service = rig.services().patch_status(name, &upstream, &status).await.unwrap();
    (service, balancer)
}

/// How often Events of this reason about this Service were written.
async fn told(rig: &Rig, service: &Service, reason: &str) -> i32 {
    let events = rig.events(&service.uid().unwrap()).await.unwrap();
    events.get(reason).copied().unwrap_or_default()
}

async fn all_ensured(rig: &Rig, services: &[Service], times: i32) {
    rig.settled("all were ensured", async || {
        for service in services {
            let found = told(rig, service, "EnsuredLoadBalancer").await;
            if found < times {
                return Err(format!("{} was ensured {found} times", service.name_any()));
            }
        }
        Ok(())
    })
    .await;
}

/// Makes a Service and waits until it is ready: then all that were there before have had their turn. Checks all the while.
async fn comes_after(rig: &Rig, name: &str, check: impl Fn()) {
    ServiceBuilder::new(name).create(&rig.client).await.unwrap();
    rig.settled("a later Service is ready", async || {
        check();
        match ingress(&rig.services().get(name).await.unwrap()).as_slice() {
            [] => Err(name.to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    check();
}

#[tokio::test(flavor = "multi_thread")]
async fn services_left_by_upstream_keep_balancers_and_addresses() {
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let (unmarked, first) = left_behind(&rig, "unmarked", false).await;
    let (marked, second) = left_behind(&rig, "marked", true).await;
    let services = [unmarked, marked];
    for process in 1..=2 {
        rig.cloud.reset_counters();
        let made = rig.cloud.load_balancers_made();
        // The API server makes no new version of what is written as it was.
        let writes = ["/services/unmarked", "/services/marked"];
        let writes = writes.map(|target| rig.to_api.stop_at(Point::before(Method::PATCH, target)));
        rig.start().unwrap();
        all_ensured(&rig, &services, process).await;
        let counters = rig.cloud.counters();
        let changes = counters.requests(Operation::UpdateLoadBalancer);
        assert_eq!(changes, u64::from(process == 1), "the mark on the first, once");
        let refused = counters.requests(Operation::CreateLoadBalancer);
        assert_eq!(refused, u64::from(process == 1), "the name of the first is taken");
        for never in [Operation::UpdateTargets, Operation::DeleteLoadBalancer] {
            assert_eq!(counters.requests(never), 0, "{never} by process {process}");
        }
        assert_eq!(rig.cloud.load_balancers_made(), made);
        for (service, before) in services.iter().zip([&first, &second]) {
            let now = rig.services().get(&service.name_any()).await.unwrap();
            assert_eq!(now.resource_version(), service.resource_version());
            let mut expected = before.clone();
            expected.spec.owner = service.uid();
            assert!(
                rig.cloud.load_balancers().contains(&expected),
                "{:?}",
                rig.cloud.load_balancers()
            );
        }
        comes_after(&rig, &format!("later-{process}"), || {
            for write in &writes {
                assert_eq!(write.count(), 0, "written although it was right");
            }
        })
        .await;
        rig.kill().unwrap();
    }
    rig.start().unwrap();
    for name in ["unmarked", "marked", "later-1", "later-2"] {
        rig.services().delete(name, &DeleteParams::default()).await.unwrap();
    }
    rig.settled("they and their load balancers are gone", async || {
        let left = rig.services().get_opt("unmarked").await.unwrap().is_some()
            || rig.services().get_opt("marked").await.unwrap().is_some();
        match rig.cloud.load_balancers().as_slice() {
            [] if !left => Ok(()),
            balancers => Err(format!("{balancers:?}")),
        }
    })
    .await;
    assert_eq!(rig.cloud.load_balancers_made(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_half_deleted_by_upstream_is_released() {
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let (deleted, _) = left_behind(&rig, "deleted", false).await;
    left_behind(&rig, "changed", false).await;
    rig.services()
        .delete(&deleted.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    let cluster_ip = Patch::Merge(json!({ "spec": { "type": "ClusterIP" } }));
    rig.services()
        .patch("changed", &PatchParams::default(), &cluster_ip)
        .await
        .unwrap();
    rig.start().unwrap();
    rig.settled("nothing is left", async || {
        let deleted = rig.services().get_opt("deleted").await.unwrap();
        let changed = rig.services().get("changed").await.unwrap();
        match rig.cloud.load_balancers().len() {
            0 if deleted.is_none() && !is_kept(&changed) && ingress(&changed).is_empty() => Ok(()),
            count => Err(format!("{count} load balancers, {deleted:?}, {:?}", changed.status)),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_balancer_of_same_name_is_not_touched() {
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let neighbour = ServiceBuilder::new("neighbour").create(&rig.client).await.unwrap();
    let clash = ServiceBuilder::new("clash").create(&rig.client).await.unwrap();
    let foreign = [
        rig.cloud
            .add_load_balancer(spec(&neighbour, "another", neighbour.uid().as_deref())),
        rig.cloud
            .add_load_balancer(spec(&clash, CLUSTER_NAME, Some("another-service"))),
    ]
    .map(Result::unwrap);
    rig.start().unwrap();
    all_ensured(&rig, std::slice::from_ref(&neighbour), 1).await;
    rig.settled("the one without a free name is told so", async || {
        match told(&rig, &clash, "SyncLoadBalancerFailed").await {
            0 => Err("no Event"),
            _ => Ok(()),
        }
        .map_err(str::to_owned)
    })
    .await;
    let events: Api<Event> = Api::default_namespaced(rig.client.clone());
    let failures = ListParams::default().fields("reason=SyncLoadBalancerFailed");
    let mut failures = events.list(&failures).await.unwrap().items;
    failures.retain(|event| event.involved_object.uid == clash.uid());
    assert_eq!(failures.len(), 1);
    let message = failures.remove(0).message.unwrap();
    for part in [
        &foreign[1].id,
        &foreign[1].spec.name,
        "another-service",
        "rename or delete it",
    ] {
        assert!(message.contains(part), "{message}");
    }
    // With a restart in between it does not become ours either, and deleting the Services takes only what is theirs.
    rig.kill().unwrap();
    rig.start().unwrap();
    all_ensured(&rig, &[neighbour], 2).await;
    for name in ["neighbour", "clash"] {
        rig.services().delete(name, &DeleteParams::default()).await.unwrap();
    }
    rig.settled("only the others' are left", async || {
        let left = rig.services().list(&ListParams::default()).await.unwrap().items.len();
        match rig.cloud.load_balancers() == foreign && left <= 1 {
            true => Ok(()),
            false => Err(format!("{left} Services, {:?}", rig.cloud.load_balancers())),
        }
    })
    .await;
    assert_eq!(rig.cloud.load_balancers_made(), 3);
}

/// A Node as upstream's node and route controllers leave it, with its route.
async fn initialised_by_upstream(rig: &Rig, name: &str, cidr: &str) -> (Node, Machine) {
    let machine = rig.cloud.add_machines([NewMachine::named(name)]).remove(0);
    let facts = [
        (
            &machine.kind,
            ["beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"],
        ),
        (
            &machine.zone,
            ["failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"],
        ),
        (
            &machine.region,
            [
                "failure-domain.beta.kubernetes.io/region",
                "topology.kubernetes.io/region",
            ],
        ),
    ];
    let mut builder = NodeBuilder::new(name)
        .provider_id(&format!("sim://{}", machine.id))
        .pod_cidr(cidr)
        .initialised();
    for (value, keys) in facts {
        builder = keys.into_iter().fold(builder, |builder, key| builder.label(key, value));
    }
    builder.create(&rig.client).await.unwrap();
    let network = json!({ "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
        "message": "RouteController created a route" });
    let status = json!({ "status": {
        "addresses": [
            { "type": "InternalIP", "address": machine.addresses[0].ip },
            { "type": "Hostname", "address": name },
        ],
        "conditions": [ready_condition(Some(true)), network],
    }});
    let upstream = PatchParams::default();
    let node = rig
        .nodes()
        .patch_status(name, &upstream, &Patch::Merge(status))
        .await
        .unwrap();
    rig.cloud
        .add_route(RouteSpec {
            cluster: CLUSTER_NAME.into(),
            destination: cidr.into(),
            machine: machine.id.clone(),
            node: name.into(),
        })
        .unwrap();
    (node, machine)
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_routes_left_by_upstream_controllers_cost_no_write() {
    let mut rig = Rig::new(&FLAGS).await.unwrap();
    let (first, _) = initialised_by_upstream(&rig, "first", "10.244.1.0/24").await;
    let (second, _) = initialised_by_upstream(&rig, "second", "10.244.2.0/24").await;
    for _ in 0..2 {
        rig.cloud.reset_counters();
        let writes = rig.to_api.stop_at(Point::before(Method::PATCH, "/nodes/"));
        rig.start().unwrap();
        // Several passes of all loops over them.
        eventually(SOON, "the loops have come round", || async {
            let counters = rig.cloud.counters();
            counters.requests(Operation::ListInstances) >= 3 && counters.requests(Operation::ListRoutes) >= 3
        })
        .await;
        rig.kill().unwrap();
        assert_eq!(writes.count(), 0, "written although it was right");
        assert_eq!(rig.cloud.counters().requests(Operation::ChangeRoutes), 0);
        for before in [&first, &second] {
            let now = rig.nodes().get(&before.name_any()).await.unwrap();
            assert_eq!(now.resource_version(), before.resource_version(), "{now:?}");
        }
    }
    // And they are looked after from now on, as new ones are.
    rig.cloud.add_machines([NewMachine::named("third")]);
    let third = NodeBuilder::new("third").pod_cidr("10.244.3.0/24");
    third.create(&rig.client).await.unwrap();
    rig.nodes().delete("second", &DeleteParams::default()).await.unwrap();
    rig.start().unwrap();
    rig.settled("the new Node has its route and the old one's is gone", async || {
        let third = rig.nodes().get("third").await.unwrap();
        let mut nodes: Vec<String> = rig.cloud.routes().into_iter().map(|route| route.spec.node).collect();
        nodes.sort();
        match nodes == ["first", "third"] && !is_uninitialised(&third) {
            true => Ok(()),
            false => Err(format!("{nodes:?}")),
        }
    })
    .await;
    assert_eq!(rig.cloud.routes_made(), 3);
}
