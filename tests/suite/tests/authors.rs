//! `cloudwit provider new` as the author of a provider in Rust uses it: the project is written, tested and built outside of this workspace, and what comes
//! out keeps the promises of the contract. The other languages are in `languages`.
//!
//! Everything lies in `target/tmp` and stays there; dependencies are built once, together with those of the SDK's test `packaged`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use cloudwit_suite::common::machines_cloud::{MachinesCloud, TOKEN};
use cloudwit_suite::root;
use cloudwit_test_support::objects::{NodeBuilder, provider_id};
use cloudwit_test_support::programs;
use cloudwit_test_support::scenes::deployment::CloudFiles;
use cloudwit_test_support::scenes::installation::Installation;
use tokio::process::Command;

const COMPONENT: &str = "wasm32-wasip2/release/lab_cloud.wasm";

/// What `provider new` wrote, with the target folder of its builds.
struct Project {
    folder: PathBuf,
    target: PathBuf,
}

impl Project {
    async fn written(name: &str) -> Self {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = parent.join("authors").join(name);
        let _ = fs::remove_dir_all(&folder);
        let mut new = Command::new(cloudwit().await);
        new.args(["provider", "new", name, "--lang", "rust", "--out"])
            .arg(&folder);
        new.arg("--sdk").arg(root().join("guest-sdk"));
        let told = succeeds(&mut new).await;
        assert!(
            told.contains("cargo build --release --target wasm32-wasip2\n"),
            "{told}"
        );
        // The versions of this repository are on the machine, so that no network is needed.
        fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        Self {
            folder,
            target: parent.join("packaged/target"),
        }
    }

    async fn cargo(&self, arguments: &[&str]) -> String {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(arguments)
            .args(["--offline", "--target-dir"])
            .arg(&self.target);
        succeeds(cargo.current_dir(&self.folder)).await
    }

    /// Runs `cloudwit provider` in the project, with the component.
    async fn cloudwit(&self, command: &str, arguments: &[&str]) -> String {
        let mut run = Command::new(cloudwit().await);
        run.args(["provider", command])
            .arg(self.target.join(COMPONENT))
            .args(arguments);
        succeeds(run.current_dir(&self.folder)).await
    }

    /// Writes this instead of that into the operator's files, and the token's file.
    fn configure(&self, cloud: &MachinesCloud) {
        for name in ["settings.yaml", "cloud-config.json"] {
            let file = self.folder.join(name);
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains("8080"), "{text}");
            fs::write(&file, text.replace("8080", cloud.port())).unwrap();
        }
        fs::write(self.folder.join("token"), TOKEN).unwrap();
    }
}

impl Project {
    /// On a real API server, with the component and the operator's files as they are.
    async fn works_for_a_cluster(&self) {
        let component = self.target.join(COMPONENT);
        let mut installation = Installation::with("lab-cloud", move || component).await.unwrap();
        for node in ["node-1", "node-2"] {
            NodeBuilder::new(node).create(&installation.client).await.unwrap();
        }
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        let settings = read("settings.yaml");
        let token = format!("file: {}", self.folder.join("token").display());
        assert!(settings.contains("file: token"), "{settings}");
        let files = CloudFiles {
            config: read("cloud-config.json"),
            settings: settings.replace("file: token", &token),
        };
        installation.start(&files, &[]).unwrap();
        for (node, machine) in [("node-1", "lab-cloud://vm-1"), ("node-2", "lab-cloud://vm-2")] {
            let node = installation.initialised(node).await;
            assert_eq!(provider_id(&node), Some(machine));
        }
    }
}

async fn cloudwit() -> PathBuf {
    tokio::task::spawn_blocking(programs::cloudwit).await.unwrap()
}

async fn succeeds(command: &mut Command) -> String {
    let output = command.output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}\n{err}");
    assert!(!err.contains("warning:"), "{err}");
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_project_is_tested_built_and_keeps_the_promises() {
    let project = Project::written("lab-cloud").await;
    let tested = project.cargo(&["test"]).await;
    assert!(tested.contains("test result: ok. 6 passed"), "{tested}");
    project
        .cargo(&["build", "--release", "--target", "wasm32-wasip2"])
        .await;
    let inspected = project.cloudwit("inspect", &[]).await;
    assert!(
        inspected.contains("lab-cloud 0.1.0") && inspected.contains("lab-cloud://"),
        "{inspected}"
    );

    let cloud = MachinesCloud::start(&["node-1", "node-2"]).await;
    project.configure(&cloud);
    let files = ["--cloud-config=cloud-config.json", "--settings=settings.yaml"];
    project.cloudwit("check", &files).await;
    let called = project
        .cloudwit(
            "call",
            &[&["instances.lookup", "--node=node-1"], files.as_slice()].concat(),
        )
        .await;
    assert!(called.contains("\"lab-cloud://vm-1\""), "{called}");
    let stand_in = format!("--stand-in={}", cloud.url);
    let arguments = [&["--node=node-1", "--node=node-2", stand_in.as_str()], files.as_slice()].concat();
    let kept = project.cloudwit("conformance", &arguments).await;
    assert!(kept.contains("\ninstances\n"), "{kept}");

    project.works_for_a_cluster().await;
}
