//! The provider `sim` as the component that is shipped, in the real host, on the simulated cloud over real HTTP. What it decides is tested
//! natively beside its code; here is what only the whole way shows: exports, `wasi:http`, placeholders, grants, faults of the network.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use cloudwit_host::Provider;
use cloudwit_host::grants::Grants;
use cloudwit_model::{
    Cloud, CloudError, Endpoint, Evidence, Failure, NewRoute, NodeRef, Presence, Protocol, RouteTokens, Service,
    ServicePort, Target,
};
use cloudwit_sim_cloud::{Fault, FaultKind, MachineState, Operation, SimCloud, SimCloudOptions};
use cloudwit_suite::common::sim_provider;
use cloudwit_suite::hosting::node;
use sim_provider::{LoadedSim, load_sim};

/// The provider, loaded and configured for a cloud of its own.
struct Sim {
    cloud: SimCloud,
    provider: Arc<Provider>,
    _loaded: LoadedSim,
}

impl Sim {
    async fn start() -> Self {
        Self::with(SimCloudOptions::default(), "sim-token", true).await
    }

    async fn with(options: SimCloudOptions, token: &str, granted: bool) -> Self {
        let cloud = SimCloud::start(options).await.unwrap();
        let loaded = load_sim(&cloud, token, |grants: &mut Grants| {
            if !granted {
                // The secret is there, and bound to where the requests do not go.
                grants.http[0].host = "elsewhere.example".into();
                grants.secrets[0].hosts = vec![format!("elsewhere.example:{}", cloud.address().port())];
            }
        })
        .await;
        Self {
            cloud,
            provider: loaded.provider.clone(),
            _loaded: loaded,
        }
    }

    async fn failure_of_a_look_up(&self) -> Failure {
        match self.provider.lookup(&[by_id("vm-1")]).await {
            Err(CloudError::Failure(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }
}

fn by_id(machine: &str) -> NodeRef {
    NodeRef {
        provider_id: Some(format!("sim://{machine}")),
        ..node(machine)
    }
}

fn target(machine: &str) -> Target {
    Target {
        node: by_id(machine),
        ready: true,
    }
}

fn service() -> Service {
    let port = ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    };
    Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "7d1f0c4e-0000-4000-8000-000000000001".into(),
        ports: vec![port],
        ..Service::default()
    }
}

#[tokio::test]
async fn a_thousand_nodes_are_looked_up_in_one_request() {
    let sim = Sim::start().await;
    sim.cloud.add_numbered_machines("node", 1000);
    sim.cloud.delete_machines(["vm-7"]);
    sim.cloud.set_state(["vm-8"], MachineState::Stopped);
    let nodes: Vec<NodeRef> = (1..=1000).map(|number| by_id(&format!("vm-{number}"))).collect();
    let answers = sim.provider.lookup(&nodes).await.unwrap();
    for (number, answer) in (1..=1000).zip(answers) {
        let id = format!("sim://vm-{number}");
        match answer.unwrap() {
            Presence::Running(instance) => assert_eq!(instance.provider_id, id),
            Presence::Stopped(instance) => assert_eq!((number, instance.provider_id), (8, id)),
            Presence::Absent(evidence) => assert_eq!((number, evidence), (7, Evidence::ById)),
        }
    }
    assert_eq!(sim.cloud.counters().requests(Operation::ListInstances), 1);
}

#[tokio::test]
async fn a_joining_node_is_found_by_name() {
    let sim = Sim::start().await;
    sim.cloud.add_numbered_machines("node", 1);
    let answers = sim.provider.lookup(&[node("node-0"), node("node-1")]).await.unwrap();
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (instance.provider_id.as_str(), instance.zone.as_deref()),
        ("sim://vm-1", Some("sim-1a"))
    );
    assert_eq!(
        instance
            .addresses
            .iter()
            .map(|address| address.value.as_str())
            .collect::<Vec<_>>(),
        ["node-0", "10.0.0.1"]
    );
    assert_eq!(answers[1], Ok(Presence::Absent(Evidence::ByName)));
}

#[tokio::test]
async fn a_load_balancer_lives_and_dies() {
    let hour = Duration::from_secs(3600);
    let options = SimCloudOptions {
        balancer_build_time: hour,
        ..SimCloudOptions::default()
    };
    let sim = Sim::with(options, "sim-token", true).await;
    sim.cloud.add_numbered_machines("node", 2);
    let service = service();
    assert_eq!(sim.provider.get_balancer(&service).await, Ok(None));

    let building = sim.provider.ensure_balancer(&service, &[target("vm-1")], None).await;
    let Err(CloudError::Failure(Failure::Pending { token, after, .. })) = building else {
        panic!("{building:?}")
    };
    assert_eq!(after, Duration::from_secs(1));
    sim.cloud.finish_load_balancers();
    let balancer = sim
        .provider
        .ensure_balancer(&service, &[target("vm-1")], Some(&token))
        .await
        .unwrap();
    assert!(matches!(&balancer.ingress[0].endpoint, Endpoint::Ip(ip, _) if ip.to_string() == "198.51.100.1"));

    sim.provider
        .update_targets(&service, &[target("vm-2"), target("vm-1")], None)
        .await
        .unwrap();
    let in_cloud = &sim.cloud.load_balancers()[0].spec;
    assert_eq!(
        (in_cloud.targets.as_slice(), in_cloud.cluster.as_str()),
        (&["vm-1".to_owned(), "vm-2".to_owned()][..], "test-cluster")
    );
    assert_eq!(in_cloud.name, sim.provider.balancer_name(&service).await.unwrap());

    sim.provider.delete_balancer(&service, None).await.unwrap();
    assert!(sim.cloud.load_balancers().is_empty());
    sim.provider.delete_balancer(&service, None).await.unwrap();
}

#[tokio::test]
async fn five_hundred_routes_are_one_request_and_one_list() {
    let sim = Sim::start().await;
    sim.cloud.add_numbered_machines("node", 500);
    let create: Vec<NewRoute> = (0..500)
        .map(|number| NewRoute {
            name_hint: format!("uid-{number}"),
            destination: format!("10.{}.{}.0/24", 100 + number / 256, number % 256),
            node: by_id(&format!("vm-{}", number + 1)),
        })
        .collect();
    // The body is larger than what a stream takes at once.
    let outcome = sim
        .provider
        .apply_routes(&create, &[], RouteTokens::NONE)
        .await
        .unwrap();
    assert!(
        outcome.created.len() == 500 && outcome.created.iter().all(Result::is_ok),
        "{outcome:?}"
    );
    let routes = sim.provider.list_routes().await.unwrap();
    assert_eq!(routes.len(), 500);
    let outcome = sim
        .provider
        .apply_routes(&[], &routes, RouteTokens::NONE)
        .await
        .unwrap();
    assert!(
        outcome.deleted.len() == 500 && outcome.deleted.iter().all(Result::is_ok),
        "{outcome:?}"
    );
    let counters = sim.cloud.counters();
    assert_eq!(
        (
            counters.requests(Operation::ChangeRoutes),
            counters.requests(Operation::ListRoutes)
        ),
        (2, 1)
    );
}

#[tokio::test]
async fn the_token_is_filled_in_by_the_host_and_a_wrong_one_is_denied() {
    let sim = Sim::start().await;
    assert_eq!(sim.provider.check().await.unwrap().len(), 0);
    sim.provider.probe().await.unwrap();
    let wrong = Sim::with(SimCloudOptions::default(), "not-it", true).await;
    let denied = wrong.provider.probe().await.unwrap_err();
    assert!(
        matches!(&denied, CloudError::Failure(Failure::Denied(text)) if text.message.contains("401")),
        "{denied:?}"
    );
}

#[tokio::test]
async fn ungranted_destination_points_to_the_log() {
    let sim = Sim::with(SimCloudOptions::default(), "sim-token", false).await;
    let failure = sim.failure_of_a_look_up().await;
    assert!(
        matches!(&failure, Failure::Denied(text) if text.message.contains("controller's log")),
        "{failure:?}"
    );
    assert_eq!(sim.cloud.counters().total(), 0);
}

#[tokio::test]
async fn a_rate_limit_comes_through_with_its_advice() {
    let sim = Sim::start().await;
    sim.cloud.set_faults([Fault::slow_down(7)]);
    let slow = sim.failure_of_a_look_up().await;
    assert!(
        matches!(slow, Failure::RateLimited { after: Some(after), .. } if after == Duration::from_secs(7)),
        "{slow:?}"
    );
}

#[tokio::test]
async fn a_broken_cloud_is_unavailable() {
    let sim = Sim::start().await;
    for (fault, part) in [(Fault::status(500), "500"), (Fault::new(FaultKind::Cut), "")] {
        sim.cloud.set_faults([fault]);
        let failure = sim.failure_of_a_look_up().await;
        assert!(
            matches!(&failure, Failure::Unavailable(text) if text.message.contains(part)),
            "{failure:?}"
        );
    }
    sim.cloud.set_faults([Fault::new(FaultKind::Garbage)]);
    let failure = sim.failure_of_a_look_up().await;
    assert!(
        matches!(&failure, Failure::Other(text) if text.message.contains("line 1 column 1")),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_lost_answer_is_found_again_and_nothing_is_made_twice() {
    let sim = Sim::start().await;
    sim.cloud.set_faults([Fault::new(FaultKind::CutAfter)
        .on(Operation::CreateLoadBalancer)
        .times(1)]);
    let lost = sim.provider.ensure_balancer(&service(), &[], None).await;
    assert!(
        matches!(lost, Err(CloudError::Failure(Failure::Unavailable(_)))),
        "{lost:?}"
    );
    sim.provider.ensure_balancer(&service(), &[], None).await.unwrap();
    assert_eq!(sim.cloud.load_balancers().len(), 1);
}
