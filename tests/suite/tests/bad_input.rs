//! The binary, given what it cannot use: one clear error with what to do, an exit code that is not 0, and nothing written to the
//! cluster. Each case runs beside a Node that waits for its initialisation, which must stay as it is.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloudwit_test_support::programs::guests;
use cloudwit_test_support::{ApiServer, NodeBuilder, programs};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;

/// A folder of providers and files, and a cluster with one waiting Node.
struct Scene {
    folder: tempfile::TempDir,
    server: &'static ApiServer,
    node: Node,
}

/// What the cluster holds that a controller could have written.
#[derive(Debug, PartialEq)]
struct Written {
    node_version: Option<String>,
    events: usize,
    leases: Vec<Option<String>>,
}

impl Scene {
    async fn new(node: &str) -> Self {
        let server = ApiServer::shared().await;
        let node = NodeBuilder::new(node).create(&server.client()).await.unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            server,
            node,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    async fn written(&self) -> Written {
        let client = self.server.client();
        let node = Api::<Node>::all(client.clone())
            .get(self.node.metadata.name.as_deref().unwrap())
            .await
            .unwrap();
        let events = Api::<Event>::all(client.clone())
            .list(&ListParams::default())
            .await
            .unwrap();
        let ours = |event: &&Event| event.involved_object.name == node.metadata.name;
        let leases = Api::<Lease>::namespaced(client, "kube-system")
            .list(&ListParams::default())
            .await
            .unwrap();
        Written {
            events: events.items.iter().filter(ours).count(),
            leases: leases
                .items
                .into_iter()
                .map(|lease| lease.metadata.name)
                .filter(|name| name.as_deref().is_some_and(|name| name.starts_with("cloud")))
                .collect(),
            node_version: node.metadata.resource_version,
        }
    }

    /// Runs the binary on this cluster, and shows that it fails and writes nothing. Gives what it said on standard error.
    async fn refused(&self, flags: &[String]) -> String {
        let before = self.written().await;
        let kubeconfig = format!("--kubeconfig={}", self.server.kubeconfig().display());
        let folder = format!("--provider-dir={}", self.folder.path().display());
        let mut all = vec![
            kubeconfig,
            folder,
            "--admin-address=127.0.0.1:0".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        all.extend_from_slice(flags);
        let output = run(all).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(self.written().await, before, "{said}");
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("cloudwit: ")).collect();
        assert_eq!(errors.len(), 1, "one error, not more and not less: {said}");
        said[said.find("cloudwit: ").unwrap()..].to_owned()
    }

    /// The same for a component of this content.
    async fn refused_component(&self, content: impl AsRef<[u8]>) -> String {
        self.write("bad.wasm", content);
        self.refused(&["--cloud-provider=bad".into()]).await
    }
}

async fn run(flags: Vec<String>) -> Output {
    tokio::task::spawn_blocking(move || Command::new(programs::cloudwit()).args(flags).output().unwrap())
        .await
        .unwrap()
}

fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

async fn guest(name: &'static str) -> Vec<u8> {
    let file = tokio::task::spawn_blocking(move || guests::test_guest(name))
        .await
        .unwrap();
    std::fs::read(file).unwrap()
}

async fn sim(scene: &Scene) {
    let file = tokio::task::spawn_blocking(|| guests::provider("sim")).await.unwrap();
    std::fs::copy(file, scene.path("sim.wasm")).unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_wasm_is_refused() {
    let scene = Scene::new("bad-no-wasm").await;
    let said = scene.refused_component("#!/bin/sh\n").await;
    contains_all(&said, &["bad.wasm", "is not WebAssembly", "wasm32-wasip2"]);
}

#[tokio::test]
async fn a_core_module_is_refused() {
    let scene = Scene::new("bad-core").await;
    let said = scene.refused_component(b"\0asm\x01\0\0\0").await;
    contains_all(&said, &["core WebAssembly module", "component", "wasm32-wasip2"]);
}

#[tokio::test]
async fn a_component_that_is_no_provider_is_refused() {
    let scene = Scene::new("bad-world").await;
    let said = scene.refused_component(wat::parse_str("(component)").unwrap()).await;
    contains_all(&said, &["bad.wasm", "cloudwit:provider"]);
}

#[tokio::test]
async fn an_import_that_does_not_exist_is_refused() {
    let scene = Scene::new("bad-import").await;
    let said = scene.refused_component(guest("wants_database").await).await;
    contains_all(&said, &["bad.wasm", "database"]);
}

#[tokio::test]
async fn a_file_over_the_size_limit_is_refused() {
    let scene = Scene::new("bad-size").await;
    let file = std::fs::File::create(scene.path("bad.wasm")).unwrap();
    // A hole in a file takes no room on disk.
    file.set_len((32 << 20) + 1).unwrap();
    let said = scene.refused(&["--cloud-provider=bad".into()]).await;
    contains_all(
        &said,
        &["bad.wasm", "33554433", "33554432", "limits: {componentBytes: 67108864}"],
    );
}

#[tokio::test]
async fn unknown_provider_lists_the_known_ones() {
    let scene = Scene::new("bad-name").await;
    scene.write("sim.wasm", "");
    scene.write("aws.wasm", "");
    let said = scene.refused(&["--cloud-provider=azure".into()]).await;
    contains_all(&said, &["unknown cloud provider \"azure\"", "known: aws, sim"]);
}

#[tokio::test]
async fn an_unreadable_cloud_config_is_refused() {
    let scene = Scene::new("bad-config-file").await;
    sim(&scene).await;
    let gone = scene.path("gone.json");
    let said = scene
        .refused(&[
            "--cloud-provider=sim".into(),
            format!("--cloud-config={}", gone.display()),
        ])
        .await;
    contains_all(&said, &["--cloud-config=", "gone.json", "cannot be read"]);
}

#[tokio::test]
async fn rejected_cloud_config_names_every_mistake() {
    let scene = Scene::new("bad-config").await;
    sim(&scene).await;
    let config = scene.write("sim.json", r#"{"endpont": "http://127.0.0.1:1"}"#);
    let said = scene
        .refused(&[
            "--cloud-provider=sim".into(),
            format!("--cloud-config={}", config.display()),
        ])
        .await;
    contains_all(
        &said,
        &[
            "sim.json",
            "endpont",
            "did you mean \"endpoint\"",
            "endpoint: this key is missing",
        ],
    );
}

#[tokio::test]
async fn grants_that_make_no_sense_are_refused_all_at_once() {
    let scene = Scene::new("bad-grants").await;
    sim(&scene).await;
    let settings = scene.write(
        "settings.yaml",
        "grants:\n  http:\n    - {scheme: https, host: 'a b'}\n    - {scheme: https, host: x.example, methods: ['G T']}\n",
    );
    let flags = [
        "--cloud-provider=sim".into(),
        format!("--provider-settings={}", settings.display()),
    ];
    let said = scene.refused(&flags).await;
    contains_all(&said, &["2 mistakes", "settings.yaml", "a b", "G T"]);
}

#[tokio::test]
async fn a_kubeconfig_that_leads_nowhere_is_refused() {
    let scene = Scene::new("bad-kubeconfig").await;
    sim(&scene).await;
    let nowhere = scene.write("nowhere.kubeconfig", nowhere());
    let output = run(flags_for(&nowhere, scene.folder.path())).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    contains_all(
        &said,
        &["https://127.0.0.1:1/", "nowhere.kubeconfig", "Connection refused"],
    );
}

fn flags_for(kubeconfig: &Path, providers: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--provider-dir={}", providers.display()),
        "--cloud-provider=sim".into(),
        "--admin-address=127.0.0.1:0".into(),
        "--secure-port=0".into(),
    ]
}

/// Port 1 on loopback, where nobody listens.
fn nowhere() -> String {
    "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n\
     contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {token: x}}]\n"
        .into()
}
