//! What a swap keeps and what it replaces, in the host alone: no cluster, a cloud of HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cloudwit_host::{Grants, HostOptions, ProviderSettings, SwapResult};
use cloudwit_model::{Cloud, Service};
use cloudwit_sim_cloud::{Fault, NewMachine, SimCloud, SimCloudOptions};
use cloudwit_suite::hosting::{Hosting, guest_file, node, settings};
use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::guests;
use serde_json::json;

use crate::stack::{SOON, variant};

/// `sim` in the host, with its cloud and its secret in a file.
struct Sim {
    hosting: Hosting,
    cloud: SimCloud,
    folder: tempfile::TempDir,
    component: Vec<u8>,
}

impl Sim {
    async fn new() -> Self {
        let file = tokio::task::spawn_blocking(|| guests::provider("sim")).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let sim = Self {
            hosting: Hosting::new(HostOptions::default()),
            cloud: SimCloud::start(SimCloudOptions::default()).await.unwrap(),
            component: std::fs::read(file).unwrap(),
            folder,
        };
        sim.token(sim.cloud.token());
        sim
    }

    fn token(&self, token: &str) {
        std::fs::write(self.folder.path().join("token"), token).unwrap();
    }

    /// The component with other bytes.
    fn file(&self, number: u8) -> PathBuf {
        let file = self.folder.path().join(format!("sim-{number}.wasm"));
        std::fs::write(&file, variant(&self.component, number)).unwrap();
        file
    }

    fn settings(&self) -> ProviderSettings {
        self.granting("methods: [GET, POST, PUT, DELETE]")
    }

    fn granting(&self, more: &str) -> ProviderSettings {
        let (port, token) = (self.cloud.address().port(), self.folder.path().join("token"));
        let yaml = format!(
            "{{http: [{{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true, {more}}}], \
             secrets: [{{name: token, file: {token:?}, hosts: ['127.0.0.1:{port}'], uses: [placeholder]}}]}}"
        );
        ProviderSettings {
            name: "sim".into(),
            config_text: json!({ "endpoint": self.cloud.url() }).to_string(),
            grants: serde_saphyr::from_str::<Grants>(&yaml).unwrap(),
            ..settings()
        }
    }
}

fn service() -> Service {
    Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "uid".into(),
        ..Service::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_in_flight_ends_on_old_component_next_uses_new() {
    let sim = Sim::new().await;
    sim.cloud.add_machines([NewMachine::named("a")]);
    let provider = Arc::new(sim.hosting.swappable(&sim.file(1), sim.settings()).await);
    let (before, status) = (provider.identity(), provider.status());
    sim.cloud.set_latency(Duration::from_secs(3));
    let running = tokio::spawn({
        let provider = provider.clone();
        async move { provider.lookup(&[node("a")]).await }
    });
    eventually(SOON, "the call waits for the cloud", || async {
        sim.cloud.counters().total() == 1
    })
    .await;
    sim.cloud.set_latency(Duration::ZERO);
    sim.cloud.set_tokens(["sim-token", "second"]);
    sim.token("second");
    let swap = provider.swap(Ok((sim.file(2), sim.settings()))).await;
    assert_eq!(swap.result, SwapResult::Swapped, "{}", swap.message);
    let now = provider.status();
    assert_ne!(provider.identity().digest, before.digest);
    assert_ne!(now.component_digest, status.component_digest);
    assert!(now.since >= status.since && now.refused().is_none());
    assert!(provider.lookup(&[node("a")]).await.unwrap()[0].is_ok());
    assert!(running.await.unwrap().unwrap()[0].is_ok(), "it is left alone");
    let uses = sim.cloud.token_uses();
    assert_eq!(uses["sim-token"].requests, 1, "it ended with what it began with");
    assert_eq!(uses["second"].requests, 2, "the probe and the next call");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_secret_resets_opinions_without_compiling() {
    let sim = Sim::new().await;
    let provider = sim.hosting.swappable(&sim.file(1), sim.settings()).await;
    let (digest, component) = (provider.identity().digest, provider.status().component_digest);
    let compiled = "cloudwit_provider_load_duration_seconds_count{code=\"compiled\"}";
    let before = sim.hosting.metric(compiled);
    sim.cloud.set_tokens(["second"]);
    sim.token("second");
    let swap = provider.swap(Ok((sim.file(1), sim.settings()))).await;
    assert_eq!(swap.result, SwapResult::Swapped, "{}", swap.message);
    assert_ne!(provider.identity().digest, digest, "the deletion brake starts over");
    assert_eq!(provider.status().component_digest, component);
    assert_eq!(sim.hosting.metric(compiled), before);
    let again = provider.swap(Ok((sim.file(1), sim.settings()))).await;
    assert_eq!(again.result, SwapResult::Unchanged);
    assert_eq!(
        provider.status().last_swap.unwrap().result,
        SwapResult::Swapped,
        "nothing to tell"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_that_the_cloud_requested_is_kept_over_a_swap() {
    for rate in ["methods: [GET, POST, PUT, DELETE]", "requestsPerSecond: 100"] {
        let sim = Sim::new().await;
        let provider = sim.hosting.swappable(&sim.file(1), sim.settings()).await;
        sim.cloud.set_faults([Fault::slow_down(200).times(1)]);
        provider.lookup(&[node("a")]).await.unwrap_err();
        let asked = sim.cloud.counters().total();
        let swap = provider.swap(Ok((sim.file(2), sim.granting(rate)))).await;
        assert_eq!(swap.result, SwapResult::Probe, "{}", swap.message);
        assert!(
            swap.message.contains("rate limited") && swap.may_pass_later,
            "{}",
            swap.message
        );
        assert_eq!(
            sim.cloud.counters().total(),
            asked,
            "nothing was sent in the pause ({rate})"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_grants_of_running_one_are_not_held_against_next() {
    let sim = Sim::new().await;
    sim.cloud.add_machines([NewMachine::named("a")]);
    let provider = sim
        .hosting
        .swappable(&sim.file(1), sim.granting("methods: [GET]"))
        .await;
    assert_eq!(provider.status().lacking.len(), 1);
    let swap = provider.swap(Ok((sim.file(2), sim.granting("methods: [GET]")))).await;
    assert_eq!(swap.result, SwapResult::Swapped, "{}", swap.message);
    // It is allowed more now, and less again later: that is refused, since it would do worse than before.
    let more = provider.swap(Ok((sim.file(2), sim.settings()))).await;
    assert_eq!(more.result, SwapResult::Swapped, "{}", more.message);
    let less = provider.swap(Ok((sim.file(2), sim.granting("methods: [GET]")))).await;
    assert_eq!(less.result, SwapResult::Grants);
    assert!(
        less.message.contains("methods: [POST, PUT, DELETE]"),
        "{}",
        less.message
    );
    let status = provider.status();
    assert_eq!(status.refused().unwrap().message, less.message);
    assert!(
        status.line().contains("was refused: missing grants"),
        "{}",
        status.line()
    );
    assert_eq!(
        status.granted,
        [format!(
            "GET POST PUT DELETE http://127.0.0.1:{}",
            sim.cloud.address().port()
        )]
    );
}

#[tokio::test]
async fn interfaces_may_come_but_not_go() {
    let sim = Sim::new().await;
    let hosting = &sim.hosting;
    let only_instances = guest_file("only_instances").await;
    let provider = hosting.swappable(&only_instances, settings()).await;
    let swap = provider.swap(Ok((guest_file("no_ingress").await, settings()))).await;
    assert_eq!(swap.result, SwapResult::Abilities, "{}", swap.message);
    assert!(
        swap.message.contains("no longer exports `instances`"),
        "{}",
        swap.message
    );
    let swap = provider.swap(Ok((sim.file(1), sim.settings()))).await;
    assert_eq!(swap.result, SwapResult::Abilities);
    assert!(
        swap.message.contains("the provider-id prefix \"test://\""),
        "{}",
        swap.message
    );
    provider.get_balancer(&service()).await.unwrap_err();
    assert!(provider.lookup(&[node("a")]).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_attempts_at_once_come_one_after_the_other() {
    let sim = Sim::new().await;
    let provider = sim.hosting.swappable(&sim.file(1), sim.settings()).await;
    sim.cloud.set_latency(Duration::from_millis(100));
    let next = |number| Ok((sim.file(number), sim.settings()));
    let (first, second) = tokio::join!(provider.swap(next(2)), provider.swap(next(2)));
    let mut results = [first.result.label(), second.result.label()];
    results.sort_unstable();
    assert_eq!(results, ["swapped", "unchanged"]);
}

#[tokio::test]
async fn a_missing_file_is_a_refusal() {
    let hosting = Hosting::new(HostOptions::default());
    let provider = hosting.swappable(&guest_file("only_instances").await, settings()).await;
    let swap = provider
        .swap(Ok((Path::new("/gone/sim.wasm").to_owned(), settings())))
        .await;
    assert_eq!(swap.result, SwapResult::Load);
    assert!(
        swap.message.starts_with("/gone/sim.wasm: cannot be read"),
        "{}",
        swap.message
    );
    let swap = provider
        .swap(Err("two mistakes:\n  - one\n  - two".to_owned().into()))
        .await;
    assert_eq!(
        (swap.result, swap.message.as_str()),
        (SwapResult::Settings, "two mistakes: - one - two")
    );
    assert_eq!(
        hosting.metric("cloudwit_provider_swaps_total{provider=\"guest\",result=\"load\"}"),
        Some(1.0)
    );
    assert_eq!(
        hosting.metric("cloudwit_provider_refused{provider=\"guest\"}"),
        Some(1.0)
    );
    assert!(provider.lookup(&[node("a")]).await.is_ok());
}
