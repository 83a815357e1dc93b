//! Controllers on the real API server, one test at a time: they look at the whole cluster.

use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::{Cluster, Controller, Options};
use cloudwit_model::Cloud;
use cloudwit_test_support::foreign_events::is_of_the_api_server;
use cloudwit_test_support::{ApiServer, eventually};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const SOON: Duration = Duration::from_secs(180);

/// The API server for one test, without Services and Nodes of earlier ones.
pub struct Alone {
    pub client: Client,
    _turn: MutexGuard<'static, ()>,
}

pub async fn alone() -> Alone {
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    let client = ApiServer::shared().await.client();
    let alone = Alone { client, _turn: turn };
    let services = alone.services();
    for service in services.list(&ListParams::default()).await.unwrap() {
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        // What the test before began to delete may go meanwhile.
        match services
            .patch(&service.name_any(), &PatchParams::default(), &free)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            freed => freed.unwrap(),
        };
        if service.name_any() != "kubernetes" {
            // A Service that was being deleted is gone with its last finalizer.
            let _ = services.delete(&service.name_any(), &DeleteParams::default()).await;
        }
    }
    alone
        .nodes()
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    alone
}

impl Alone {
    pub fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Reasons of the Events about the Service or Node of this name, in the order of their first writing. Those about one of
    /// the same name in an earlier test do not count.
    pub async fn event_reasons(&self, name: &str) -> Vec<String> {
        let uid = match self.services().get_opt(name).await.unwrap() {
            Some(service) => service.metadata.uid,
            None => self.nodes().get(name).await.unwrap().metadata.uid,
        };
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = ListParams::default().fields(&format!("involvedObject.uid={}", uid.unwrap()));
        let mut events = events.list(&about).await.unwrap().items;
        events.retain(|event| !is_of_the_api_server(event));
        events.sort_by_key(|event| event.first_timestamp.clone());
        events.into_iter().filter_map(|event| event.reason).collect()
    }

    /// Runs one controller until it is dropped or stopped.
    pub fn run(&self, controller: Controller, cloud: Arc<dyn Cloud>, mut options: Options) -> Running {
        options.controllers = [controller].into();
        self.run_all(cloud, options)
    }

    /// Runs all controllers of these options until they are dropped or stopped.
    pub fn run_all(&self, cloud: Arc<dyn Cloud>, options: Options) -> Running {
        let mut registry = Registry::default();
        let cluster = Cluster::new(self.client.clone(), &mut registry);
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(cluster.run(cloud, options, shutdown.clone()));
        Running {
            shutdown,
            task: Some(task),
            registry,
        }
    }
}

/// A running controller.
pub struct Running {
    shutdown: CancellationToken,
    task: Option<JoinHandle<Result<(), cloudwit_controllers::ControllersError>>>,
    registry: Registry,
}

impl Running {
    /// Ends it, whatever it is doing: calls in flight are dropped, as when the process dies.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        self.task.take().unwrap().await.unwrap().unwrap();
    }

    /// The value of the metric whose line starts like this; 0 when there is none.
    pub fn metric(&self, line: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        let value = text.lines().find_map(|found| found.strip_prefix(line));
        value.map_or(0.0, |value| value.trim().parse().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Waits until a look at the cluster or the cloud holds.
pub async fn until<Fut: Future<Output = bool>>(what: &str, look: impl FnMut() -> Fut) {
    eventually(SOON, what, look).await;
}
