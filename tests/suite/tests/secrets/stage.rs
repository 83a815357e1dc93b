//! Cloudwit with a canary in each secret: what it is started with, and where its words can be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::{guests, port};
use cloudwit_test_support::scenes::deployment::settings;
use cloudwit_test_support::scenes::site::{expose, is_exposed, is_initialised, join};
use cloudwit_test_support::{ApiServer, eventually, programs};
use kube::Client;
use serde_json::json;
use tempfile::TempDir;

use crate::search;
use cloudwit_suite::collector::Collector;

/// Longer than the pause before what has failed all the while is tried again.
pub const SOON: Duration = Duration::from_secs(300);

pub const TOKEN: &str = "canary-provider-token-81f3";
pub const ROTATED: &str = "canary-rotated-token-81f3";
pub const KUBECONFIG: &str = "canary-kubeconfig-81f3";
pub const PASSWORD: &str = "canary-config-password-81f3";
pub const COLLECTOR: &str = "canary-collector-81f3";
pub const BEARER: &str = "canary-bearer-81f3";

/// The files of an operator, each with its canary.
pub struct Files {
    pub folder: TempDir,
    program: PathBuf,
}

impl Files {
    /// With this component as provider `sim`.
    pub async fn new(component: impl FnOnce() -> PathBuf + Send + 'static) -> Self {
        let built = move || (programs::cloudwit(), component());
        let (program, component) = tokio::task::spawn_blocking(built).await.unwrap();
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            program,
        };
        fs::create_dir(files.path("providers")).unwrap();
        fs::copy(component, files.path("providers/sim.wasm")).unwrap();
        files.write("token", TOKEN);
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file as a whole.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let (file, beside) = (self.path(name), self.path("new"));
        fs::write(&beside, text).unwrap();
        fs::rename(beside, &file).unwrap();
        file
    }

    /// The cloud config, which ends like this.
    pub fn configure(&self, cloud: &str, end: &str) {
        self.write("sim.json", &format!("{{\"endpoint\": \"{cloud}\"{end}}}"));
    }

    /// A kubeconfig with a token.
    pub fn kubeconfig(&self, server: &str) -> PathBuf {
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "gate", "cluster": { "server": server } }],
            "users": [{ "name": "somebody", "user": { "token": KUBECONFIG } }],
            "contexts": [{ "name": "gate", "context": { "cluster": "gate", "user": "somebody" } }],
            "current-context": "gate",
        });
        self.write("kubeconfig", &text.to_string())
    }

    /// Starts Cloudwit with these flags; the credentials of the collector are in its environment.
    pub fn start(&self, log: &str, flags: &[String]) -> Child {
        let script = self.path("cloudwit");
        let text = format!(
            "#!/bin/sh\nexport OTEL_BSP_SCHEDULE_DELAY=200 OTEL_EXPORTER_OTLP_HEADERS=authorization={COLLECTOR}\nexec {} \"$@\"\n",
            self.program.display()
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Child::start(&script, flags, &self.path(log)).unwrap()
    }

    /// What a command of Cloudwit prints.
    pub fn run(&self, arguments: &[&str]) -> String {
        let done = Command::new(&self.program).args(arguments).output().unwrap();
        [done.stdout, done.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat()
    }
}

/// A running process and everything around it.
pub struct Stage {
    pub files: Files,
    pub client: Client,
    pub cloud: SimCloud,
    pub collector: Collector,
    pub process: Child,
    /// The private key of its HTTPS, as PEM.
    key: String,
    admin: String,
    https: String,
    kubeconfig: PathBuf,
    _gate: Gate,
    _server: ApiServer,
}

impl Stage {
    /// The provider `sim`, with these flags beside the usual ones.
    pub async fn sim(flags: &[&str]) -> Self {
        let files = Files::new(|| guests::provider("sim")).await;
        let (cloud, cloud_flags) = cloud(&files).await;
        Self::start(files, cloud, [cloud_flags, owned(flags)].concat()).await
    }

    /// A test guest that is given the token to do with as it likes.
    pub async fn guest(name: &'static str, flags: &[&str]) -> Self {
        let files = Files::new(move || guests::test_guest(name)).await;
        let (cloud, _) = cloud(&files).await;
        let token = files.path("token");
        let grants = format!(
            "grants:\n  secrets:\n    - {{name: token, file: {}, uses: [reveal]}}\n",
            token.display()
        );
        let settings = files.write("settings.yaml", &grants);
        let granted = format!("--provider-settings={}", settings.display());
        Self::start(files, cloud, [vec![granted], owned(flags)].concat()).await
    }

    async fn start(files: Files, cloud: SimCloud, flags: Vec<String>) -> Self {
        let server = ApiServer::start().await.unwrap();
        let gate = Gate::to(server.client()).await.unwrap();
        let collector = Collector::start().await;
        let (certificate, key) = pair();
        let kubeconfig = files.kubeconfig(&gate.url());
        let [admin, https] = [port::address().unwrap(), port::address().unwrap()];
        let at = |flag: &str, file: &Path| format!("--{flag}={}", file.display());
        let mut all = vec![
            at("kubeconfig", &kubeconfig),
            at("authentication-kubeconfig", &kubeconfig),
            at("authorization-kubeconfig", &kubeconfig),
            at("provider-dir", &files.path("providers")),
            at("cache-dir", &files.path("cache")),
            at("tls-cert-file", &files.write("tls.crt", &certificate)),
            at("tls-private-key-file", &files.write("tls.key", &key)),
            format!("--tracing-endpoint={}", collector.url),
            format!("--admin-address={admin}"),
            format!("--secure-port={}", https.rsplit(':').next().unwrap()),
        ];
        all.extend(owned(&[
            "--cloud-provider=sim",
            "--cluster-cidr=10.244.0.0/16",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--node-monitor-period=1s",
            "--node-status-update-frequency=1s",
            "--route-reconciliation-period=1s",
        ]));
        all.extend(flags);
        let process = files.start("cloudwit.log", &all);
        Self {
            client: server.client(),
            files,
            cloud,
            collector,
            process,
            key,
            admin: format!("http://{admin}"),
            https: format!("https://{https}"),
            kubeconfig,
            _gate: gate,
            _server: server,
        }
    }

    pub async fn joins(&self, name: &str) {
        join(&self.cloud, &self.client, name).await.unwrap();
    }

    pub async fn until_initialised(&self, name: &str) {
        self.until(&format!("{name} is initialised"), || is_initialised(&self.client, name))
            .await;
    }

    pub async fn serves(&self, name: &str) {
        expose(&self.client, name).await.unwrap();
        self.until(&format!("{name} has an address"), || is_exposed(&self.client, name))
            .await;
    }

    /// Waits until it holds; a failure shows the end of the log.
    pub async fn until<Fut: Future<Output = bool>>(&self, what: &str, mut holds: impl FnMut() -> Fut) {
        eventually(SOON, what, || {
            let holds = holds();
            async {
                if holds.await {
                    Ok(())
                } else {
                    Err(self.process.log_end())
                }
            }
        })
        .await;
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.process.log()).unwrap()
    }

    pub async fn until_logged(&self, part: &str) {
        self.until(&format!("{part:?} is logged"), || async { self.log().contains(part) })
            .await;
    }

    /// Somebody without rights asks over HTTPS, and puts a token into the wrong place too.
    pub async fn request_of_other_host(&self) {
        let builder = reqwest::Client::builder().tls_danger_accept_invalid_certs(true);
        let client = builder.build().unwrap();
        for path in ["/metrics", "/configz", &format!("/readyz?token={BEARER}"), "/"] {
            let request = client.get(format!("{}{path}", self.https)).bearer_auth(BEARER);
            let answer = request.header("cookie", BEARER).send().await.unwrap();
            let text = format!("{:?} {}", answer.headers().clone(), answer.text().await.unwrap());
            search(&format!("the answer of {path}"), &text);
        }
    }

    /// Everything that an administrator, a user of the cluster or a reader of logs and traces can see now.
    pub async fn search_everything(&self, objects: &[&str]) {
        for path in [
            "/",
            "/status.json",
            "/metrics",
            "/metrics/slis",
            "/configz",
            "/healthz?verbose",
            "/livez?verbose",
            "/readyz?verbose",
        ] {
            let answer = reqwest::get(format!("{}{path}", self.admin)).await.unwrap();
            let (code, text) = (answer.status(), answer.text().await.unwrap());
            assert!(code.is_success() && !text.is_empty(), "{path}: {code}");
            search(path, &text);
        }
        for path in [
            "/api/v1/nodes",
            "/api/v1/services",
            "/api/v1/events",
            "/apis/coordination.k8s.io/v1/leases",
        ] {
            let request = axum::http::Request::get(path).body(Vec::new()).unwrap();
            search(path, &self.client.request_text(request).await.unwrap());
        }
        for object in objects {
            for output in ["text", "json"] {
                let admin = format!("--admin-address={}", self.admin.trim_start_matches("http://"));
                let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
                let (kind, name) = object.split_once(' ').unwrap();
                let said = self
                    .files
                    .run(&["explain", &admin, &kubeconfig, "--output", output, kind, name]);
                assert!(said.contains(name.rsplit('/').next().unwrap()), "{said}");
                search(&format!("explain {object}"), &said);
            }
        }
        search("the spans", &String::from_utf8_lossy(&self.collector.raw()));
        self.search_log();
    }

    /// The log, with the private key of HTTPS beside the canaries.
    pub fn search_log(&self) {
        let log = self.log();
        search("the log", &log);
        for line in self.key.lines().filter(|line| !line.starts_with("-----")) {
            assert!(!log.contains(line), "a line of the private key is in the log");
        }
    }

    /// Asks it to end, and waits.
    pub async fn stop(&mut self) {
        self.process.signal("TERM").unwrap();
        let look = || std::future::ready(self.process.ended().unwrap());
        assert!(eventually(SOON, "it has ended", look).await.success());
    }
}

/// A cloud that knows the token, and the flags that lead to it.
async fn cloud(files: &Files) -> (SimCloud, Vec<String>) {
    let options = SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.unwrap();
    files.configure(&cloud.url(), "");
    let port = cloud.address().port().to_string();
    let settings = files.write("settings.yaml", &settings(&port, &files.path("token")));
    let flags = vec![
        format!("--cloud-config={}", files.path("sim.json").display()),
        format!("--provider-settings={}", settings.display()),
    ];
    (cloud, flags)
}

/// A certificate and its key.
pub fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub fn owned(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| (*flag).to_owned()).collect()
}
