//! Measures what a piece of work cost: the side, the API server, the cloud.

use std::time::Duration;

use anyhow::{Result, bail};
use cloudwit_sim_cloud::Counters;
use xtask::run::process::Usage;

use crate::measure::pairs::Reading;
use crate::measure::requests::Requests;
use crate::measure::{Measure, Unit};
use crate::scene::Scene;
use crate::scene::contestant::Running;

/// Two looks at the API server between which nothing was asked are so far apart.
const QUIET: Duration = Duration::from_secs(1);

/// By then all must be quiet.
const LIMIT: u32 = 60;

/// What had been used when the work began.
pub struct Meter {
    requests: Requests,
    server: Option<Usage>,
    cpu_seconds: f64,
}

/// What the work used.
#[derive(Debug)]
pub struct Used {
    /// CPU seconds of the side.
    pub cpu_seconds: f64,
    /// Memory of the side: its peak since it started, and now.
    pub usage: Usage,
    /// CPU seconds of the API server with etcd; unknown for binaries of others.
    pub server_cpu: Option<f64>,
    /// What was asked of the API server.
    pub requests: Requests,
    /// What was asked of the cloud.
    pub cloud: Counters,
}

impl Meter {
    /// Begins; the side has not been started, or is at rest.
    ///
    /// # Errors
    ///
    /// When the API server or the cloud does not answer, or the side has ended.
    pub async fn start(scene: &Scene<'_>, running: Option<&Running>) -> Result<Self> {
        scene.cloud.reset_counters().await?;
        Ok(Self {
            requests: Requests::served(&scene.client).await?,
            server: scene.server.usage(),
            cpu_seconds: running
                .map(Running::usage)
                .transpose()?
                .map_or(0.0, |usage| usage.cpu_seconds),
        })
    }

    /// What was used so far.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn read(&self, scene: &Scene<'_>, running: &Running) -> Result<Used> {
        let usage = running.usage()?;
        let server = scene.server.usage();
        Ok(Used {
            cpu_seconds: usage.cpu_seconds - self.cpu_seconds,
            usage,
            server_cpu: server
                .zip(self.server)
                .map(|(now, then)| now.cpu_seconds - then.cpu_seconds),
            requests: Requests::served(&scene.client).await?.since(&self.requests),
            cloud: scene.cloud.counters().await?,
        })
    }

    /// The same once the side asks nothing more: what it does behind the last visible change is part of the work, such as Events.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), or when the side finds no rest.
    pub async fn read_at_rest(&self, scene: &Scene<'_>, running: &Running) -> Result<Used> {
        rest(scene).await?;
        self.read(scene, running).await
    }
}

/// Waits until nothing is asked of the API server any more.
///
/// # Errors
///
/// When that does not happen.
pub async fn rest(scene: &Scene<'_>) -> Result<()> {
    let mut last = Requests::served(&scene.client).await?;
    for _ in 0..LIMIT {
        tokio::time::sleep(QUIET).await;
        let now = Requests::served(&scene.client).await?;
        let new = now.since(&last);
        if new.total() == 0 {
            return Ok(());
        }
        last = now;
    }
    bail!("after {LIMIT} s the API server is still asked")
}

impl Used {
    /// All of it, with requests to the API server for each of `count` things, such as `Node`.
    pub fn readings(&self, count: usize, thing: &str) -> Vec<Reading> {
        let mut readings = vec![
            Reading::new(Measure::new("cpu", "CPU time", Unit::Seconds), self.cpu_seconds),
            Reading::new(
                Measure::new("peak-memory", "peak memory", Unit::Bytes),
                self.usage.peak_memory as f64,
            ),
        ];
        let each = |requests: u64| requests as f64 / count as f64;
        let requests = Measure::new("api-requests", format!("API requests for each {thing}"), Unit::Count);
        readings.push(Reading::new(requests, each(self.requests.total())));
        for (what, number) in &self.requests.counts {
            let id = format!("api-{}", what.to_lowercase().replace([' ', '/'], "-"));
            // One look at the whole list is none for each.
            if each(*number) >= 0.01 {
                let measure = Measure::new(id, format!("of these: {what}"), Unit::Count).part();
                readings.push(Reading::new(measure, each(*number)).nought());
            }
        }
        let refused = Measure::new("api-refused", "API requests answered with an error", Unit::Count).part();
        readings.push(Reading::new(refused, self.requests.refused as f64));
        readings.push(self.cloud_calls());
        if let Some(seconds) = self.server_cpu {
            readings.push(Reading::new(
                Measure::new("server-cpu", "CPU time of the API server", Unit::Seconds),
                seconds,
            ));
        }
        readings
    }

    /// All calls of the cloud.
    pub fn cloud_calls(&self) -> Reading {
        Reading::new(
            Measure::new("cloud-calls", "cloud calls", Unit::Count),
            self.cloud.total() as f64,
        )
    }
}
