//! A registry with its front, keys, and the commands as a person runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::programs::oci_registry::OciRegistry;
use tempfile::TempDir;

use crate::front::Front;

/// Long enough for a compile on a busy machine, and for a registry that hangs.
pub const SOON: Duration = Duration::from_secs(180);

/// Everything beside a cluster.
pub struct Scene {
    pub registry: OciRegistry,
    pub front: Front,
    pub folder: TempDir,
    pub component: Vec<u8>,
}

/// The same component with other bytes: one custom section more, which says which variant it is.
pub fn variant(component: &[u8], number: u8) -> Vec<u8> {
    let section = [0, 9, 7, b'v', b'a', b'r', b'i', b'a', b'n', b't', number];
    [component, &section].concat()
}

impl Scene {
    /// Starts the registry; makes two pairs of keys: `ours` by OpenSSL, `other` likewise.
    pub async fn new() -> Self {
        let registry = OciRegistry::start().await.unwrap();
        let front = Front::new(registry.address()).await;
        let file = tokio::task::spawn_blocking(|| guests::provider("sim")).await.unwrap();
        let scene = Self {
            registry,
            front,
            folder: tempfile::tempdir().unwrap(),
            component: std::fs::read(file).unwrap(),
        };
        for name in ["ours", "other"] {
            let (key, public) = (scene.path(&format!("{name}.pem")), scene.path(&format!("{name}.pub")));
            openssl(&[
                "genpkey",
                "-algorithm",
                "EC",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-out",
                shown(&key),
            ]);
            openssl(&["pkey", "-in", shown(&key), "-pubout", "-out", shown(&public)]);
        }
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    /// Runs `cloudwit provider ...` on a thread for it.
    pub async fn provider(&self, words: &[&str]) -> Output {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let run = move || {
            let mut command = Command::new(programs::cloudwit());
            // Nothing on this machine or in its environment may lead to a cluster.
            command
                .arg("provider")
                .args(words)
                .env("KUBECONFIG", "/nowhere")
                .output()
                .unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// Pushes a variant of the component to the registry itself; the reference by digest, at the front.
    pub async fn push(&self, number: u8) -> String {
        let file = self.write(&format!("variant-{number}.wasm"), variant(&self.component, number));
        let tag = format!("{}/cloudwit/sim:{number}", self.registry.address());
        let line = said(&self.provider(&["push", shown(&file), &tag]).await, 0);
        self.at_front(&line)
    }

    /// What a line of the configuration names, at the front.
    pub fn at_front(&self, line: &str) -> String {
        let reference = line.trim().strip_prefix("component: ").unwrap();
        reference.replace(self.registry.address(), &self.front.address)
    }

    /// The reference at the registry itself, without a scheme.
    pub fn at_registry(&self, reference: &str) -> String {
        reference
            .replace("oci://", "")
            .replace(&self.front.address, self.registry.address())
    }

    /// Signs with our own command.
    pub async fn sign(&self, reference: &str, key: &str) {
        let key = self.path(key);
        let words = ["sign", &self.at_registry(reference), "--key", shown(&key)];
        said(&self.provider(&words).await, 0);
    }

    /// Runs cosign.
    pub async fn cosign(&self, words: &[&str]) -> Output {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let folder = self.folder.path().to_owned();
        let run = move || {
            let mut cosign = Command::new(xtask::servers::cosign::program().unwrap());
            let cosign = cosign.args(words).current_dir(folder).env("COSIGN_PASSWORD", "x");
            cosign.output().unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// Signs with cosign, in its older format where `simple` says so, with the key that it makes: `cosign.pub`.
    pub async fn cosign_sign(&self, reference: &str, simple: bool) {
        if !self.path("cosign.pub").exists() {
            said(&self.cosign(&["generate-key-pair"]).await, 0);
        }
        let (format, at) = (format!("--new-bundle-format={}", !simple), self.at_registry(reference));
        let words = [
            "sign",
            "--key=cosign.key",
            "--use-signing-config=false",
            "--tlog-upload=false",
            &format,
            "-y",
            &at,
        ];
        said(&self.cosign(&words).await, 0);
    }
}

pub fn shown(file: &Path) -> &str {
    file.to_str().unwrap()
}

/// What a command said, on standard output where it succeeded, else on standard error.
pub fn said(output: &Output, code: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    if code == 0 { out } else { err }
}

fn openssl(words: &[&str]) {
    let made = Command::new("openssl").args(words).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
