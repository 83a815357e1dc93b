//! What is observed all the time: health, memory, descriptors and every output of both replicas; Events; Nodes that are deleted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cloudwit_test_support::within;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::canary::Needles;
use crate::cluster::Cluster;
use crate::findings::{Findings, Promise};
use crate::replica::Replica;

/// `/livez` has to answer within this time.
pub const LIVEZ_LIMIT: Duration = Duration::from_secs(1);

/// After this time an answer is no longer waited for.
const GIVE_UP: Duration = Duration::from_secs(10);

/// From one look to the next.
const EVERY: Duration = Duration::from_secs(1);

/// Pages that cost more are read once in so many looks.
const RARELY: u64 = 5;

/// Most descriptors that a replica may have open at any time. 512 connections of others are its own limit beside them.
pub const DESCRIPTORS: u64 = 600;

/// Shortest time from one start of a replica to the next, as kubelet's backoff.
const RESTART: Duration = Duration::from_secs(5);

/// What one look at a replica found.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Whether a fault was under way.
    pub calm: bool,
    /// Resident memory in bytes.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Time that `/livez` took; none while it was not asked.
    pub livez: Option<Duration>,
}

/// All looks at one replica.
pub type Samples = Arc<Mutex<Vec<Sample>>>;

/// What all observers share.
#[derive(Clone)]
pub struct Watch {
    /// Where broken promises go.
    pub findings: Findings,
    /// What must not be seen.
    pub needles: Arc<Needles>,
    /// Most resident memory at any time, in bytes.
    pub memory: u64,
    /// Whether nothing goes wrong at the moment.
    pub calm: Arc<std::sync::atomic::AtomicBool>,
    /// Whether a replica may end by itself now.
    pub may_end: Arc<std::sync::atomic::AtomicBool>,
}

impl Watch {
    /// Looks at a replica every second, and starts it again when it has ended.
    pub async fn replica(self, replica: Arc<Replica>, samples: Samples) {
        let plain = reqwest::Client::builder().no_proxy().timeout(GIVE_UP).build();
        let plain = plain.expect("an HTTP client without settings of the system");
        let builder = reqwest::Client::builder().no_proxy().timeout(GIVE_UP);
        let https = builder.tls_danger_accept_invalid_certs(true).build();
        let https = https.expect("an HTTPS client without settings of the system");
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for look in 0_u64.. {
            ticks.tick().await;
            self.revive(&replica);
            self.search_logs(&replica);
            let livez = if replica.is_expected_to_answer() {
                let (over_http, _) = tokio::join!(
                    self.livez(&plain, &replica, &replica.admin),
                    self.livez(&https, &replica, &replica.https),
                );
                self.search_pages(&plain, &replica, look.is_multiple_of(RARELY)).await;
                Some(over_http)
            } else {
                None
            };
            self.measure(&replica, &samples, livez);
        }
    }

    /// Starts it again when it has ended, not more often than every few seconds.
    fn revive(&self, replica: &Replica) {
        let mut state = replica.state();
        let Some(status) = state
            .process
            .as_mut()
            .and_then(|process| process.ended().ok().flatten())
        else {
            return;
        };
        if !std::mem::replace(&mut state.reported, true) {
            let log = state.process.as_ref().map(|process| process.log_end());
            let log = log.unwrap_or_default();
            let expected = self.may_end.load(std::sync::atomic::Ordering::Relaxed);
            // Its other threads may still have something to say after that.
            let lost = log.contains("leaderelection lost") || log.contains("the API server at");
            // Killed: the shell that held it says 137.
            if !(expected && (lost || status.code() == Some(137))) {
                let number = replica.number;
                self.findings.add(
                    Promise::Processes,
                    &format!("replica {number} ended by itself ({status}): {}", last_lines(&log)),
                );
            }
        }
        if state.since.elapsed() < RESTART {
            return;
        }
        drop(state);
        if let Err(error) = replica.run() {
            let number = replica.number;
            self.findings
                .add(Promise::Processes, &format!("replica {number}: {error:#}"));
        }
    }

    fn search(&self, what: &str, text: &str) {
        if let Some(around) = self.needles.find(text) {
            self.findings.add(Promise::Secrets, &format!("{what}: ...{around}..."));
        }
    }

    fn search_logs(&self, replica: &Replica) {
        let mut state = replica.state();
        // The one before may have got its last lines just now.
        for tail in state.tails.iter_mut().rev().take(2) {
            self.search(&format!("the log of replica {}", replica.number), &tail.read());
        }
    }

    async fn livez(&self, client: &reqwest::Client, replica: &Replica, base: &str) -> Duration {
        let started = Instant::now();
        let url = format!("{base}/livez");
        let answer = client.get(&url).send().await;
        let took = started.elapsed();
        // What was stopped or has ended meanwhile need not answer.
        if !replica.is_expected_to_answer() || (answer.is_err() && self.ends(replica).await) {
            return took;
        }
        match answer {
            Ok(answer) if answer.status().is_success() && took <= LIVEZ_LIMIT => {}
            Ok(answer) => {
                let status = answer.status();
                let body = answer.text().await.unwrap_or_default();
                self.findings.add(
                    Promise::Livez,
                    &format!("replica {} {url}: {status} after {took:.1?} {body}", replica.number),
                );
            }
            Err(error) => {
                self.findings.add(
                    Promise::Livez,
                    &format!("replica {} {url}: {error} after {took:.1?}", replica.number),
                );
            }
        }
        took
    }

    /// Whether a replica that refuses connections is about to end, which is judged where its end is seen.
    async fn ends(&self, replica: &Replica) -> bool {
        let ended = || async {
            let mut state = replica.state();
            let process = state.process.as_mut();
            process.is_none_or(|process| process.ended().is_ok_and(|status| status.is_some()))
        };
        within(RESTART, ended).await.is_ok()
    }

    async fn search_pages(&self, client: &reqwest::Client, replica: &Replica, all: bool) {
        let rarely = [
            "/",
            "/status.json",
            "/configz",
            "/readyz?verbose",
            "/metrics/slis",
            "/explain/node/trigger",
        ];
        let paths = ["/metrics", "/livez?verbose"]
            .into_iter()
            .chain(all.then_some(rarely).into_iter().flatten());
        for path in paths {
            // Whether it answers is for /livez to show.
            let Ok(answer) = client.get(format!("{}{path}", replica.admin)).send().await else {
                continue;
            };
            if let Ok(text) = answer.text().await {
                self.search(&format!("{path} of replica {}", replica.number), &text);
            }
        }
    }

    fn measure(&self, replica: &Replica, samples: &Samples, livez: Option<Duration>) {
        let Some(pid) = replica.pid() else { return };
        let Some(usage) = xtask::run::process::usage(pid) else {
            return;
        };
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count() as u64);
        if usage.memory > self.memory {
            let mib = usage.memory / (1 << 20);
            self.findings
                .add(Promise::Memory, &format!("replica {} has {mib} MiB", replica.number));
        }
        if descriptors > DESCRIPTORS {
            self.findings.add(
                Promise::Descriptors,
                &format!("replica {} has {descriptors} open", replica.number),
            );
        }
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(Sample {
            at: Instant::now(),
            calm: self.calm.load(std::sync::atomic::Ordering::Relaxed),
            memory: usage.memory,
            descriptors,
            livez,
        });
    }

    /// Searches every Event.
    pub async fn events(self, cluster: Cluster) {
        let events: Api<Event> = Api::all(cluster.client());
        let mut seen = watcher(events, watcher::Config::default()).boxed();
        loop {
            match seen.try_next().await {
                Ok(Some(watcher::Event::Apply(event) | watcher::Event::InitApply(event))) => {
                    self.search("an Event", &json!(event).to_string());
                }
                Ok(_) => {}
                // It lists again by itself.
                Err(_) => tokio::time::sleep(EVERY).await,
            }
        }
    }

    /// Sees every Node that is deleted while its machine exists, and searches what is written to Nodes.
    pub async fn deletions(self, cluster: Cluster) {
        let nodes: Api<Node> = Api::all(cluster.client());
        let mut seen = watcher(nodes, watcher::Config::default()).boxed();
        loop {
            match seen.try_next().await {
                Ok(Some(watcher::Event::Delete(node))) => {
                    let name = node.name_any();
                    if cluster.is_wanted(&name) {
                        self.findings.add(Promise::HealthyNodes, &name);
                    }
                }
                Ok(Some(watcher::Event::Apply(node))) => self.search("a Node", &json!(node).to_string()),
                Ok(_) => {}
                Err(_) => tokio::time::sleep(EVERY).await,
            }
        }
    }
}

/// Why a process ended stands at the end of its log.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(2)..].join(" / ")
}
