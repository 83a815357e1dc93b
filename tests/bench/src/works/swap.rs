//! How long a swap takes: from the moment a file behind a mount is another one to the first call that the new component makes.
//!
//! The real process on a real API server. Nodes join all the time, so that there are always calls to make. With each swap comes a new token for the
//! cloud, which tells who calls: the first request with it is the candidate's probe, the second one is the first real call. The old token stays valid
//! for calls in flight, and no call and no Node may be lost.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cloudwit_sim_cloud::{NewMachine, SimCloud, SimCloudOptions};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment, settings};
use cloudwit_test_support::{ApiServer, NodeBuilder, within};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;

use crate::measure::{Goal, Measure, Section, Unit};
use crate::scene::contestant::Contestants;
use crate::scene::mount::MountedFile;
use crate::scene::run_folder::RunFolder;

/// Swaps of each kind.
const SWAPS: usize = 10;

/// Between two Nodes that join: how exactly the first call is seen.
const PAUSE: Duration = Duration::from_millis(20);

/// From one look at the cloud's counters to the next.
const LOOK: Duration = Duration::from_millis(1);

/// No step takes that long; without it a lost call would hang the benchmark.
const LIMIT: Duration = Duration::from_secs(60);

/// Seconds that a swap may take.
const GOAL: f64 = 1.0;

/// Swaps to components that are new, then back to them.
///
/// # Errors
///
/// When a swap does not take place.
pub async fn measure(contestants: &Contestants) -> Result<Section> {
    let scene = Scene::start(contestants.binary.folder(), &contestants.provider).await?;
    let (stop, joined) = (AtomicBool::new(false), AtomicUsize::new(0));
    let joining = scene.join_nodes(&stop, &joined);
    let swapping = async {
        let times = scene.all_swaps().await;
        stop.store(true, Ordering::Relaxed);
        times
    };
    let (times, joining) = tokio::join!(swapping, joining);
    let (fresh, known) = times.map_err(|error| error.context(scene.cloudwit.log_end()))?;
    joining?;
    let joined = joined.load(Ordering::Relaxed);
    let left = scene.left_over(joined).await?;
    let bad = failed(&scene.calls().await?);
    scene.end(left, bad)?;

    let mut section = Section::new(
        "swap",
        "A provider is swapped while Nodes join",
        format!(
            "{SWAPS} swaps to a component that was never seen, then {SWAPS} back to those, whose compiled code is in the cache; each with a new token. A \
             Node joins each {} ms, {joined} in all. Counted from the turn of the link `..data` to the first request to the cloud after the probe",
            PAUSE.as_millis()
        ),
    );
    section.measures = vec![
        Measure::new("new", "to a new component, which is compiled", Unit::Seconds)
            .ours(fresh)
            .goal(Goal::AtMost(GOAL)),
        Measure::new("known", "to a component whose code is in the cache", Unit::Seconds)
            .ours(known)
            .goal(Goal::AtMost(GOAL)),
        Measure::new("lost-nodes", "Nodes that were not initialised", Unit::Count)
            .ours([left as f64])
            .goal(Goal::AtMost(0.0)),
        Measure::new("bad-calls", "calls that failed", Unit::Count)
            .ours([bad])
            .goal(Goal::AtMost(0.0)),
    ];
    Ok(section)
}

/// Everything that runs.
struct Scene {
    client: Client,
    cloud: SimCloud,
    component: Vec<u8>,
    mounts: tokio::sync::Mutex<Mounts>,
    pages: String,
    cloudwit: Child,
    server: ApiServer,
    folder: RunFolder,
}

struct Mounts {
    component: MountedFile,
    token: MountedFile,
}

impl Scene {
    async fn start(programs: &Path, component: &Path) -> Result<Self> {
        let folder = RunFolder::new("swap")?;
        let file = |name: &str| folder.path().join(name);
        let server = ApiServer::start_in(file("cluster"), file("cluster.log")).await?;
        let options = SimCloudOptions {
            token: token(0),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.context("starting the cloud")?;
        let deployment = Deployment::new(&folder.path().join("cloudwit"), programs, component)?;
        let component = std::fs::read(component).context("reading the component")?;
        let mounts = Mounts {
            component: MountedFile::new(deployment.folder().join("providers"), "sim.wasm", &component)?,
            token: MountedFile::new(deployment.folder().join("secret"), "token", token(0).as_bytes())?,
        };
        let files = CloudFiles {
            config: json!({ "endpoint": cloud.url() }).to_string(),
            settings: settings(&cloud.address().port().to_string(), &mounts.token.path()),
        };
        let flags = ["--configure-cloud-routes=false"];
        let (cloudwit, pages) = deployment.start_on(server.kubeconfig(), &files, &flags)?;
        let scene = Self {
            client: server.client(),
            cloud,
            component,
            mounts: tokio::sync::Mutex::new(mounts),
            pages,
            cloudwit,
            server,
            folder,
        };
        scene.until_swaps("unchanged", 1).await?;
        Ok(scene)
    }

    /// Seconds of the swaps to new components, and of those to known ones.
    async fn all_swaps(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        let (mut fresh, mut known) = (Vec::new(), Vec::new());
        for number in 1..=2 * SWAPS {
            let is_new = number <= SWAPS;
            let variant = if is_new { number } else { number - SWAPS };
            let took = self.swap(number, variant).await?;
            if is_new { &mut fresh } else { &mut known }.push(took);
        }
        Ok((fresh, known))
    }

    async fn swap(&self, number: usize, variant: usize) -> Result<f64> {
        let (old, new) = (token(number - 1), token(number));
        self.cloud.set_tokens([old, new.clone()]);
        let content = [self.component.as_slice(), &custom_section(u8::try_from(variant)?)].concat();
        let began = {
            let mut mounts = self.mounts.lock().await;
            mounts.token.replace(new.as_bytes())?;
            let began = Instant::now();
            mounts.component.replace(&content)?;
            began
        };
        let called = async {
            while self.cloud.token_uses().get(&new).is_none_or(|uses| uses.requests < 2) {
                tokio::time::sleep(LOOK).await;
            }
        };
        let called = tokio::time::timeout(LIMIT, called).await;
        let took = began.elapsed().as_secs_f64();
        called.with_context(|| format!("no call on the new component within {LIMIT:?}"))?;
        self.until_swaps("swapped", number).await?;
        Ok(took)
    }

    async fn join_nodes(&self, stop: &AtomicBool, joined: &AtomicUsize) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let name = format!("node-{}", joined.load(Ordering::Relaxed));
            self.cloud.add_machines([NewMachine::named(&name)]);
            NodeBuilder::new(&name).create(&self.client).await?;
            joined.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits for all Nodes; how many are not done in the end.
    async fn left_over(&self, joined: usize) -> Result<usize> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let left = async || {
            let list = nodes.list(&ListParams::default()).await?;
            ensure!(
                list.items.len() == joined,
                "{} of {joined} Nodes are there",
                list.items.len()
            );
            Ok(list.iter().filter(|node| is_uninitialised(node)).count())
        };
        // What is left in the end is counted below.
        let _ = within(LIMIT, || async { left().await.is_ok_and(|left| left == 0) }).await;
        left().await
    }

    async fn until_swaps(&self, result: &str, count: usize) -> Result<()> {
        let label = format!("result=\"{result}\"");
        let swapped = || async {
            let swaps = self.metrics("cloudwit_provider_swaps_total").await.unwrap_or_default();
            swaps
                .iter()
                .any(|(labels, value)| labels.contains(&label) && *value >= count as f64)
        };
        let waited = within(LIMIT, swapped).await;
        ensure!(
            waited.is_ok(),
            "not {count} swaps {result} within {LIMIT:?}:\n{}",
            self.cloudwit.log_end()
        );
        Ok(())
    }

    /// Calls of the provider, by their labels.
    async fn calls(&self) -> Result<Vec<(String, f64)>> {
        let calls = self.metrics("cloudwit_provider_calls_total").await?;
        ensure!(!calls.is_empty(), "no call was counted");
        Ok(calls)
    }

    /// Ends everything. Logs stay when something was lost.
    fn end(self, left: usize, bad: f64) -> Result<()> {
        let Self {
            cloudwit,
            server,
            folder,
            ..
        } = self;
        drop((cloudwit, server));
        if left == 0 && bad == 0.0 {
            folder.done()?;
        }
        Ok(())
    }

    /// Labels and values of a metric.
    async fn metrics(&self, name: &str) -> Result<Vec<(String, f64)>> {
        let text = Client::try_from(kube::Config::new(self.pages.parse()?))?
            .request_text(kube::core::Request::new("/metrics").list(&ListParams::default())?)
            .await?;
        Ok(parse(&text, name))
    }
}

/// How many calls did not end well.
fn failed(calls: &[(String, f64)]) -> f64 {
    let bad = calls.iter().filter(|(labels, _)| !labels.contains("result=\"ok\""));
    bad.map(|(_, value)| value).sum()
}

fn parse(text: &str, name: &str) -> Vec<(String, f64)> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    lines
        .filter_map(|line| line.rsplit_once("} "))
        .filter_map(|(labels, value)| Some((labels.to_owned(), value.parse().ok()?)))
        .collect()
}

fn token(number: usize) -> String {
    format!("token-{number}")
}

/// A custom section named `variant` with this content: other bytes, the same component.
fn custom_section(variant: u8) -> [u8; 11] {
    [0, 9, 7, b'v', b'a', b'r', b'i', b'a', b'n', b't', variant]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_read_by_its_whole_name() {
        let text = "# TYPE cloudwit_provider_calls_total counter\n\
            cloudwit_provider_calls_total{call=\"lookup\",result=\"ok\"} 3\n\
            cloudwit_provider_calls_total_other{result=\"ok\"} 4\n\
            cloudwit_provider_calls_total{call=\"lookup\",result=\"trap\"} 2\n";
        let calls = parse(text, "cloudwit_provider_calls_total");
        let values: Vec<f64> = calls.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [3.0, 2.0]);
        assert!(calls[0].0.contains("call=\"lookup\""), "{calls:?}");
    }

    #[test]
    fn every_call_that_is_not_ok_has_failed() {
        let call = |result: &str, value| (format!("result=\"{result}\""), value);
        assert_eq!(failed(&[call("ok", 7.0), call("trap", 2.0), call("retry", 1.0)]), 3.0);
        assert_eq!(failed(&[call("ok", 7.0)]), 0.0);
    }

    #[test]
    fn variant_is_same_component_with_own_custom_section() {
        let [section, other] = [1, 2].map(custom_section);
        assert_ne!(section, other);
        let [id, size, name, content @ ..] = &section[..] else {
            panic!("{section:?}")
        };
        assert_eq!((*id, usize::from(*size)), (0, section.len() - 2));
        let (name, content) = content.split_at(usize::from(*name));
        assert_eq!((name, content), (&b"variant"[..], &[1][..]));
    }

    #[test]
    fn each_swap_has_a_token_of_its_own() {
        assert_ne!(token(1), token(11));
    }
}
