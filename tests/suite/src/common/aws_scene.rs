//! A cluster, its VPC in the shared moto, a gate before that, and Cloudwit as a process with the component `aws`, whose key may do no more
//! than the policy that operators are given.

use std::ops::Deref;

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::clouds::moto::{AwsCluster, AwsMachine, Credentials, Moto};
use cloudwit_test_support::files::aws::aws_files;
use cloudwit_test_support::gate::fault::Fault;
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::scenes::installation::Installation;
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

/// All of it. The process ends before what it talks to.
pub struct Scene {
    installation: Installation,
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
    _turn: SemaphorePermit<'static>,
}

impl Deref for Scene {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

impl Scene {
    /// A cluster of this name, which no other test may have, without Nodes, and no process yet.
    pub async fn new(name: &str) -> Self {
        // Two clusters at a time: each is an API server, and more of them starve each other where there are two processors.
        static TURNS: Semaphore = Semaphore::const_new(2);
        let turn = TURNS.acquire().await.unwrap();
        let installation = Installation::new("aws").await.unwrap();
        let moto = Moto::shared().await;
        Self {
            installation,
            gate: Gate::to_url(moto.url()).await.unwrap(),
            moto,
            cluster: moto.cluster(name).await.unwrap(),
            key: moto.user(name, &policy()).await.unwrap(),
            more: (String::new(), String::new()),
            _turn: turn,
        }
    }

    /// Starts Cloudwit with these flags beside those of the [`Installation`].
    pub fn start(&mut self, flags: &[&str]) {
        let url = self.gate.url();
        let mut files = aws_files(&self.cluster, &url, &self.key, &self.installation.deployment).unwrap();
        files.config = files
            .config
            .replacen("[Global]\n", &format!("[Global]\n{}", self.more.0), 1)
            + &self.more.1;
        self.installation.start(&files, flags).unwrap();
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

    /// An answer of moto's to boto3.
    pub async fn ask(&self, method: &str, arguments: Value) -> Value {
        self.moto.call("ec2", method, arguments).await.unwrap()
    }

    /// The actions that moto was asked for by the process's key, with the status of the answer; 0 while there is none.
    pub async fn calls(&self) -> Vec<(String, u16)> {
        let calls = self.moto.calls().await.unwrap();
        let own = calls.into_iter().filter(|call| call.key == self.key.access_key);
        own.map(|call| (call.action, call.status)).collect()
    }

    /// Those of [`calls`](Self::calls) that are answered: the process goes on with calls of its own while a test looks.
    pub async fn answered_calls(&self) -> Vec<(String, u16)> {
        let mut calls = self.calls().await;
        calls.retain(|(_, status)| *status != 0);
        calls
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

/// What the key of an operator may do.
pub fn policy() -> Value {
    let policy = crate::root().join("deploy/examples/aws/policy.json");
    serde_json::from_str(&std::fs::read_to_string(policy).unwrap()).unwrap()
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
