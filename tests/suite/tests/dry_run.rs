//! `--dry-run` of the real process: it says what it would do and does nothing, neither to the cluster nor to the cloud.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use cloudwit_sim_cloud::{Operation, RouteSpec, SimCloud};
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::CLUSTER_NAME;
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};

const SOON: Duration = Duration::from_secs(300);

/// What changes something in the cloud.
const WRITES: [Operation; 5] = [
    Operation::CreateLoadBalancer,
    Operation::UpdateLoadBalancer,
    Operation::UpdateTargets,
    Operation::DeleteLoadBalancer,
    Operation::ChangeRoutes,
];

/// What a dry run has to say here, each once.
const EXPECTED: [&str; 17] = [
    // It does not wait for the Lease.
    "dry run: leader election skipped",
    // A Node joins, another one's machine is gone.
    "purpose=\"end the initialisation\"",
    "purpose=\"its machine is gone\"",
    "object=\"gone\" reason=\"MachineNotFound\"",
    "object=\"gone\" reason=\"DeletingNode\"",
    // A new Service: its finalizer, and its load balancer with ports and nodes.
    "name=\"default/web\" verb=\"patch\" purpose=\"add the load balancer finalizer\"",
    "dry run: this load balancer would be created service=\"default/web\" ports=\"80/Tcp\" nodes=3 names=\"gone new-0 old\"",
    "object=\"web\" reason=\"EnsuringLoadBalancer\"",
    // One that was made before: the cloud is asked what there is, and asked again and again.
    "dry run: nothing to change: the cloud has this load balancer, with the Service's address service=\"default/made\" ports=\"80/Tcp\" nodes=3 names=\"gone new-0 old\"",
    // One that is being deleted.
    "dry run: this load balancer would be deleted service=\"default/leaving\"",
    "name=\"default/leaving\" verb=\"patch\" purpose=\"remove the load balancer finalizer\"",
    "object=\"leaving\" reason=\"DeletingLoadBalancer\"",
    "object=\"leaving\" reason=\"DeletedLoadBalancer\"",
    // Routes: one is missing, one is left over.
    "dry run: this route would be created destination=\"10.244.1.0/24\" node=\"old\"",
    "destination=\"10.244.9.0/24\" node=\"(none)\"",
    "name=\"old\" verb=\"patch\" purpose=\"say whether the Node has its routes\"",
    // And nodes change while it runs.
    "dry run: this load balancer would get these nodes service=\"default/made\" nodes=4 names=\"gone late new-0 old\"",
];

/// A cluster in which a Cloudwit has worked before.
struct Scene(Site);

impl Scene {
    async fn new() -> Self {
        let scene = Self(Site::new().await.unwrap());
        scene.work_before().await;
        scene
    }

    /// A real run, which makes two load balancers. It leads, and gives its Lease back at its end.
    async fn work_before(&self) {
        for name in ["made", "leaving"] {
            ServiceBuilder::new(name).create(&self.0.client).await.unwrap();
        }
        let mut before = self.start(&["--leader-elect=true"]);
        eventually(SOON, "both are ready", || async {
            let services = self.services().list(&ListParams::default()).await.unwrap();
            let ready = |service: &&Service| {
                let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
                status.is_some_and(|balancer| balancer.ingress.is_some())
            };
            services.iter().filter(ready).count() == 2
        })
        .await;
        before.signal("TERM").unwrap();
        eventually(SOON, "it has given its Lease back and ended", || {
            let ended = before.ended().unwrap();
            async move { ended }
        })
        .await;
    }

    fn start(&self, flags: &[&str]) -> Child {
        self.0.start(flags).unwrap().0
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.0.client.clone())
    }

    /// The Lease, which whoever is a candidate would take.
    async fn lease(&self) -> Lease {
        let leases = Api::<Lease>::namespaced(self.0.client.clone(), "kube-system");
        leases.get("cloud-controller-manager").await.unwrap()
    }

    /// What changes while no Cloudwit runs: all of it is work for the next one.
    async fn change(&self) {
        self.0.cloud.add_numbered_machines("new", 1);
        let node = |name: &str, id: &str| NodeBuilder::new(name).provider_id(id).initialised();
        let nodes = [
            NodeBuilder::new("new-0"),
            node("old", "sim://vm-1").pod_cidr("10.244.1.0/24"),
            node("gone", "sim://vm-99").ready(None),
        ];
        for node in nodes {
            node.create(&self.0.client).await.unwrap();
        }
        ServiceBuilder::new("web").create(&self.0.client).await.unwrap();
        self.services()
            .delete("leaving", &DeleteParams::default())
            .await
            .unwrap();
        let left_over = RouteSpec {
            cluster: CLUSTER_NAME.into(),
            destination: "10.244.9.0/24".into(),
            machine: "vm-1".into(),
            node: String::new(),
        };
        self.0.cloud.add_route(left_over).unwrap();
    }

    /// Versions of all objects, and how many Events there are about them.
    async fn written(&self) -> (Vec<(String, Option<String>)>, usize) {
        let all = ListParams::default();
        let nodes = Api::<Node>::all(self.0.client.clone()).list(&all).await.unwrap();
        let services = self.services().list(&all).await.unwrap();
        let events = Api::<Event>::all(self.0.client.clone()).list(&all).await.unwrap();
        let ours = |event: &&Event| {
            let kind = event.involved_object.kind.as_deref().unwrap_or_default();
            ["Node", "Service"].contains(&kind) && !is_of_the_api_server(event)
        };
        let of_nodes = nodes.iter().map(|node| (node.name_any(), node.resource_version()));
        let of_services = services
            .iter()
            // The API server makes it, some time after it is ready.
            .filter(|service| service.name_any() != "kubernetes")
            .map(|service| (service.name_any(), service.resource_version()));
        (
            of_nodes.chain(of_services).collect(),
            events.iter().filter(ours).count(),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_run_reports_every_write_once_and_makes_none() {
    let scene = Scene::new().await;
    scene.change().await;
    let (in_cloud, before, lease) = (in_cloud(&scene.0.cloud), scene.written().await, scene.lease().await);
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
    assert_eq!(holder.unwrap_or_default(), "", "it is free");
    scene.0.cloud.reset_counters();
    let flags = [
        "--dry-run",
        "--leader-elect=true",
        "--node-monitor-period=1s",
        "--route-reconciliation-period=1s",
        "--service-drift-period=2s",
        "--node-deletion-confirm-after=1s",
        "--node-deletion-grace-period=0s",
        "--node-deletion-max-percent=100",
    ];
    let mut cloudwit = scene.start(&flags);
    let log = || std::fs::read_to_string(cloudwit.log()).unwrap();
    let told = |lines: &'static [&'static str]| async move {
        let log = log();
        let untold: Vec<&&str> = lines.iter().filter(|line| !log.contains(**line)).collect();
        if untold.is_empty() {
            Ok(())
        } else {
            Err(format!("{untold:#?} in:\n{log}"))
        }
    };
    let (last, first) = EXPECTED.split_last().unwrap();
    eventually(SOON, "everything is told", || told(first)).await;
    assert_eq!(scene.written().await, before);
    let late = NodeBuilder::new("late").provider_id("sim://vm-1").initialised();
    late.create(&scene.0.client).await.unwrap();
    eventually(SOON, "the change of nodes is told", || told(std::slice::from_ref(last))).await;

    // Several further passes of the loops over the same objects, looks for drift among them.
    let seen = scene.0.cloud.counters();
    eventually(SOON, "the loops have come round again", || async {
        let now = scene.0.cloud.counters();
        [
            Operation::ListRoutes,
            Operation::ListLoadBalancers,
            Operation::ListInstances,
        ]
        .iter()
        .all(|read| now.requests(*read) >= seen.requests(*read) + 2)
    })
    .await;
    let log = log();
    for line in EXPECTED {
        assert_eq!(log.matches(line).count(), 1, "{line} in:\n{log}");
    }
    let counters = scene.0.cloud.counters();
    for writes in WRITES {
        assert_eq!(counters.requests(writes), 0, "{writes}");
    }
    assert_eq!(self::in_cloud(&scene.0.cloud), in_cloud);
    let (mut objects, events) = scene.written().await;
    objects.retain(|(name, _)| name != "late");
    assert_eq!((objects, events), before);
    assert_eq!(scene.lease().await, lease, "it is no candidate");
    assert_eq!(cloudwit.ended().unwrap(), None);
}

fn in_cloud(cloud: &SimCloud) -> String {
    format!("{:?} {:?}", cloud.load_balancers(), cloud.routes())
}
