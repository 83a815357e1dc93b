//! `cloudwit csi` with the component `aws` on a cluster in moto, behind a gate.

use std::path::PathBuf;
use std::time::Duration;

use cloudwit_csi::proto::*;
use cloudwit_test_support::aws_files::aws_files;
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::fault::Fault;
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::moto::{AwsCluster, AwsMachine, Credentials, Moto};
use cloudwit_test_support::{eventually, guests, programs};
use serde_json::{Value, json};

use crate::scene::{point, policy};
use crate::served::{Controller, dial};
use crate::sidecar_requests::wanted_at;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// Where the machines are.
pub const ZONE: &str = "us-east-1a";

/// The driver's process, and what it has to do with. It ends before the others.
pub struct Ebs {
    _process: Child,
    socket: PathBuf,
    pub moto: &'static Moto,
    pub cluster: AwsCluster,
    pub key: Credentials,
    pub gate: Gate,
    /// Two instances in [`ZONE`].
    pub machines: Vec<AwsMachine>,
    _folder: tempfile::TempDir,
}

impl Ebs {
    /// For a cluster of this name, which no other test may have.
    pub async fn start(name: &str) -> Self {
        let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("aws"))).await;
        let (program, component) = built.unwrap();
        let moto = Moto::shared().await;
        let cluster = moto.cluster(name).await.unwrap();
        let machines = cluster.machines(moto, 0, 2).await.unwrap();
        let key = moto.user(name, &policy()).await.unwrap();
        let gate = Gate::to_url(moto.url()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment =
            Deployment::of("aws", &folder.path().join("run"), program.parent().unwrap(), &component).unwrap();
        let files = aws_files(&cluster, &gate.url(), &key, &deployment).unwrap();
        let config = deployment.write("cloud-config", &files.config).unwrap();
        let settings = deployment.write("settings.yaml", &files.settings).unwrap();
        let socket = folder.path().join("csi.sock");
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let arguments = [
            "csi".to_owned(),
            component.display().to_string(),
            format!("--cloud-config={}", config.display()),
            format!("--settings={}", settings.display()),
            format!("--endpoint={}", socket.display()),
            format!("--cache-dir={}", cache.display()),
        ];
        let process = Child::start(&program, &arguments, &folder.path().join("csi.log")).unwrap();
        eventually(SOON, "the driver listens", || async {
            let connected = tokio::net::UnixStream::connect(&socket).await;
            connected
                .map(drop)
                .map_err(|error| format!("{error}\n{}", process.log_end()))
        })
        .await;
        Self {
            _process: process,
            socket,
            moto,
            cluster,
            key,
            gate,
            machines,
            _folder: folder,
        }
    }

    /// A client of the controller service.
    pub async fn client(&self) -> Controller {
        Controller::new(dial(self.socket.clone()).await)
    }

    /// The id of one of the instances.
    pub fn machine(&self, number: usize) -> &str {
        &self.machines[number].id
    }

    /// A volume of this name, made.
    pub async fn made(&self, client: &mut Controller, name: &str) -> String {
        let answer = client.create_volume(wanted(name)).await.unwrap().into_inner();
        answer.volume.unwrap().volume_id
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
