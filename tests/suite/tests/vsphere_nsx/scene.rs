//! A cluster, a vCenter with an NSX manager beside it, and Cloudwit as a process with the component `vsphere`.

use std::ops::Deref;

use anyhow::Result;
use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::clouds::vcsim::{Vcsim, VcsimOptions};
use cloudwit_test_support::files::vsphere::{NSX_CONFIG, nsx_client, nsx_files, vsphere_files};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::scenes::installation::Installation;
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Nodes and Services.
pub const BALANCERS: &str = "--controllers=cloud-node-controller,service-lb-controller";

/// Nodes and routes.
pub const ROUTES: &str = "--controllers=cloud-node-controller,node-route-controller";

/// Places of machines in vcsim.
const PLACES: [&str; 4] = [
    "/DC0/vm/DC0_H0_VM0",
    "/DC0/vm/DC0_H0_VM1",
    "/DC1/vm/DC1_H0_VM0",
    "/DC1/vm/DC1_H0_VM1",
];

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
    pub nsx: StandIn,
    gate: Gate,
    vcsim: Vcsim,
    /// What the cloud config says about NSX; nothing where it is empty.
    pub config: String,
    /// In place of the right password.
    pub password: Option<String>,
    /// How many machines tell their names.
    joined: usize,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Scene {
    /// A cluster without Nodes, machines that tell nothing yet, a manager without load balancers, and no process yet.
    pub async fn new() -> Self {
        let (installation, vcsim, nsx) = tokio::join!(
            Installation::new("vsphere"),
            Vcsim::start(VcsimOptions::default()),
            StandIn::start("nsx", &[])
        );
        let (vcsim, nsx) = (vcsim.unwrap(), nsx.unwrap());
        Self {
            installation: installation.unwrap(),
            gate: vcsim.gate_to(nsx.url()).await.unwrap(),
            nsx,
            vcsim,
            config: NSX_CONFIG.into(),
            password: None,
            joined: 0,
        }
    }

    /// Two Nodes, and Cloudwit with these controllers.
    pub async fn with_nodes(controllers: &str) -> Self {
        let mut scene = Self::new().await;
        scene.joins("one").await;
        scene.joins("two").await;
        scene.start(&[controllers]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub async fn start(&mut self, flags: &[&str]) {
        let deployment = &self.installation.deployment;
        let files = match self.config.is_empty() {
            true => vsphere_files(&self.vcsim, deployment).map(|mut files| {
                files.config = files.config.replace("k8s-zone", "").replace("k8s-region", "");
                files
            }),
            false => {
                let nsx = (&self.nsx, &self.gate);
                nsx_files(&self.vcsim, nsx, self.password.as_deref(), &self.config, deployment).await
            }
        };
        self.installation.start(&files.unwrap(), flags).unwrap();
    }

    /// The same with files that say something else about NSX.
    pub fn start_with(&mut self, files: impl Fn(&Vcsim, &Deployment) -> Result<CloudFiles>, flags: &[&str]) {
        let files = files(&self.vcsim, &self.installation.deployment).unwrap();
        self.installation.start(&files, flags).unwrap();
    }

    /// Ends the process as a power failure does.
    pub fn kill(&mut self) {
        self.installation.kill().unwrap();
    }

    /// A machine and its Node, which is `10.0.0.1` for the first and so on, and has the Pod range `10.244.1.0/24`.
    pub async fn joins(&mut self, name: &str) {
        let (node, _, _) = self.machine(name).await;
        node.create(&self.client).await.unwrap();
    }

    /// The same as another controller has left it.
    pub async fn joined(&mut self, name: &str) {
        let (node, ip, provider_id) = self.machine(name).await;
        let node = node
            .provider_id(&provider_id)
            .node_ip(&ip)
            .initialised()
            .ready(Some(true));
        node.create(&self.client).await.unwrap();
    }

    /// A machine that tells its name and address, its Node as the kubelet registers it, its address and its id.
    async fn machine(&mut self, name: &str) -> (NodeBuilder, String, String) {
        let place = PLACES[self.joined];
        self.joined += 1;
        let ip = format!("10.0.0.{}", self.joined);
        self.vcsim.set_guest(place, name, &ip).await.unwrap();
        let machines = self.vcsim.machines().await.unwrap();
        let machine = machines.into_iter().find(|machine| machine.path == place).unwrap();
        let range = format!("10.244.{}.0/24", self.joined);
        let node = NodeBuilder::new(name).pod_cidr(&range);
        (node, ip, machine.provider_id())
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.nsx.call(what, arguments).await.unwrap()
    }

    /// What VMware's own client sees, or does.
    pub async fn client_says(&self, arguments: &[&str]) -> Value {
        nsx_client(&self.nsx, arguments).await.unwrap()
    }

    /// Objects of a kind, such as `lb-pools`, with `state` and what was realized.
    pub async fn has(&self, kind: &str) -> Vec<Value> {
        self.nsx.resources(json!({ "kind": kind })).await.unwrap()
    }

    /// Waits until what is there of a kind is as wished.
    pub async fn comes(&self, what: &str, kind: &str, wished: impl Fn(&[Value]) -> bool) {
        self.settled(what, || async {
            let all = self.has(kind).await;
            if wished(&all) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    /// How often this was called, such as `PUT lb-pools/{id}`.
    pub async fn calls(&self, name: &str) -> usize {
        let calls = self.nsx.calls().await.unwrap();
        calls.iter().filter(|call| call.name == name).count()
    }

    /// How many changes were asked for.
    pub async fn writes(&self) -> Vec<String> {
        let calls = self.nsx.calls().await.unwrap();
        let writes = calls
            .into_iter()
            .filter(|call| !matches!(call.method.as_str(), "GET" | "POST"));
        writes
            .map(|call| format!("{} {} {}", call.status, call.name, call.target))
            .collect()
    }

    /// Waits for so many lists of virtual servers: the Service was looked at.
    pub async fn looked_at(&self, count: usize) {
        self.settled("it is looked at", || async {
            match self.calls("GET lb-monitor-profiles").await {
                seen if seen >= count => Ok(()),
                seen => Err(format!("{seen} times")),
            }
        })
        .await;
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    pub async fn shown_address(&self, service: &str) -> Option<String> {
        address(&self.services().get_opt(service).await.unwrap()?)
    }

    /// Waits for its address.
    pub async fn address(&self, service: &str) -> String {
        self.settled("the Service has an address", || async {
            match self.shown_address(service).await {
                Some(_) => Ok(()),
                None => Err("none".into()),
            }
        })
        .await;
        self.shown_address(service).await.unwrap()
    }

    pub async fn patch(&self, service: &str, patch: Value) {
        let how = PatchParams::default();
        let patch = Patch::Merge(patch);
        self.services().patch(service, &how, &patch).await.unwrap();
    }

    /// Deletes it and waits until it is gone.
    pub async fn is_gone(&self, service: &str) {
        self.services().delete(service, &DeleteParams::default()).await.unwrap();
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await.unwrap() {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
    }

    /// Deletes it; nothing is left at the manager.
    pub async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        for kind in [
            "lb-virtual-servers",
            "lb-pools",
            "lb-monitor-profiles",
            "ip-allocations",
            "lb-services",
        ] {
            assert_eq!(self.has(kind).await, Vec::<Value>::new(), "{kind}");
        }
        self.only_what_the_readme_lists().await;
    }

    /// Paths and methods that were called are those for which the README asks, and none of it was a mistake of the stand-in.
    pub async fn only_what_the_readme_lists(&self) {
        let readme = include_str!("../../../../providers/vsphere/README.md");
        let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `/infra/")).collect();
        for call in self.nsx.calls().await.unwrap() {
            assert_ne!(call.status, 599, "{call:?}");
            if call.agent == "vcf-nsx" || call.name == "POST /api/session/create" {
                continue;
            }
            let kind = call.name.split([' ', '/']).nth(1).unwrap_or_default();
            let listed = rows.iter().any(|row| row.contains(kind) && row.contains(&call.method));
            assert!(listed, "{call:?}");
        }
    }
}
