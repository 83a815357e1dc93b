//! The process with a component from the registry, on a real kube-apiserver: started, swapped, refused, started again without a registry.

use std::fs;
use std::path::PathBuf;

use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::site::{self, Site};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

use crate::front::Manner;
use crate::scene::{SOON, Scene, said, variant};

struct Process {
    scene: Scene,
    site: Site,
    nodes: usize,
}

impl Process {
    async fn new() -> Self {
        Self {
            scene: Scene::new().await,
            site: Site::with(|| guests::provider("sim")).await.unwrap(),
            nodes: 0,
        }
    }

    /// Writes the configuration: this component, which a key of these has to have signed.
    fn configure(&self, reference: &str, keys: &[&str], more: &str) {
        let files = self.site.deployment.sim_files(&self.site.cloud.url()).unwrap();
        let settings: String = files.settings.lines().map(|line| format!("    {line}\n")).collect();
        let keys: Vec<String> = keys
            .iter()
            .map(|key| self.scene.path(key).display().to_string())
            .collect();
        let verify = if keys.is_empty() {
            String::new()
        } else {
            format!("    verify: {{keys: {keys:?}}}\n")
        };
        let text = format!(
            "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: sim\n    component: {reference}\n{verify}    \
             cloudConfig: '{}'\n{settings}{more}",
            files.config
        );
        let (file, beside) = (
            self.scene.path("cloudwit.yaml"),
            self.scene.write("cloudwit.yaml.new", text),
        );
        fs::rename(beside, file).unwrap();
    }

    fn start(&self) -> (Child, String) {
        let config = format!("--config={}", self.scene.path("cloudwit.yaml").display());
        self.site.start(&[&config]).unwrap()
    }

    /// A new machine and its Node, initialised: the provider works.
    async fn initialises_a_node(&mut self) {
        let name = format!("node-{}", self.nodes);
        self.nodes += 1;
        site::join(&self.site.cloud, &self.site.client, &name).await.unwrap();
        eventually(SOON, "the Node is initialised", || {
            site::is_initialised(&self.site.client, &name)
        })
        .await;
    }

    /// Waits for an Event with this reason whose message has this in it.
    async fn until_event(&self, reason: &str, part: &str) {
        let events: Api<Event> = Api::namespaced(self.site.client.clone(), "kube-system");
        eventually(SOON, "there is an Event", || async {
            let events = events.list(&ListParams::default()).await.unwrap().items;
            let messages = events
                .into_iter()
                .filter(|event| event.reason.as_deref() == Some(reason));
            let messages: Vec<String> = messages.filter_map(|event| event.message).collect();
            match messages.iter().any(|message| message.contains(part)) {
                true => Ok(()),
                false => Err(format!("no {part:?} in {messages:?}")),
            }
        })
        .await;
    }
}

async fn metrics(admin: &str) -> String {
    match reqwest::get(format!("{admin}/metrics")).await {
        Ok(answer) => answer.text().await.unwrap_or_default(),
        Err(_) => String::new(),
    }
}

async fn until_metric(admin: &str, line: &str) {
    eventually(SOON, line, || async {
        let metrics = metrics(admin).await;
        match metrics.lines().any(|one| one == line) {
            true => Ok(()),
            false => Err(metrics
                .lines()
                .filter(|one| one.contains("cloudwit_provider_"))
                .collect::<Vec<_>>()
                .join("\n")),
        }
    })
    .await;
}

const REFUSED: &str = "cloudwit_provider_refused{provider=\"sim\"} 1";
const RUNS: &str = "cloudwit_provider_refused{provider=\"sim\"} 0";

#[tokio::test(flavor = "multi_thread")]
async fn component_is_pulled_swapped_and_refused_by_digest_and_key() {
    let mut process = Process::new().await;
    let (one, two, three) = (
        process.scene.push(1).await,
        process.scene.push(2).await,
        process.scene.push(3).await,
    );
    process.scene.sign(&one, "ours.pem").await;
    process.scene.cosign_sign(&two, false).await;
    process.scene.cosign_sign(&three, true).await;
    let keys = ["ours.pub", "cosign.pub"];
    process.configure(&one, &keys, "");
    // The registry is not there yet: the start waits for it.
    process.scene.front.is(Manner::Down);
    let (cloudwit, admin) = process.start();
    eventually(SOON, "the start waits", || async {
        fs::read_to_string(cloudwit.log())
            .unwrap()
            .contains("component not available; waiting")
    })
    .await;
    process.scene.front.is(Manner::Honest);
    process.initialises_a_node().await;

    // Another digest is another component; signatures of cosign in both formats.
    for reference in [&two, &three] {
        process.configure(reference, &keys, "");
        let digest = reference.rsplit('@').next().unwrap();
        process.until_event("ProviderSwapped", "sim").await;
        eventually(SOON, "it was pulled", || async {
            let log = fs::read_to_string(cloudwit.log()).unwrap();
            log.lines()
                .any(|line| line.contains("component pulled") && line.contains(digest) && line.contains("registry"))
        })
        .await;
        until_metric(&admin, RUNS).await;
        process.initialises_a_node().await;
    }
    until_metric(
        &admin,
        "cloudwit_provider_swaps_total{provider=\"sim\",result=\"swapped\"} 2",
    )
    .await;

    // What is not what it has to be changes nothing.
    let unsigned = process.scene.push(4).await;
    let gone = format!("{}@sha256:{}", one.split('@').next().unwrap(), "0".repeat(64));
    let small = "    limits: {componentBytes: 65536}\n";
    for (what, reference, keys, more, manner, part) in [
        (
            "unsigned",
            &unsigned,
            &keys[..],
            "",
            Manner::Honest,
            "it is not signed; sign it with",
        ),
        (
            "wrong key",
            &one,
            &["other.pub"][..],
            "",
            Manner::Honest,
            "1 signatures, but none by a key of verify.keys",
        ),
        (
            "wrong digest",
            &gone,
            &[][..],
            "",
            Manner::Honest,
            "the registry does not have it",
        ),
        (
            "garbage manifest",
            &unsigned,
            &[][..],
            "",
            Manner::GarbageManifest,
            "the manifest that the registry sent has another digest",
        ),
        (
            "too large",
            &unsigned,
            &[][..],
            small,
            Manner::Honest,
            "more than limits.componentBytes allows, 65536",
        ),
        (
            "endless blob",
            &unsigned,
            &[][..],
            "",
            Manner::EndlessBlob,
            "it has more than",
        ),
        (
            "other bytes",
            &unsigned,
            &[][..],
            "",
            Manner::OtherBytes,
            "what the registry sent has the digest",
        ),
        (
            "hangs",
            &unsigned,
            &[][..],
            "",
            Manner::Hangs,
            "does not answer within 10 s",
        ),
    ] {
        println!("{what}");
        process.scene.front.is(manner);
        process.configure(reference, keys, more);
        process.until_event("ProviderSwapRefused", part).await;
        until_metric(&admin, REFUSED).await;
    }
    process.initialises_a_node().await;
    // The registry answers again: it is tried again without any change of the files.
    process.scene.front.is(Manner::Honest);
    until_metric(&admin, RUNS).await;
    process.initialises_a_node().await;

    // A new start without a registry, from the store: signatures are checked all the same.
    process.configure(&three, &keys, "");
    until_metric(
        &admin,
        "cloudwit_provider_swaps_total{provider=\"sim\",result=\"swapped\"} 4",
    )
    .await;
    cloudwit.kill().unwrap();
    process.scene.front.is(Manner::Down);
    let asked = process.scene.front.requests();
    let (cloudwit, _) = process.start();
    process.initialises_a_node().await;
    assert_eq!(
        process.scene.front.requests(),
        asked,
        "nothing was asked of the registry"
    );
    cloudwit.kill().unwrap();

    // What was changed in the store is not used; the registry is asked again.
    for file in components(&process) {
        fs::write(file, variant(&process.scene.component, 9)).unwrap();
    }
    process.scene.front.is(Manner::Honest);
    let (_cloudwit, _) = process.start();
    process.initialises_a_node().await;
    assert!(process.scene.front.requests() > asked);
}

/// The components in the store.
fn components(process: &Process) -> Vec<PathBuf> {
    let folder = process.site.deployment.folder().join("cache/cloudwit-components");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "wasm"))
        .collect();
    assert!(found.len() >= 3, "{found:?}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_signature_is_refused_and_copied_one_is_named() {
    let process = Process::new().await;
    let (one, two) = (process.scene.push(1).await, process.scene.push(2).await);
    process.scene.cosign_sign(&one, true).await;
    // The signature of one, under the tag of two.
    let hex = |reference: &str| reference.rsplit(':').next().unwrap().to_owned();
    let tag = |reference: &str| {
        format!(
            "http://{}/v2/cloudwit/sim/manifests/sha256-{}.sig",
            process.scene.registry.address(),
            hex(reference)
        )
    };
    let client = reqwest::Client::new();
    let manifest = client.get(tag(&one)).send().await.unwrap().bytes().await.unwrap();
    let put = client
        .put(tag(&two))
        .header("content-type", "application/vnd.oci.image.manifest.v1+json");
    assert!(put.body(manifest).send().await.unwrap().status().is_success());
    process.configure(&two, &["cosign.pub"], "");
    let config = process.scene.path("cloudwit.yaml");
    let check = process
        .scene
        .provider(&["check", "sim", "--config", config.to_str().unwrap()])
        .await;
    let text = said(&check, 1);
    let expected = format!("for another manifest, sha256:{}", hex(&one));
    assert!(text.contains(&expected) && text.contains("cannot be used"), "{text}");
}
