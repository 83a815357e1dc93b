//! `cloudwit csi` with the component `aws` on a cluster in moto, behind a gate.

use std::ops::Deref;

use cloudwit_csi::proto::*;
use cloudwit_suite::common::csi_process::{self, CsiProcess};
use cloudwit_test_support::clouds::moto::{AwsCluster, AwsMachine, Credentials, Moto};
use cloudwit_test_support::files::aws::aws_files;
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::gate::fault::Fault;
use serde_json::{Value, json};

use crate::scene::{point, policy};
use crate::served::Controller;
use crate::sidecar_requests::wanted_at;

/// Where the machines are.
pub const ZONE: &str = "us-east-1a";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Ebs {
    process: CsiProcess,
    pub moto: &'static Moto,
    pub cluster: AwsCluster,
    pub key: Credentials,
    pub gate: Gate,
    /// Two instances in [`ZONE`].
    pub machines: Vec<AwsMachine>,
}

impl Deref for Ebs {
    type Target = CsiProcess;

    fn deref(&self) -> &CsiProcess {
        &self.process
    }
}

impl Ebs {
    /// For a cluster of this name, which no other test may have.
    pub async fn start(name: &str) -> Self {
        let moto = Moto::shared().await;
        let cluster = moto.cluster(name).await.unwrap();
        let machines = cluster.machines(moto, 0, 2).await.unwrap();
        let key = moto.user(name, &policy()).await.unwrap();
        let gate = Gate::to_url(moto.url()).await.unwrap();
        let files = async |deployment: &_| aws_files(&cluster, &gate.url(), &key, deployment).unwrap();
        Self {
            process: CsiProcess::start("aws", files).await,
            moto,
            cluster,
            key,
            gate,
            machines,
        }
    }

    /// The id of one of the instances.
    pub fn machine(&self, number: usize) -> &str {
        &self.machines[number].id
    }

    /// A volume of this name, made.
    pub async fn made(&self, client: &mut Controller, name: &str) -> String {
        csi_process::made(client, wanted(name)).await
    }

    /// The cluster's volumes as moto has them.
    pub async fn volumes(&self) -> Vec<Value> {
        let tag = format!("kubernetes.io/cluster/{}", self.cluster.name);
        let driver = json!([
            { "Name": "tag-key", "Values": [tag] }, { "Name": "tag:ebs.csi.aws.com/cluster", "Values": ["true"] }
        ]);
        let answer = self
            .moto
            .call("ec2", "describe_volumes", json!({ "Filters": driver }))
            .await;
        answer.unwrap()["Volumes"].as_array().unwrap().clone()
    }

    /// How often moto was asked for this action by the driver.
    pub async fn count(&self, action: &str) -> usize {
        let calls = self.moto.calls().await.unwrap();
        let own = calls.iter().filter(|call| call.key == self.key.access_key);
        own.filter(|call| call.action == action).count()
    }

    /// From now on, requests for this action meet a fault.
    pub fn fail(&self, action: &str, fault: Fault) -> Fault {
        self.gate.fail(point(action), fault)
    }
}

/// A volume of two GiB where the machines are.
pub fn wanted(name: &str) -> CreateVolumeRequest {
    wanted_at(name, "topology.ebs.csi.aws.com/zone", ZONE)
}
