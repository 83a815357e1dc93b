//! What a provider costs in each language, for the table in docs/authors/languages.md.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};
use cloudwit_host::{ComponentFile, HostOptions, Limits, Provider, ProviderSettings};
use cloudwit_model::{Cloud as _, NodeRef, Presence};
use cloudwit_sim_cloud::{NewMachine, SimCloud, SimCloudOptions};
use cloudwit_suite::hosting::{Hosting, node, settings};

use cloudwit_suite::common::machines_cloud::{MachinesCloud, TOKEN};

/// Calls that the time of one is the mean of.
const CALLS: u32 = 50;

/// A row of the table.
pub struct Figures {
    bytes: u64,
    packed: u64,
    compile: Duration,
    call: Duration,
    /// The most that one call had, in bytes.
    memory: u64,
}

impl Figures {
    /// Of a provider whose cloud has a machine of this name: an address of loopback, and a token.
    async fn of(component: PathBuf, address: &str, token: &str, machine: &str) -> Self {
        let file = ComponentFile::read(&component, &Limits::default()).unwrap();
        let (bytes, packed) = tokio::task::spawn_blocking(move || (file.bytes, file.compressed_bytes().unwrap()))
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let hosting = Hosting::new(HostOptions::default());
        let settings = granted(folder.path(), address, token);
        let provider = hosting.load_file(&component, settings).await.unwrap();
        let (call, memory) = measured(&provider, machine).await;
        let compile = provider.load_facts().code_time;
        Self {
            bytes,
            packed,
            compile,
            call,
            memory,
        }
    }

    /// Of a provider for the cloud of the templates.
    pub async fn of_machines(component: PathBuf) -> Self {
        let cloud = MachinesCloud::start(&["one"]).await;
        let address = cloud.url.trim_start_matches("http://");
        Self::of(component, address, TOKEN, "one").await
    }

    /// Of `sim`, the worked example in Rust, which does more.
    pub async fn of_sim() -> Self {
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.unwrap();
        cloud.add_machines([NewMachine::named("one")]);
        let component = tokio::task::spawn_blocking(|| cloudwit_test_support::programs::guests::provider("sim"));
        Self::of(component.await.unwrap(), &cloud.address().to_string(), TOKEN, "one").await
    }

    /// As Markdown.
    pub fn row(&self, language: &str) -> String {
        format!(
            "| {language} | {:.1} MB | {:.0} KiB | {:.1} s | {:.1} ms | {:.1} MiB |",
            self.bytes as f64 / 1e6,
            self.packed as f64 / 1024.0,
            self.compile.as_secs_f64(),
            self.call.as_secs_f64() * 1e3,
            self.memory as f64 / f64::from(1 << 20),
        )
    }

    /// That it was measured at all, and that the limits which everybody has by default suffice.
    pub fn check(&self) {
        assert!(
            self.packed > 0 && self.packed < self.bytes,
            "{} of {}",
            self.packed,
            self.bytes
        );
        assert!(self.memory > 0, "no memory was measured");
        assert!(
            self.compile > Duration::ZERO && self.call > Duration::ZERO,
            "nothing was measured"
        );
        assert!(self.bytes <= Limits::default().component_bytes, "{} bytes", self.bytes);
    }
}

fn granted(folder: &Path, address: &str, token: &str) -> ProviderSettings {
    let file = folder.join("token");
    std::fs::write(&file, token).unwrap();
    let (host, port) = address.rsplit_once(':').unwrap();
    let http = HttpGrant {
        scheme: Scheme::Http,
        host: host.into(),
        port: Some(port.parse().unwrap()),
        allow_loopback: true,
        ..HttpGrant::default()
    };
    let secret = SecretGrant {
        name: "token".into(),
        file,
        hosts: vec![address.into()],
        uses: vec![SecretUse::Placeholder],
    };
    ProviderSettings {
        config_text: serde_json::json!({ "endpoint": format!("http://{address}") }).to_string(),
        grants: Grants {
            http: vec![http],
            secrets: vec![secret],
            ..Grants::default()
        },
        ..settings()
    }
}

/// The mean time of a look-up by id, which is one request, and the most memory of one.
async fn measured(provider: &Provider, machine: &str) -> (Duration, u64) {
    let first = provider.lookup(&[node(machine)]).await.unwrap();
    let Ok(Presence::Running(instance)) = &first[0] else {
        panic!("{first:?}");
    };
    let nodes = [NodeRef {
        provider_id: Some(instance.provider_id.clone()),
        ..node(machine)
    }];
    let started = Instant::now();
    for _ in 0..CALLS {
        let answers = provider.lookup(&nodes).await.unwrap();
        assert!(matches!(answers[0], Ok(Presence::Running(_))), "{answers:?}");
    }
    (started.elapsed() / CALLS, provider.guest_memory().peak)
}
