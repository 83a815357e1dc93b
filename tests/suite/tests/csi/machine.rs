//! A machine of the simulated cloud on which the real process `cloudwit csi-node` runs, with real devices, in a mount namespace of its own.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cloudwit_csi::proto::node_client::NodeClient;
use cloudwit_csi::proto::*;
use cloudwit_model::volume::{NODE_ANNOTATION, NodeAnnotation};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, programs};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tonic::transport::Channel;

use crate::loop_disks::LoopDisks;
use crate::scene::{Scene, dial};

pub const DRIVER: &str = "sim.csi.cloudwit.dev";

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// The machine's id in the cloud.
const MACHINE: &str = "vm-1";

/// Where it is.
const ZONE: (&str, &str) = ("topology.sim.csi.cloudwit.dev/zone", "sim-1a");

/// Programs that devices and mounts need.
const PROGRAMS: [&str; 6] = ["losetup", "unshare", "nsenter", "blkid", "mkfs.ext4", "resize2fs"];

/// The machine; what it has goes when this is dropped: first the plugin, then all that it has mounted, then the devices.
pub struct Machine {
    plugin: Option<Child>,
    /// Keeps the mount namespace.
    namespace: Child,
    pub disks: LoopDisks,
    pub scene: Scene,
    pub node: String,
    folder: tempfile::TempDir,
    api: &'static ApiServer,
}

/// The path of a program of the system.
pub fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].into_iter();
    folders
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
}

/// What is missing here to have devices and mounts.
fn missing() -> Option<String> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return Some("this needs root, for loop devices and mounts".to_owned());
    }
    if let Some(missing) = PROGRAMS.into_iter().find(|name| program(name).is_none()) {
        return Some(format!("there is no {missing} (Debian: mount, util-linux, e2fsprogs)"));
    }
    let works = |command: &mut Command| command.output().is_ok_and(|ran| ran.status.success());
    if !works(Command::new("unshare").args(["--mount", "true"])) || !works(Command::new("losetup").arg("--find")) {
        return Some("root has neither mount namespaces nor loop devices here".to_owned());
    }
    None
}

impl Machine {
    /// Starts it, with the plugin; none, loudly, where there can be no devices.
    pub async fn start(name: &str) -> Option<Self> {
        let machine = Self::without_annotation(name).await?;
        machine.annotate().await;
        let client = machine.client().await;
        eventually(SOON, "the plugin knows its machine", || {
            let mut client = client.clone();
            async move { client.node_get_info(NodeGetInfoRequest {}).await }
        })
        .await;
        Some(machine)
    }

    /// The same on a Node that no controller has written to.
    pub async fn without_annotation(name: &str) -> Option<Self> {
        if let Some(missing) = missing() {
            eprintln!("SKIPPED {name}: {missing}");
            return None;
        }
        let scene = Scene::start(3).await;
        let folder = tempfile::tempdir().unwrap();
        for name in ["kubelet/plugins_registry", "kubelet/stage", "kubelet/pods"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let disks = LoopDisks::follow(scene.cloud.clone(), MACHINE, folder.path());
        let arguments = ["--mount", "--propagation", "private", "sleep", "infinity"];
        let namespace = start(
            "unshare",
            &arguments.map(str::to_owned),
            &folder.path().join("namespace.log"),
        );
        let entered = PathBuf::from(format!("/proc/{}/ns/mnt", namespace.pid()));
        eventually(SOON, "a mount namespace", async || {
            fs::read_link(&entered).is_ok_and(|link| Some(link) != fs::read_link("/proc/self/ns/mnt").ok())
        })
        .await;
        let api = ApiServer::shared().await;
        NodeBuilder::new(name).create(&api.client()).await.unwrap();
        let mut machine = Self {
            plugin: None,
            namespace,
            disks,
            scene,
            node: name.to_owned(),
            folder,
            api,
        };
        machine.start_plugin().await;
        Some(machine)
    }

    /// Starts the plugin, again after [`kill_plugin`](Self::kill_plugin).
    pub async fn start_plugin(&mut self) {
        let cloudwit = tokio::task::spawn_blocking(programs::cloudwit).await.unwrap();
        let arguments = [
            format!("--mount=/proc/{}/ns/mnt", self.namespace.pid()),
            "--".to_owned(),
            cloudwit.display().to_string(),
            "csi-node".to_owned(),
            format!("--driver-name={DRIVER}"),
            format!("--node-name={}", self.node),
            format!("--kubelet-dir={}", self.kubelet("").display()),
            format!("--sysfs={}", self.disks.sysfs().display()),
            format!("--kubeconfig={}", self.api.kubeconfig().display()),
        ];
        self.plugin = Some(start("nsenter", &arguments, &self.folder.path().join("plugin.log")));
        let socket = self.socket();
        eventually(SOON, "the plugin answers", || {
            let socket = socket.clone();
            async move { tokio::net::UnixStream::connect(socket).await }
        })
        .await;
    }

    /// Kills the plugin with SIGKILL.
    pub fn kill_plugin(&mut self) {
        self.plugin.take().unwrap().kill().unwrap();
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop_plugin(&mut self) {
        let mut plugin = self.plugin.take().unwrap();
        plugin.signal("TERM").unwrap();
        eventually(SOON, "the plugin ends", || {
            let ended = plugin.ended().unwrap();
            async move { ended }
        })
        .await;
    }

    /// Does what the controller does once the cloud knows the machine.
    pub async fn annotate(&self) {
        let annotation = NodeAnnotation {
            driver: DRIVER.into(),
            node_id: MACHINE.into(),
            topology: [(ZONE.0.to_owned(), ZONE.1.to_owned())].into(),
            max_volumes: Some(16),
        };
        let patch = json!({ "metadata": { "annotations": { NODE_ANNOTATION: annotation.text().unwrap() } } });
        let nodes: Api<Node> = Api::all(self.api.client());
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        nodes.patch(&self.node, &parameters, &patch).await.unwrap();
    }

    /// A path below the kubelet's folder, as the plugin is told it.
    pub fn kubelet(&self, path: &str) -> PathBuf {
        self.folder.path().join("kubelet").join(path)
    }

    /// The same path as the machine sees it, with what is mounted there.
    pub fn inside(&self, path: &str) -> PathBuf {
        let path = self.kubelet(path);
        let root = PathBuf::from(format!("/proc/{}/root", self.namespace.pid()));
        root.join(path.strip_prefix("/").unwrap())
    }

    pub fn socket(&self) -> PathBuf {
        self.kubelet("plugins").join(DRIVER).join("csi.sock")
    }

    pub fn registration_socket(&self) -> PathBuf {
        self.kubelet("plugins_registry").join(format!("{DRIVER}@reg.sock"))
    }

    pub async fn client(&self) -> NodeClient<Channel> {
        NodeClient::new(dial(self.socket()).await)
    }

    /// Makes a disk of so many GiB; its id.
    pub async fn create(&self, name: &str, gib: i64, capability: VolumeCapability) -> String {
        let here = Topology {
            segments: [(ZONE.0.to_owned(), ZONE.1.to_owned())].into(),
        };
        let request = CreateVolumeRequest {
            name: name.into(),
            capacity_range: Some(CapacityRange {
                required_bytes: gib << 30,
                limit_bytes: 0,
            }),
            volume_capabilities: vec![capability],
            accessibility_requirements: Some(TopologyRequirement {
                requisite: vec![here],
                preferred: Vec::new(),
            }),
            ..CreateVolumeRequest::default()
        };
        let made = self.scene.controller().await.create_volume(request).await.unwrap();
        made.into_inner().volume.unwrap().volume_id
    }

    /// Attaches a disk; its publish context, once it has a device.
    pub async fn attach(&self, id: &str, capability: VolumeCapability) -> HashMap<String, String> {
        let request = ControllerPublishVolumeRequest {
            volume_id: id.into(),
            node_id: MACHINE.into(),
            volume_capability: Some(capability),
            ..ControllerPublishVolumeRequest::default()
        };
        let attached = self
            .scene
            .controller()
            .await
            .controller_publish_volume(request)
            .await
            .unwrap();
        eventually(SOON, "the disk's device", async || self.disks.device(id)).await;
        attached.into_inner().publish_context
    }

    /// Lets a disk grow, in the cloud and on the machine.
    pub async fn grow(&self, id: &str, gib: i64) {
        let request = ControllerExpandVolumeRequest {
            volume_id: id.into(),
            capacity_range: Some(CapacityRange {
                required_bytes: gib << 30,
                limit_bytes: 0,
            }),
            ..ControllerExpandVolumeRequest::default()
        };
        self.scene
            .controller()
            .await
            .controller_expand_volume(request)
            .await
            .unwrap();
    }
}

fn start(name: &str, arguments: &[String], log: &Path) -> Child {
    Child::start(&program(name).unwrap(), arguments, log).unwrap()
}
