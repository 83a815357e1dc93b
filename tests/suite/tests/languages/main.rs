//! Providers in other languages than Rust, built as their authors build them and run in this host: the templates of `cloudwit provider new` and
//! the guests of `tests/guests/NAME-machines`.
//!
//! They take minutes: tools are fetched and built, and a component of 18 MB is compiled. A language whose programs are missing is named by
//! `cargo xtask test --all`, which tells these tests to leave it out.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod figures;

use std::path::{Path, PathBuf};
use std::process::Output;

use cloudwit_suite::common::machines_cloud::{MachinesCloud, TOKEN};
use cloudwit_test_support::objects::{NodeBuilder, ServiceBuilder, addresses, provider_id};
use cloudwit_test_support::programs;
use cloudwit_test_support::scenes::deployment::CloudFiles;
use cloudwit_test_support::scenes::installation::Installation;
use figures::Figures;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use tempfile::TempDir;
use tokio::process::Command;
use xtask::languages::{LEFT_OUT, Language, Project};

/// Whether `cargo xtask test` found its programs. Without that command all of them have to be there.
fn is_left_out(language: Language) -> bool {
    let left_out = std::env::var(LEFT_OUT).unwrap_or_default();
    let found = left_out
        .split("; ")
        .find(|reason| reason.starts_with(&format!("{}:", language.name())));
    if let Some(reason) = found {
        println!("left out: {reason}");
    }
    found.is_some()
}

async fn built<T: Send + 'static>(build: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> T {
    let built = tokio::task::spawn_blocking(build).await.unwrap();
    built.unwrap_or_else(|error| panic!("{error:#}"))
}

/// What an operator writes, in a folder.
struct Operator {
    folder: TempDir,
    files: CloudFiles,
}

impl Operator {
    fn of(cloud: &MachinesCloud) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let port = cloud.port();
        let settings = format!(
            "grants:\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [DELETE, GET, PATCH, PUT], allowLoopback: true}}\n  \
             secrets:\n    - {{name: token, file: {}, uses: [placeholder], hosts: [\"127.0.0.1:{port}\"]}}\n",
            token.display()
        );
        let config = serde_json::json!({ "endpoint": cloud.url }).to_string();
        std::fs::write(folder.path().join("settings.yaml"), &settings).unwrap();
        std::fs::write(folder.path().join("cloud-config.json"), &config).unwrap();
        let files = CloudFiles { config, settings };
        Self { folder, files }
    }

    /// Runs `cloudwit provider` with these files.
    async fn run(&self, command: &str, component: &Path, arguments: &[&str]) -> Output {
        let file = |name: &str| self.folder.path().join(name);
        let program = tokio::task::spawn_blocking(programs::cloudwit).await.unwrap();
        let mut run = Command::new(program);
        run.args(["provider", command])
            .arg(component)
            .args(arguments)
            .arg("--cloud-config")
            .arg(file("cloud-config.json"))
            .arg("--settings")
            .arg(file("settings.yaml"));
        run.output().await.unwrap()
    }

    /// All promises are kept, those about these interfaces among them.
    async fn finds_all_promises_kept(&self, cloud: &MachinesCloud, component: &Path, interfaces: &[&str]) {
        let arguments = ["--node=one", "--node=two", "--stand-in", &cloud.url];
        let output = self.run("conformance", component, &arguments).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
        println!("{out}");
        for interface in interfaces {
            assert!(out.contains(&format!("\n{interface}\n")), "{out}");
        }
    }
}

async fn guest_keeps_the_promises(language: Language) {
    if is_left_out(language) {
        return;
    }
    let component = built(move || language.guest()).await;
    let cloud = MachinesCloud::start(&["one", "two"]).await;
    let operator = Operator::of(&cloud);
    let interfaces = ["instances", "load-balancers"];
    operator.finds_all_promises_kept(&cloud, &component, &interfaces).await;
    assert!(cloud.balancers().is_empty(), "{:?}", cloud.balancers());
}

async fn template_keeps_the_promises(language: Language) {
    if is_left_out(language) {
        return;
    }
    let project = built(move || Project::template(language)).await;
    let component = built({
        let project = project.clone();
        move || project.component()
    })
    .await;
    let tested = built(move || project.test()).await;
    println!("{tested}");
    let cloud = MachinesCloud::start(&["one", "two"]).await;
    let operator = Operator::of(&cloud);
    operator
        .finds_all_promises_kept(&cloud, &component, &["instances"])
        .await;
    let checked = operator.run("check", &component, &[]).await;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(0), "{text}");
}

/// On a real API server: Nodes are initialised, a Service gets an address, and a Node whose machine is gone goes.
async fn guest_works_for_a_cluster(language: Language) {
    if is_left_out(language) {
        return;
    }
    let name = format!("{}-machines", language.name());
    let cloud = MachinesCloud::start(&["one", "two"]).await;
    let operator = Operator::of(&cloud);
    let component = move || -> PathBuf { language.guest().unwrap_or_else(|error| panic!("{error:#}")) };
    let mut installation = Installation::with(&name, component).await.unwrap();
    for node in ["one", "two"] {
        NodeBuilder::new(node).create(&installation.client).await.unwrap();
    }
    installation.start(&operator.files, &[]).unwrap();
    for (node, number) in [("one", 1), ("two", 2)] {
        let node = installation.initialised(node).await;
        assert_eq!(provider_id(&node), Some(format!("{name}://vm-{number}").as_str()));
        assert!(
            addresses(&node).contains(&format!("InternalIP 10.0.0.{number}")),
            "{:?}",
            addresses(&node)
        );
    }

    ServiceBuilder::new("web").create(&installation.client).await.unwrap();
    let services: Api<Service> = Api::namespaced(installation.client.clone(), "default");
    let has_targets = |wanted: &'static [&'static str]| {
        let (services, balancers) = (services.clone(), cloud.balancers());
        async move {
            let service = services.get("web").await.map_err(|error| error.to_string())?;
            let status = service.status.and_then(|status| status.load_balancer);
            let ingress = status.and_then(|balancer| balancer.ingress).unwrap_or_default();
            let told = format!("{ingress:?}, {balancers:?}");
            let ready = ingress.iter().any(|ingress| ingress.ip.as_deref() == Some("192.0.2.1"));
            let right = balancers
                .iter()
                .any(|balancer| balancer["targets"] == serde_json::json!(wanted));
            (ready && right).then_some(()).ok_or(told)
        }
    };
    installation
        .settled("the load balancer has an address and both Nodes", || {
            has_targets(&["vm-1", "vm-2"])
        })
        .await;

    cloud.remove_machine("two");
    installation.falls_silent("two").await;
    installation
        .settled("the Node goes with its machine", || async {
            match installation.node("two").await {
                None => Ok(()),
                Some(node) => Err(format!("{:?}", node.status)),
            }
        })
        .await;
    installation
        .settled("the load balancer has the Node that is left", || has_targets(&["vm-1"]))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn javascript_keeps_the_promises_of_the_contract() {
    guest_keeps_the_promises(Language::JavaScript).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn python_keeps_the_promises_of_the_contract() {
    guest_keeps_the_promises(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn go_keeps_the_promises_of_the_contract() {
    guest_keeps_the_promises(Language::Go).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn javascript_template_is_tested_and_keeps_the_promises() {
    template_keeps_the_promises(Language::JavaScript).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn python_template_is_tested_and_keeps_the_promises() {
    template_keeps_the_promises(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn go_template_is_tested_and_keeps_the_promises() {
    template_keeps_the_promises(Language::Go).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn javascript_provider_works_for_a_cluster() {
    guest_works_for_a_cluster(Language::JavaScript).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn python_provider_works_for_a_cluster() {
    guest_works_for_a_cluster(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn go_provider_works_for_a_cluster() {
    guest_works_for_a_cluster(Language::Go).await;
}

/// What Go links is a core module, and the advice is about Go.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn go_module_that_is_no_component_gets_advice_about_go() {
    if is_left_out(Language::Go) {
        return;
    }
    let project = built(|| Project::guest(Language::Go)).await;
    let folder = project.folder().to_owned();
    built(move || project.component()).await;
    let told = refused(&folder.join("build/core.wasm")).await;
    assert!(
        told.contains("`wasm-tools component new`") && !told.contains("cargo"),
        "{told}"
    );
}

/// Its author named another world.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn javascript_of_another_world_gets_advice_about_its_toolchain() {
    if is_left_out(Language::JavaScript) {
        return;
    }
    let project = built(|| Project::template(Language::JavaScript)).await;
    let modules = project.folder().join("node_modules");
    built(move || project.component()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let wit = "package acme:odd;\nworld other { export run: func() -> string; }\n";
    std::fs::write(file("odd.wit"), wit).unwrap();
    std::fs::write(file("other.js"), "export const run = () => 'done';\n").unwrap();
    let output = Command::new(modules.join(".bin/componentize-js"))
        .args([
            "other.js",
            "--wit",
            "odd.wit",
            "--world-name",
            "other",
            "--out",
            "other.wasm",
        ])
        .current_dir(folder.path())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = refused(&file("other.wasm")).await;
    for part in ["nothing of cloudwit:provider", "componentize-js with `--world-name`"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("register_provider") && !told.contains("cargo"), "{told}");
}

async fn refused(component: &Path) -> String {
    let program = tokio::task::spawn_blocking(programs::cloudwit).await.unwrap();
    let output = Command::new(program)
        .args(["provider", "inspect"])
        .arg(component)
        .output()
        .await
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stderr).unwrap()
}

/// Prints the rows of the table in docs/authors/languages.md.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --all"]
async fn figures_of_each_language_are_within_the_default_limits() {
    let sim = Figures::of_sim().await;
    sim.check();
    let mut rows = vec![sim.row("Rust (`sim`)")];
    for language in Language::ALL {
        if !is_left_out(language) {
            let component = built(move || Project::template(language)?.component()).await;
            let figures = Figures::of_machines(component).await;
            figures.check();
            rows.push(figures.row(language.name()));
        }
    }
    println!("{}", rows.join("\n"));
}
