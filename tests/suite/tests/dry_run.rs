//! `--dry-run` of the real process: it says what it would do and does nothing, neither to the cluster nor to the cloud.

use std::time::Duration;

use cloudwit_sim_cloud::{Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder, eventually, guests, programs};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

const SOON: Duration = Duration::from_secs(40);

/// What a dry run has to say here, each once: Node, Service, route and the deletion of a Node whose machine is gone.
const EXPECTED: [&str; 5] = [
    "end the initialisation",
    "add the load balancer finalizer",
    "the provider would be asked for a load balancer",
    "this route would change",
    "its machine is gone",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_every_write_once_and_makes_none() {
    let build = || (programs::cloudwit(), guests::provider("sim"));
    let (program, provider) = tokio::task::spawn_blocking(build).await.unwrap();
    let server = ApiServer::start().await.unwrap();
    let cloud = SimCloud::start(SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    });
    let cloud = cloud.await.unwrap();
    cloud.add_numbered_machines("new", 1);
    let client = server.client();
    let new = NodeBuilder::new("new-0").create(&client);
    new.await.unwrap();
    let old = NodeBuilder::new("old")
        .provider_id("sim://vm-1")
        .pod_cidr("10.244.1.0/24")
        .initialised();
    old.create(&client).await.unwrap();
    let gone = NodeBuilder::new("gone")
        .provider_id("sim://vm-99")
        .initialised()
        .ready(None);
    gone.create(&client).await.unwrap();
    ServiceBuilder::new("web").create(&client).await.unwrap();
    let (nodes, services): (Api<Node>, Api<Service>) =
        (Api::all(client.clone()), Api::default_namespaced(client.clone()));
    let versions = async || {
        let all = ListParams::default();
        let nodes = nodes.list(&all).await.unwrap();
        let mut services = services.list(&all).await.unwrap();
        // The API server makes it, some time after it is ready.
        services.items.retain(|service| service.name_any() != "kubernetes");
        let of_nodes = nodes.iter().map(|node| (node.name_any(), node.resource_version()));
        let of_services = services
            .iter()
            .map(|service| (service.name_any(), service.resource_version()));
        of_nodes.chain(of_services).collect::<Vec<_>>()
    };
    let before = versions().await;

    let folder = tempfile::tempdir().unwrap();
    let deployment = Deployment::new(&folder.path().join("dry"), program.parent().unwrap(), &provider).unwrap();
    let flags = [
        "--dry-run",
        "--node-monitor-period=1s",
        "--route-reconciliation-period=1s",
        "--node-deletion-confirm-after=1s",
        "--node-deletion-grace-period=0s",
        "--node-deletion-max-percent=100",
    ];
    let (mut cloudwit, _) = deployment
        .start_cloudwit(server.kubeconfig(), &cloud.url(), &flags)
        .unwrap();
    let log = || std::fs::read_to_string(cloudwit.log()).unwrap();
    eventually(SOON, "everything is told", || async {
        let log = log();
        EXPECTED.iter().try_for_each(|line| {
            if log.contains(line) {
                Ok(())
            } else {
                Err(format!("{line} in:\n{log}"))
            }
        })
    })
    .await;
    // Several further passes of the loops over the same objects.
    let lists = cloud.counters().requests(Operation::ListRoutes);
    eventually(SOON, "the loops have come round again", || async {
        cloud.counters().requests(Operation::ListRoutes) > lists
    })
    .await;

    let told = log();
    for line in EXPECTED {
        assert_eq!(told.matches(line).count(), 1, "{line} in:\n{told}");
    }
    let counters = cloud.counters();
    for writes in [
        Operation::CreateLoadBalancer,
        Operation::UpdateLoadBalancer,
        Operation::UpdateTargets,
        Operation::DeleteLoadBalancer,
        Operation::ChangeRoutes,
    ] {
        assert_eq!(counters.requests(writes), 0, "{writes}");
    }
    assert_eq!(versions().await, before);
    let events = Api::<Event>::all(client).list(&ListParams::default()).await.unwrap();
    let ours = events
        .iter()
        .filter(|event| ["Node", "Service"].contains(&event.involved_object.kind.as_deref().unwrap_or("")));
    assert_eq!(ours.count(), 0);
    assert_eq!(cloudwit.ended().unwrap(), None);
}
