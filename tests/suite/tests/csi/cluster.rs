//! A cluster for volumes without machines: API server, kube-controller-manager, the four sidecars and the controller of snapshots, beside a simulated cloud
//! and two replicas of the real process.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use cloudwit_sim_cloud::{Operation, SimCloud};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::port;
use cloudwit_test_support::{ApiServer, eventually};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use xtask::kubernetes::sidecars::{Sidecars, Snapshots};

use crate::replica::{Replica, SOON, cloud};
use crate::replicas::QUICK;
use crate::running::{Running, make, merge};
use crate::sidecars::{DRIVER, NODE, clear_the_stage, register_plugin, set_the_stage};

/// What of kube-controller-manager has to do with volumes; and Pods need a service account.
const CONTROLLERS: &str = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,\
     persistentvolume-expander-controller,persistentvolumeclaim-protection-controller,\
     persistentvolume-protection-controller,serviceaccount-controller";

/// Requests a second that clients of the API server may make: not what is measured.
const QPS: [&str; 2] = ["--kube-api-qps=2000", "--kube-api-burst=2000"];

/// The programs; built if they are not there yet, which takes minutes.
struct Programs {
    kubernetes: PathBuf,
    sidecars: Sidecars,
    snapshots: Snapshots,
}

/// All of it. It ends when this is dropped, and its objects stay.
pub struct Cluster {
    pub cloud: SimCloud,
    pub client: Client,
    pub sidecars: Running,
    sockets: PathBuf,
    /// The leader, and who waits.
    replicas: VecDeque<Replica>,
    started: usize,
    folder: tempfile::TempDir,
    _manager: Child,
}

impl Cluster {
    /// With one Node, whose plugin is registered. Sidecars have so many workers each.
    pub async fn start(workers: u32) -> Self {
        let programs = tokio::task::spawn_blocking(|| Programs {
            kubernetes: xtask::kubernetes::binary().unwrap(),
            sidecars: xtask::kubernetes::sidecars::programs().unwrap(),
            snapshots: xtask::kubernetes::sidecars::snapshots().unwrap(),
        });
        let (programs, api) = (programs.await.unwrap(), ApiServer::shared().await);
        let (cloud, client, folder) = (cloud(1).await, api.client(), tempfile::tempdir().unwrap());
        let sockets = folder.path().join("csi");
        fs::create_dir(&sockets).unwrap();
        set_the_stage(&client).await;
        define_snapshots(&client, &programs.snapshots.definitions).await;
        let leader = Replica::start_in("replica-0", folder.path(), &sockets, &cloud, &QUICK).await;
        leader.listens().await;
        let standby = Replica::start_in("replica-1", folder.path(), &sockets, &cloud, &QUICK).await;
        register_plugin(&client).await;
        // A kubelet notes that it leaves attaching to the controller.
        let managed =
            json!({"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}});
        merge::<Node>(&Api::all(client.clone()), NODE, None, managed).await;
        let manager = controller_manager(&programs.kubernetes, folder.path(), api.kubeconfig());
        Self {
            sidecars: sidecars(&programs, workers, &leader.socket, folder.path(), api.kubeconfig()),
            started: 2,
            _manager: manager,
            cloud,
            client,
            sockets,
            replicas: VecDeque::from([leader, standby]),
            folder,
        }
        .with_service_account()
        .await
    }

    async fn with_service_account(self) -> Self {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), "default");
        eventually(SOON, "the service account of Pods", || accounts.get("default")).await;
        self
    }

    /// The leader dies without a word, the other replica leads, and a new one waits.
    pub async fn kill_the_leader(&mut self) {
        self.replicas.pop_front().unwrap().process.kill().unwrap();
        self.started += 1;
        let name = format!("replica-{}", self.started);
        let next = Replica::start_in(&name, self.folder.path(), &self.sockets, &self.cloud, &QUICK).await;
        self.replicas.push_back(next);
        self.replicas[0].listens().await;
    }

    /// Requests of these kinds that the cloud has got.
    pub fn requests(&self, operations: &[Operation]) -> u64 {
        let counters = self.cloud.counters();
        operations.iter().map(|one| counters.requests(*one)).sum()
    }

    /// Takes away what has no name of a test's own.
    pub async fn clear(self) {
        clear_the_stage(&self.client).await;
    }
}

/// The type VolumeSnapshot, or another of its group.
pub fn snapshots(client: &Client, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk(&kind);
    match kind.kind.as_str() {
        "VolumeSnapshot" => Api::namespaced_with(client.clone(), "default", &resource),
        _ => Api::all_with(client.clone(), &resource),
    }
}

/// A Pod on the Node that uses these claims.
pub fn pod(name: &str, claims: &[&str]) -> Value {
    let volumes = claims
        .iter()
        .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
    json!({
        "metadata": {"name": name},
        "spec": {
            "nodeName": NODE, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none"}], "volumes": volumes.collect::<Vec<_>>()
        }
    })
}

/// A claim of so many GiB, empty or with the content of a snapshot.
pub fn claim(name: &str, gib: u8, snapshot: Option<&str>) -> Value {
    let source =
        snapshot.map(|name| json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": name}));
    json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "sim", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{gib}Gi")}}, "dataSource": source
        }
    })
}

fn controller_manager(kubernetes: &Path, folder: &Path, kubeconfig: &Path) -> Child {
    let mut flags = vec![
        "kube-controller-manager".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port::reserve().unwrap()),
        format!("--cert-dir={}", folder.join("certificates").display()),
        "--pvclaimbinder-sync-period=1s".to_owned(),
    ];
    flags.extend(QPS.map(str::to_owned));
    Child::start(kubernetes, &flags, &folder.join("kube-controller-manager.log")).unwrap()
}

fn sidecars(programs: &Programs, workers: u32, socket: &Path, folder: &Path, kubeconfig: &Path) -> Running {
    let mut running = Running::none(folder, kubeconfig);
    let address = format!("--csi-address={}", socket.display());
    let threads = format!("--worker-threads={workers}");
    let (sidecars, snapshots) = (&programs.sidecars, &programs.snapshots);
    for (name, program, threads) in [
        ("provisioner", &sidecars.provisioner, threads.clone()),
        ("attacher", &sidecars.attacher, threads.clone()),
        ("resizer", &sidecars.resizer, format!("--workers={workers}")),
        ("snapshotter", &snapshots.snapshotter, threads),
    ] {
        running.add(
            name,
            program,
            [&address, &threads].map(String::as_str).into_iter().chain(QPS),
        );
    }
    running.add("snapshot-controller", &snapshots.controller, []);
    running
}

/// The types of snapshots and a class, unless they are there.
async fn define_snapshots(client: &Client, definitions: &Path) {
    let types: Api<CustomResourceDefinition> = Api::all(client.clone());
    for name in ["volumesnapshotclasses", "volumesnapshotcontents", "volumesnapshots"] {
        let file = definitions.join(format!("snapshot.storage.k8s.io_{name}.yaml"));
        let definition: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let there = types
            .get_opt(definition["metadata"]["name"].as_str().unwrap())
            .await
            .unwrap();
        if there.is_none() {
            make(&types, definition).await;
        }
        let name = format!("{name}.snapshot.storage.k8s.io");
        eventually(SOON, "the type is served", || async {
            let conditions = types.get(&name).await.ok()?.status?.conditions?;
            conditions
                .iter()
                .any(|one| one.type_ == "Established" && one.status == "True")
                .then_some(())
        })
        .await;
    }
    let class = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": "sim"}, "driver": DRIVER, "deletionPolicy": "Delete"
    });
    let class: DynamicObject = serde_json::from_value(class).unwrap();
    let classes = snapshots(client, "VolumeSnapshotClass");
    if classes.get_opt("sim").await.unwrap().is_none() {
        classes.create(&PostParams::default(), &class).await.unwrap();
    }
}

/// Whether a Node reports that it has so many volumes attached.
pub async fn reported(client: &Client) -> usize {
    let nodes: Api<Node> = Api::all(client.clone());
    let status = nodes.get(NODE).await.ok().and_then(|node| node.status);
    status
        .and_then(|status| status.volumes_attached)
        .unwrap_or_default()
        .len()
}
