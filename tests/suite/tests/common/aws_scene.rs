//! A cluster, its VPC in the shared moto, a gate before that, and Cloudwit as a process with the component `aws`, whose key may do no more
//! than the policy that operators are given.

use std::time::Duration;

use cloudwit_test_support::aws_files::aws_files;
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::fault::Fault;
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::moto::{AwsCluster, AwsMachine, Credentials, Moto};
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, guests, programs};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// Flags with which the Nodes' controllers look often and believe what they see quickly.
pub const QUICK: [&str; 6] = [
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "--node-status-update-frequency=1s",
    "--route-reconciliation-period=1s",
];

/// All of it. The fields that others hold on to come last.
pub struct Scene {
    process: Option<Child>,
    /// With all rights.
    pub client: Client,
    /// The cloud.
    pub moto: &'static Moto,
    /// VPC, subnets, route table.
    pub cluster: AwsCluster,
    /// What the process signs with.
    pub key: Credentials,
    /// Between the process and moto.
    pub gate: Gate,
    /// Further lines of the cloud config: the first go into `[Global]`, the others after all.
    pub more: (String, String),
    deployment: Deployment,
    server: ApiServer,
    _folder: TempDir,
    _turn: SemaphorePermit<'static>,
}

impl Scene {
    /// A cluster of this name, which no other test may have, without Nodes, and no process yet.
    pub async fn new(name: &str) -> Self {
        // Two clusters at a time: each is an API server, and more of them starve each other where there are two processors.
        static TURNS: Semaphore = Semaphore::const_new(2);
        let turn = TURNS.acquire().await.unwrap();
        let built = || (programs::cloudwit(), guests::provider("aws"));
        let (program, component) = tokio::task::spawn_blocking(built).await.unwrap();
        let moto = Moto::shared().await;
        let server = ApiServer::start().await.unwrap();
        let cluster = moto.cluster(name).await.unwrap();
        let policy = cloudwit_suite::root().join("deploy/examples/aws/policy.json");
        let policy: Value = serde_json::from_str(&std::fs::read_to_string(policy).unwrap()).unwrap();
        let key = moto.user(name, &policy).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let programs = program.parent().unwrap();
        Self {
            process: None,
            client: server.client(),
            gate: Gate::to_url(moto.url()).await.unwrap(),
            moto,
            cluster,
            key,
            more: (String::new(), String::new()),
            deployment: Deployment::of("aws", &folder.path().join("run"), programs, &component).unwrap(),
            server,
            _folder: folder,
            _turn: turn,
        }
    }

    /// Starts Cloudwit with these flags beside [`QUICK`]; of two for the same thing the later counts.
    pub fn start(&mut self, flags: &[&str]) {
        let mut files = aws_files(&self.cluster, &self.gate.url(), &self.key, &self.deployment).unwrap();
        files.config = files
            .config
            .replacen("[Global]\n", &format!("[Global]\n{}", self.more.0), 1)
            + &self.more.1;
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let quick = QUICK
            .iter()
            .filter(|quick| !flags.iter().any(|flag| name(flag) == name(quick)));
        let flags: Vec<&str> = quick.chain(flags).copied().collect();
        let (process, _) = self
            .deployment
            .start_on(self.server.kubeconfig(), &files, &flags)
            .unwrap();
        self.process = Some(process);
    }

    /// What the process has logged.
    pub fn log(&self) -> String {
        let log = self.process.as_ref().map(Child::log);
        log.and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// Waits until `wrong` finds nothing wrong any more.
    #[track_caller]
    pub fn settled<Fut: Future<Output = Result<(), String>>>(
        &self,
        what: &str,
        mut wrong: impl FnMut() -> Fut,
    ) -> impl Future<Output = ()> {
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, what, move || {
            let look = wrong();
            async move { look.await.map_err(|wrong| format!("{wrong}\n{}", log())) }
        })
    }

    /// All Nodes.
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// A Node by its name.
    pub async fn node(&self, name: &str) -> Option<Node> {
        self.nodes().get_opt(name).await.unwrap()
    }

    /// An instance, and its Node as the kubelet registers it: named by the private DNS name, with this Pod range.
    pub async fn joins(&self, pod_range: &str) -> AwsMachine {
        let machine = self.cluster.machines(self.moto, 0, 1).await.unwrap().remove(0);
        self.registers(&machine, pod_range).await;
        machine
    }

    /// The Node of an instance, as the kubelet registers it.
    pub async fn registers(&self, machine: &AwsMachine, pod_range: &str) {
        let node = NodeBuilder::new(&machine.private_dns).pod_cidr(pod_range);
        node.create(&self.client).await.unwrap();
    }

    /// Waits until the Node is initialised.
    #[track_caller]
    pub fn initialised(&self, name: &str) -> impl Future<Output = Node> {
        let nodes = self.nodes();
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, "the Node is initialised", move || {
            let (nodes, name) = (nodes.clone(), name.to_owned());
            async move {
                let node = nodes.get(&name).await.map_err(|error| error.to_string())?;
                if is_uninitialised(&node) {
                    Err(format!("it has the taint\n{}", log()))
                } else {
                    Ok(node)
                }
            }
        })
    }

    /// The kubelet falls silent, as when its machine is off.
    pub async fn falls_silent(&self, name: &str) {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(None)] } }));
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// An answer of moto's to boto3.
    pub async fn ask(&self, method: &str, arguments: Value) -> Value {
        self.moto.call("ec2", method, arguments).await.unwrap()
    }

    /// The actions that moto was asked for by the process's key, with the status of the answer.
    pub async fn calls(&self) -> Vec<(String, u16)> {
        let calls = self.moto.calls().await.unwrap();
        let own = calls.into_iter().filter(|call| call.key == self.key.access_key);
        own.map(|call| (call.action, call.status)).collect()
    }

    /// How often this action was asked for.
    pub async fn count(&self, action: &str) -> usize {
        self.calls().await.iter().filter(|(known, _)| known == action).count()
    }

    /// How often moto itself has described instances.
    pub async fn answered(&self) -> usize {
        let described = ("DescribeInstances".to_owned(), 200);
        self.calls().await.iter().filter(|call| **call == described).count()
    }

    /// From now on, requests for this action meet a fault.
    pub fn fail(&self, action: &str, fault: Fault) -> Fault {
        self.gate.fail(point(action), fault)
    }
}

/// Requests for this action.
pub fn point(action: &str) -> Point {
    Point::before(Method::POST, "/").with(format!("Action={action}&"))
}

/// A refusal of EC2's shape.
pub fn refusal(status: u16, code: &str) -> Fault {
    let body =
        format!("<Response><Errors><Error><Code>{code}</Code><Message>No.</Message></Error></Errors></Response>");
    Fault::status(StatusCode::from_u16(status).unwrap()).body("text/xml", body)
}
