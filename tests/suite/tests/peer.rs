//! Upstream's controllers in Go (`tests/peer`) on a real API server and the simulated cloud: what Cloudwit is measured beside does all of the work
//! that is measured.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::peer;
use cloudwit_test_support::scenes::deployment::TOKEN;
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::DeleteParams;
use kube::{Api, Client};
use tempfile::TempDir;

/// Upstream's service controller waits for five seconds between two looks at Nodes, and its route controller for ten.
const LIMIT: Duration = Duration::from_secs(60);

struct Scene {
    cloud: SimCloud,
    client: Client,
    peer: Child,
    _server: ApiServer,
    _folder: TempDir,
}

impl Scene {
    async fn start(flags: &'static [&'static str]) -> Self {
        let program = tokio::task::spawn_blocking(xtask::kubernetes::peer::tested)
            .await
            .unwrap()
            .unwrap();
        let server = ApiServer::start().await.unwrap();
        let options = SimCloudOptions {
            token: TOKEN.into(),
            // So that a Service has to be asked for twice.
            balancer_build_time: Duration::from_millis(500),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self {
            peer: peer::start(&program, folder.path(), server.kubeconfig(), &cloud.url(), flags).unwrap(),
            client: server.client(),
            cloud,
            _server: server,
            _folder: folder,
        }
    }

    /// Waits; a failure shows the end of the peer's log.
    async fn until<T, Fut: Future<Output = Result<T>>>(&self, what: &str, look: impl Fn() -> Fut) -> T {
        eventually(LIMIT, what, || async {
            look()
                .await
                .with_context(|| format!("the peer's log ends:\n{}", self.peer.log_end()))
        })
        .await
    }

    async fn node(&self, name: &str) -> Result<Node> {
        Ok(Api::<Node>::all(self.client.clone()).get(name).await?)
    }

    async fn service(&self, name: &str) -> Result<Service> {
        Ok(Api::<Service>::default_namespaced(self.client.clone())
            .get(name)
            .await?)
    }
}

#[tokio::test]
async fn nodes_services_and_routes_are_all_set_up() {
    let scene = Scene::start(&["--node-monitor-period=1s"]).await;
    let machines = scene.cloud.add_numbered_machines("node", 2);
    for (number, machine) in machines.iter().enumerate() {
        let node = NodeBuilder::new(&machine.name).pod_cidr(&format!("10.244.{number}.0/24"));
        node.create(&scene.client).await.unwrap();
    }
    for machine in &machines {
        let node = scene
            .until("the Node is initialised", || initialised(&scene, &machine.name))
            .await;
        let id = node.spec.unwrap().provider_id.unwrap();
        assert_eq!(id, format!("sim://{}", machine.id));
        let labels = node.metadata.labels.unwrap();
        assert_eq!(labels["topology.kubernetes.io/zone"], machine.zone);
        assert_eq!(labels["node.kubernetes.io/instance-type"], machine.kind);
        let addresses = node.status.unwrap().addresses.unwrap();
        assert!(
            addresses
                .iter()
                .any(|address| address.address == machine.addresses[0].ip),
            "{addresses:?}"
        );
    }

    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let address = scene
        .until("the Service has an address", || address(&scene, "web"))
        .await;
    scene.until("both machines are behind it", || behind(&scene, 2)).await;
    let balancer = scene.cloud.load_balancers().remove(0);
    assert_eq!(balancer.address.unwrap(), address);
    scene.until("each Node has its route", || routes(&scene, 2)).await;

    scene.cloud.delete_machines(["node-1"]);
    let silent = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let nodes = Api::<Node>::all(scene.client.clone());
    nodes
        .patch_status("node-1", &Default::default(), &kube::api::Patch::Strategic(silent))
        .await
        .unwrap();
    scene
        .until("the Node without a machine is gone", || async {
            let left = nodes.get_opt("node-1").await?;
            ensure!(left.is_none(), "it is there");
            Ok(())
        })
        .await;
    scene.until("its machine is behind nothing", || behind(&scene, 1)).await;
    scene.until("its route is gone", || routes(&scene, 1)).await;

    let services = Api::<Service>::default_namespaced(scene.client.clone());
    services.delete("web", &DeleteParams::default()).await.unwrap();
    scene
        .until("the load balancer is gone with its Service", || async {
            let left = scene.cloud.load_balancers().len();
            ensure!(left == 0 && services.get_opt("web").await?.is_none(), "{left} are left");
            Ok(())
        })
        .await;
    assert_eq!(scene.cloud.counters().unauthorized(), 0);
}

async fn initialised(scene: &Scene, name: &str) -> Result<Node> {
    let node = scene.node(name).await?;
    // Upstream writes the addresses in a request of its own, after the taint is gone.
    let addresses = node
        .status
        .as_ref()
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default();
    let addressed = addresses.iter().any(|address| address.type_ == "InternalIP");
    ensure!(!is_uninitialised(&node) && addressed, "{:?}", node.spec);
    Ok(node)
}

async fn address(scene: &Scene, name: &str) -> Result<String> {
    let status = scene.service(name).await?.status.unwrap_or_default();
    let ingress = status.load_balancer.unwrap_or_default().ingress.unwrap_or_default();
    let first = ingress.into_iter().next().context("it has none")?;
    first.ip.context("it has a name only")
}

async fn behind(scene: &Scene, wanted: usize) -> Result<()> {
    let targets = scene
        .cloud
        .load_balancers()
        .first()
        .context("there is no load balancer")?
        .spec
        .targets
        .clone();
    ensure!(targets.len() == wanted, "behind it are {targets:?}");
    Ok(())
}

async fn routes(scene: &Scene, wanted: usize) -> Result<()> {
    let routes = scene.cloud.routes();
    ensure!(routes.len() == wanted, "{routes:?}");
    Ok(())
}
