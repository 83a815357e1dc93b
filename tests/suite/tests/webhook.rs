//! The admission webhook `persistent-volume-label` of the real process, which a real API server asks as `cloudwit install` registers it, but for the address:
//! PersistentVolumes of Kubernetes' own sources get the labels of their disks or are refused, whatever happens to process, cloud and certificate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_sim_cloud::{Fault, Operation, SimCloud, SimCloudOptions};
use cloudwit_suite::common::webhook_client as registration;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::{guests, port};
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, eventually, programs};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt};
use registration::{create, pair, terms, volume};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

const SOON: Duration = Duration::from_secs(60);
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// An API server that asks the webhook of one replica, and what that one needs.
struct Scene {
    client: Client,
    cloud: SimCloud,
    folder: TempDir,
    deployment: Deployment,
    kubeconfig: PathBuf,
    port: u16,
    replicas: Vec<Child>,
    pages: String,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    async fn start(flags: &[&str]) -> Self {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let built = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("sim"))).await;
        let (program, provider) = built.unwrap();
        let server = ApiServer::shared().await;
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let deployment =
            Deployment::new(&folder.path().join("cloudwit"), program.parent().unwrap(), &provider).unwrap();
        let mut scene = Self {
            client: server.client(),
            cloud: SimCloud::start(options).await.unwrap(),
            folder,
            deployment,
            kubeconfig: server.kubeconfig().to_owned(),
            port: port::reserve().unwrap(),
            replicas: Vec::new(),
            pages: String::new(),
            _turn: turn,
        };
        let authority = pair(scene.folder.path());
        scene.replica(scene.port, flags);
        scene.register(&provider, &authority).await;
        scene
    }

    /// Starts one more replica, with its webhooks on this port.
    fn replica(&mut self, port: u16, flags: &[&str]) {
        let webhooks = registration::flags(self.folder.path(), port);
        let flags: Vec<&str> = webhooks
            .iter()
            .map(String::as_str)
            .chain(flags.iter().copied())
            .collect();
        let mut files = self.deployment.sim_files(&self.cloud.url()).unwrap();
        files.config =
            json!({"endpoint": self.cloud.url(), "labelSources": ["gcePersistentDisk", "cinder"]}).to_string();
        let (process, pages) = self.deployment.start_on(&self.kubeconfig, &files, &flags).unwrap();
        self.replicas.push(process);
        self.pages = pages;
    }

    /// Registers the webhook, and waits until it is asked.
    async fn register(&self, component: &Path, authority: &str) {
        registration::register(&self.client, "sim", component, self.client_config(authority)).await;
        eventually(SOON, "the webhook is asked", || async {
            match self
                .create_dry("probe", json!({"gcePersistentDisk": {"pdName": "disk-none"}}))
                .await
            {
                Err(refused) if refused.contains("there is no disk disk-none") => Ok(()),
                other => Err(format!("{other:?}\n{}", self.replicas[0].log_end())),
            }
        })
        .await;
    }

    fn client_config(&self, authority: &str) -> Value {
        registration::client_config(self.port, authority)
    }

    fn configurations(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    async fn ask_elsewhere(&self, authority: &str) {
        let mut configuration = self.configurations().get("cloudwit").await.unwrap();
        let webhook = &mut configuration.webhooks.as_mut().unwrap()[0];
        webhook.client_config = serde_json::from_value(self.client_config(authority)).unwrap();
        let (configurations, params) = (self.configurations(), PostParams::default());
        configurations
            .replace("cloudwit", &params, &configuration)
            .await
            .unwrap();
    }

    /// A disk of the cloud.
    async fn disk(&self, zone: &str) -> String {
        let count = self.cloud.disks().len();
        let disk = json!({"name": format!("d-{count}"), "cluster": "test", "size": 1_u64 << 30, "zone": zone, "type": "standard",
            "iops": null, "shared": false, "source": null});
        let made = reqwest::Client::new().post(format!("{}/v1/disks", self.cloud.url()));
        let made = made
            .bearer_auth(TOKEN)
            .header("Content-Type", "application/json")
            .body(disk.to_string());
        let made = made.send().await.unwrap();
        assert!(made.status().is_success(), "{}", made.text().await.unwrap());
        self.cloud.disks().last().unwrap().id.clone()
    }

    async fn create_dry(&self, name: &str, source: Value) -> Result<PersistentVolume, String> {
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        create(&self.client, &params, volume(name, source)).await
    }

    async fn create(&self, volume: Value) -> Result<PersistentVolume, String> {
        let created = create(&self.client, &PostParams::default(), volume).await?;
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        volumes
            .delete(&created.name_any(), &DeleteParams::default())
            .await
            .unwrap();
        Ok(created)
    }

    async fn end(self) {
        self.configurations()
            .delete("cloudwit", &DeleteParams::default())
            .await
            .unwrap();
    }
}

fn csi(name: &str) -> Value {
    volume(name, json!({"csi": {"driver": "d.example.com", "volumeHandle": "h"}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn cloud_volumes_get_disk_labels_and_affinity_or_refusal() {
    let scene = Scene::start(&[]).await;
    let disk = scene.disk("sim-1b").await;
    let gce = |name: &str| json!({"gcePersistentDisk": {"pdName": name}});

    let labelled = scene.create(volume("labelled", gce(&disk))).await.unwrap();
    assert_eq!(
        (labelled.labels()[ZONE].as_str(), labelled.labels()[REGION].as_str()),
        ("sim-1b", "sim-1")
    );
    let places = json!([
        {"key": REGION, "operator": "In", "values": ["sim-1"]},
        {"key": ZONE, "operator": "In", "values": ["sim-1b"]},
    ]);
    assert_eq!(terms(&labelled), json!([{"matchExpressions": places}]));

    // Whatever the user says of the zone, the disk is where it is; and what he requires himself is left alone.
    let mut own = volume("own", json!({"cinder": {"volumeID": disk}}));
    own["metadata"]["labels"] = json!({ZONE: "elsewhere", "own": "1"});
    let required = json!([{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["elsewhere"]}]}]);
    own["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": required}});
    let own = scene.create(own).await.unwrap();
    assert_eq!(
        (own.labels()[ZONE].as_str(), own.labels()["own"].as_str()),
        ("sim-1b", "1")
    );
    assert_eq!(terms(&own), required);

    // A provisioner is trusted, without a look at the cloud.
    let mut provisioned = volume("provisioned", gce("disk-unknown"));
    provisioned["metadata"]["labels"] = json!({ZONE: "z__y", REGION: "r"});
    provisioned["metadata"]["annotations"] = json!({"pv.kubernetes.io/provisioned-by": "kubernetes.io/gce-pd"});
    let provisioned = scene.create(provisioned).await.unwrap();
    assert_eq!(
        terms(&provisioned)[0]["matchExpressions"][1]["values"],
        json!(["y", "z"])
    );
    let placeholder = scene
        .create(volume("placeholder", gce("placeholder-for-provisioning")))
        .await
        .unwrap();
    assert_eq!(
        (placeholder.labels().get(ZONE), terms(&placeholder)),
        (None, Value::Null)
    );

    for (source, part) in [
        (gce("disk-gone"), "there is no disk disk-gone"),
        (
            json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}),
            "no provider has labels of awsElasticBlockStore volumes",
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "/d"}}),
            "no provider has labels of azureDisk volumes",
        ),
        (
            json!({"vsphereVolume": {"volumePath": "[ds] d"}}),
            "no provider has labels of vsphereVolume volumes",
        ),
    ] {
        let refused = scene.create(volume("refused", source.clone())).await.unwrap_err();
        let begin = "403: admission webhook \"persistent-volume-label.cloudwit.dev\" denied the request: PersistentVolume \"refused\" is not \
                     created: ";
        assert!(
            refused.starts_with(begin) && refused.contains(part),
            "{source}: {refused}"
        );
    }
    scene.create(csi("of-a-driver")).await.unwrap();

    let metrics = reqwest::get(format!("{}/metrics", scene.pages))
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let counted = "cloud_provider_webhook_request_total{code=\"200\",webhook=\"persistent-volume-label\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(counted)).unwrap();
    // Four that were created, four refused, and the look whether it is asked; the volume of a driver never came.
    assert!(count.parse::<u32>().unwrap() >= 9, "{count}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_replica_answers_and_without_any_policy_refuses() {
    let election = |name: &'static str| [name, "--leader-elect=true"];
    let mut scene = Scene::start(&election("--leader-elect-resource-name=webhook")).await;
    let disk = scene.disk("sim-2a").await;
    let source = json!({"gcePersistentDisk": {"pdName": disk}});
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    let holder = || async {
        let lease = leases.get("webhook").await.ok()?;
        lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
    };
    let leading = eventually(SOON, "the first leads", || async {
        holder().await.ok_or("nobody does")
    })
    .await;
    scene.port = port::reserve().unwrap();
    // Before the second reads the files: half of the old pair and half of the new one are none.
    let authority = pair(scene.folder.path());
    scene.replica(scene.port, &election("--leader-elect-resource-name=webhook"));
    scene.ask_elsewhere(&authority).await;
    let labelled = eventually(SOON, "the second answers", || scene.create_dry("waits", source.clone())).await;
    assert_eq!(labelled.labels()[REGION], "sim-2");
    assert_eq!(holder().await.unwrap(), leading, "it answered without the lead");

    for replica in std::mem::take(&mut scene.replicas) {
        replica.kill().unwrap();
    }
    let refused = scene.create_dry("nobody", source).await.unwrap_err();
    assert!(
        refused.starts_with("500: ") && refused.contains("failed calling webhook"),
        "{refused}"
    );
    scene.create(csi("nobody-is-needed")).await.unwrap();
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hung_cloud_is_reported_and_new_certificate_needs_no_restart() {
    let scene = Scene::start(&[]).await;
    let disk = scene.disk("sim-1a").await;
    let source = json!({"gcePersistentDisk": {"pdName": disk}});
    scene
        .cloud
        .set_faults([Fault::new(cloudwit_sim_cloud::FaultKind::Hang).on(Operation::ListDisks)]);
    let late = scene.create_dry("late", source.clone()).await.unwrap_err();
    assert!(
        late.starts_with("403: ") && late.contains("has not answered within 8s"),
        "{late}"
    );
    scene.cloud.set_faults([]);
    scene.create_dry("again", source.clone()).await.unwrap();

    // The API server trusts the new authority alone, so it is the new certificate that it sees.
    let authority = pair(scene.folder.path());
    scene.ask_elsewhere(&authority).await;
    eventually(SOON, "the new certificate is trusted", || {
        scene.create_dry("renewed", source.clone())
    })
    .await;
    scene.end().await;
}
