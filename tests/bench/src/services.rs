//! 500 Services that want a load balancer when a side starts, behind ten Nodes that are ready; when all have one, all are deleted. At each side's own
//! defaults the peer makes five a second, so that there are fewer of them unless all sizes were asked for.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;

use crate::contestant::{Side, Tuning};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::meter::{Meter, rest};
use crate::observer::{self, Observer};
use crate::pairs::{Reading, pairs};
use crate::scene::Scene;
use crate::setting::Setting;

/// So many Services.
const SERVICES: usize = 500;

/// At each side's own defaults, in a short run.
const FEW: usize = 100;

/// Machines behind each.
const NODES: usize = 10;

/// The peer takes 100 s at its defaults.
const LIMIT: Duration = Duration::from_secs(300);

/// Deletions that are asked for at a time.
const DELETERS: usize = 16;

/// How both sides are run.
struct Round {
    /// Limits lifted and so many workers; each side's defaults if `None`.
    workers: Option<u32>,
    services: usize,
    latency: Duration,
}

/// With one worker and with ten, and at each side's defaults.
///
/// # Errors
///
/// When no run of a round reaches its end.
pub async fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let round = |workers, services, milliseconds| Round {
        workers,
        services,
        latency: Duration::from_millis(milliseconds),
    };
    let mut rounds = vec![round(Some(10), SERVICES, 0), round(Some(1), SERVICES, 0)];
    if setting.full {
        rounds.extend([round(Some(10), SERVICES, 20), round(Some(1), SERVICES, 20)]);
    }
    rounds.push(round(None, if setting.full { SERVICES } else { FEW }, 0));
    let mut sections = Vec::new();
    for round in rounds {
        sections.push(round.measure(setting).await?);
    }
    Ok(sections)
}

impl Round {
    async fn measure(&self, setting: &Setting) -> Result<Section> {
        let (services, latency) = (self.services, self.latency.as_millis());
        let (tuned, id) = match self.workers {
            Some(1) => ("limits lifted, 1 worker".to_owned(), "1".to_owned()),
            Some(workers) => (format!("limits lifted, {workers} workers"), workers.to_string()),
            None => ("each side's own defaults".to_owned(), format!("{services}-defaults")),
        };
        let title = format!("{services} Services, {tuned}, cloud latency {latency} ms");
        let conditions = format!(
            "{NODES} Nodes are ready. From the start of the process until the last Service has its address; then all are deleted, until the last one is \
             gone. CPU and requests are of both together, without the benchmark's own requests to delete. No election, no routes; compile cache warm"
        );
        let mut section = Section::new(format!("services-{id}-{latency}ms"), &title, conditions);
        // What decides a run at the defaults is the peer's limit of requests, and one worker's waiting that with one.
        let times = if self.workers == Some(10) {
            setting.pairs
        } else {
            setting.few()
        };
        section.measures = pairs(&title, times, |side| self.run(setting, side)).await?;
        for measure in &mut section.measures {
            measure.goal = self.goal(&measure.id);
        }
        Ok(section)
    }

    async fn run(&self, setting: &Setting, side: Side) -> Result<Vec<Reading>> {
        let tuning = self.workers.map_or_else(Tuning::defaults, Tuning::lifted);
        let tuning = setting.warm(tuning).await?;
        let scene = Scene::set(setting, "services", self.latency).await?;
        scene.ready_nodes("node", NODES).await?;
        scene.services(self.services).await?;
        let mut services = Observer::start(Api::<Service>::default_namespaced(scene.client.clone())).await?;
        let meter = Meter::start(&scene, None).await?;
        let running = scene.start(side, &tuning)?;
        let last = services
            .until(
                "Services have an address",
                self.services,
                observer::is_published,
                &running,
                LIMIT,
            )
            .await?;
        let ready = (last - running.started()).as_secs_f64();
        // Events and heartbeats that follow do not belong to the deletion's time.
        rest(&scene).await?;
        scene.is_balanced(self.services, NODES).await?;
        let began = Instant::now();
        let (gone, deleted) = tokio::join!(
            services.until_none("Services are deleted", observer::is_balanced, &running, LIMIT),
            delete(&scene, self.services)
        );
        deleted?;
        let deletion = (gone? - began).as_secs_f64();
        let mut used = meter.read_at_rest(&scene, &running).await?;
        scene.is_balanced(0, NODES).await?;
        used.requests = used.requests.without("DELETE services", self.services as u64);
        let mut readings = vec![
            Reading::new(Measure::new("time", "time to the last address", Unit::Seconds), ready),
            Reading::new(
                Measure::new("deletion", "time to the last deletion", Unit::Seconds),
                deletion,
            ),
        ];
        readings.extend(used.readings(self.services, "Service"));
        scene.end(running)?;
        Ok(readings)
    }

    fn goal(&self, measure: &str) -> Option<Goal> {
        match (measure, self.workers) {
            ("time", None) => Some(Goal::Times(10.0)),
            _ => None,
        }
    }
}

async fn delete(scene: &Scene<'_>, services: usize) -> Result<()> {
    let api = Api::<Service>::default_namespaced(scene.client.clone());
    let deleted = (0..services).map(|number| {
        let api = &api;
        async move { api.delete(&format!("web-{number}"), &DeleteParams::default()).await }
    });
    stream::iter(deleted)
        .buffer_unordered(DELETERS)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(())
}
