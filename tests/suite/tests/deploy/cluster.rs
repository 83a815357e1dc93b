//! A cluster into which Cloudwit was installed, and its process, run as the Deployment says: with its arguments, its files and the token of its
//! service account. What kubelet does, the mounting and the starting, is done here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::gate::{Gate, Point};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::{guests, port};
use cloudwit_test_support::scenes::deployment::TOKEN;
use cloudwit_test_support::{ApiServer, programs};
use http::{Method, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount, Volume};
use kube::api::PostParams;
use kube::config::AuthInfo;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// Who the process is.
pub const USER: &str = "system:serviceaccount:kube-system:cloudwit";

/// What is other than in a real cluster: everything quicker. The Lease is as long as it takes for a leader to survive a pause of ten seconds.
const QUICK: [&str; 8] = [
    "--leader-elect-lease-duration=15s",
    "--leader-elect-renew-deadline=12s",
    "--leader-elect-retry-period=200ms",
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "--route-reconciliation-period=1s",
];

/// The cluster, with everything applied, and the cloud.
pub struct Cluster {
    /// With RBAC and an audit log.
    pub server: ApiServer,
    /// With all rights.
    pub client: Client,
    /// The cloud.
    pub cloud: SimCloud,
    folder: TempDir,
    starts: AtomicU32,
}

/// A running process.
pub struct Running {
    /// It.
    pub process: Child,
    /// Its pages.
    pub https: String,
    /// Where it has an older API server.
    _gate: Option<Gate>,
}

impl Cluster {
    /// Installs with these further flags of `install`.
    pub async fn new(flags: &[&str]) -> Self {
        // Another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = ApiServer::start_audited().await.unwrap();
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.unwrap();
        cloud.add_numbered_machines("node", 200);
        let folder = tempfile::tempdir().unwrap();
        let cluster = Self {
            client: server.client(),
            server,
            cloud,
            folder,
            starts: AtomicU32::new(0),
        };
        cluster.write_operators_files().await;
        let said = cluster.install(&[&["--apply"], flags].concat());
        assert!(said.contains("Deployment cloudwit created"), "{said}");
        cluster
    }

    /// What somebody has who wants to install: a component, a configuration, a secret.
    async fn write_operators_files(&self) {
        let provider = tokio::task::spawn_blocking(|| guests::provider("sim")).await.unwrap();
        fs::copy(provider, self.file("sim.wasm")).unwrap();
        fs::write(self.file("token"), TOKEN).unwrap();
        let url = self.cloud.url();
        let host = url.trim_start_matches("http://");
        let (_, port) = host.rsplit_once(':').unwrap();
        let configuration = format!(
            "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: sim\n    component: sim.wasm\n    \
             cloudConfig: '{{\"endpoint\": \"{url}\"}}'\n    grants:\n      http:\n        \
             - {{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}\n      secrets:\n        \
             - {{name: token, file: token, hosts: [\"{host}\"], uses: [placeholder]}}\n"
        );
        fs::write(self.file("cloudwit.yaml"), configuration).unwrap();
    }

    /// A file of the operator's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `cloudwit install` with these flags; what it said on both outputs.
    pub fn install(&self, flags: &[&str]) -> String {
        let config = format!("--config={}", self.file("cloudwit.yaml").display());
        let kubeconfig = format!("--kubeconfig={}", self.server.kubeconfig().display());
        let mut command = Command::new(programs::cloudwit());
        command
            .arg("install")
            .arg(config)
            .arg("--cluster-cidr=10.244.0.0/16")
            .args(flags);
        if flags.contains(&"--apply") {
            // Nobody makes Pods of the Deployment here.
            command.arg(kubeconfig);
            if !flags.iter().any(|flag| flag.starts_with("--timeout")) {
                command.arg("--timeout=0");
            }
        }
        let done = command.output().unwrap();
        String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap()
    }

    /// Starts the process as the Deployment in the cluster says.
    pub async fn start(&self) -> Running {
        self.start_on(None).await
    }

    /// The same on an API server that does not stream lists, as before Kubernetes 1.32.
    pub async fn start_on_older_api_server(&self) -> Running {
        let mut config = self.server.config();
        // The process says itself who it is.
        config.auth_info = AuthInfo::default();
        let gate = Gate::to(Client::try_from(config).unwrap()).await.unwrap();
        let streamed = Point::before(Method::GET, "sendInitialEvents=true");
        gate.refuse(streamed, StatusCode::UNPROCESSABLE_ENTITY);
        self.start_on(Some(gate)).await
    }

    async fn start_on(&self, gate: Option<Gate>) -> Running {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "kube-system");
        let pod = deployments.get("cloudwit").await.unwrap().spec.template.spec.unwrap();
        let container = &pod.containers[0];
        let start = self.starts.fetch_add(1, Ordering::SeqCst);
        let root = self.file(&format!("pod-{start}"));
        let mut places = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let volume = pod
                .volumes
                .iter()
                .flatten()
                .find(|volume| volume.name == mount.name)
                .unwrap();
            let place = match volume.empty_dir {
                // All starts share the compiled code, which a new Pod could not; it only makes the test quicker.
                Some(_) => self.file("cache"),
                None => root.join(&mount.name),
            };
            fs::create_dir_all(&place).unwrap();
            self.mount(volume, &place).await;
            places.push((mount.mount_path.clone(), place));
        }
        let inside = |text: &str| {
            let replace = |text: String, (from, to): &(String, PathBuf)| text.replace(from, &to.display().to_string());
            places.iter().fold(text.to_owned(), replace)
        };
        // The configuration names the files of secrets by where they are mounted.
        let configuration = root.join("configuration/cloudwit.yaml");
        let text = fs::read_to_string(&configuration).unwrap();
        fs::write(&configuration, inside(&text)).unwrap();
        let mut arguments: Vec<String> = container
            .args
            .iter()
            .flatten()
            .map(|argument| inside(argument))
            .collect();
        let kubeconfig = self.kubeconfig(&root, gate.as_ref()).await.display().to_string();
        for flag in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
            arguments.push(format!("--{flag}={kubeconfig}"));
        }
        let port = port::reserve().unwrap();
        arguments.extend(["--bind-address=127.0.0.1", "--admin-address=off"].map(str::to_owned));
        arguments.push(format!("--secure-port={port}"));
        arguments.extend(QUICK.map(str::to_owned));
        Running {
            process: Child::start(&programs::cloudwit(), &arguments, &root.join("log")).unwrap(),
            https: format!("https://127.0.0.1:{port}"),
            _gate: gate,
        }
    }

    /// Writes the files of a volume as kubelet does.
    async fn mount(&self, volume: &Volume, place: &Path) {
        let write = |name: &str, content: &[u8]| fs::write(place.join(name), content).unwrap();
        if let Some(source) = &volume.config_map {
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "kube-system");
            let map = maps.get(&source.name).await.unwrap();
            map.data
                .iter()
                .flatten()
                .for_each(|(name, text)| write(name, text.as_bytes()));
            map.binary_data
                .iter()
                .flatten()
                .for_each(|(name, content)| write(name, &content.0));
        }
        if let Some(source) = &volume.secret {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "kube-system");
            let secret = secrets.get(source.secret_name.as_deref().unwrap()).await.unwrap();
            secret
                .data
                .iter()
                .flatten()
                .for_each(|(name, content)| write(name, &content.0));
        }
    }

    /// A kubeconfig with a token of the service account instead of the administrator's certificate.
    async fn kubeconfig(&self, folder: &Path, gate: Option<&Gate>) -> PathBuf {
        let text = fs::read_to_string(self.server.kubeconfig()).unwrap();
        let mut content: Value = serde_saphyr::from_str(&text).unwrap();
        content["users"][0]["user"] = json!({ "token": self.token("kube-system", "cloudwit").await });
        if let Some(gate) = gate {
            content["clusters"][0]["cluster"] = json!({ "server": gate.url() });
        }
        let file = folder.join("kubeconfig");
        fs::write(&file, content.to_string()).unwrap();
        file
    }

    /// A token of a service account that exists.
    pub async fn token(&self, namespace: &str, account: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec::default()),
            ..TokenRequest::default()
        };
        let made = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await;
        made.unwrap().status.unwrap().token.unwrap()
    }
}
