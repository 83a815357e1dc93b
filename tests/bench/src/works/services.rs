//! 500 Services that want a load balancer when a side starts, behind ten Nodes that are ready; when all have one, all are deleted. With its own limit of
//! requests the peer makes five a second, so that there are fewer of them in a run of small sizes.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;

use crate::measure::meter::{Meter, rest};
use crate::measure::observer::{self, Observer};
use crate::measure::pairs::{Reading, pairs};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::Scene;
use crate::scene::contestant::{Side, Tuning};
use crate::scene::setting::Setting;

/// So many Services.
const SERVICES: usize = 500;

/// The same with each side's own limit of requests, in a run of small sizes.
const FEW: usize = 100;

/// Machines behind each.
const NODES: usize = 10;

/// The peer takes 100 s at its defaults.
const LIMIT: Duration = Duration::from_secs(300);

/// Deletions that are asked for at a time.
const DELETERS: usize = 16;

/// How both sides are run.
struct Round {
    services: usize,
    workers: u32,
    latency: Duration,
    /// Whether requests to the API server are not limited; else each side has its own default.
    lifted: bool,
}

/// With one worker and with ten, and with one at each side's own limits.
const ROUNDS: [Round; 6] = [
    lifted(10, 0),
    lifted(1, 0),
    lifted(10, 20),
    lifted(1, 20),
    own(SERVICES),
    own(FEW),
];

const fn lifted(workers: u32, milliseconds: u64) -> Round {
    Round {
        services: SERVICES,
        workers,
        latency: Duration::from_millis(milliseconds),
        lifted: true,
    }
}

const fn own(services: usize) -> Round {
    Round {
        services,
        workers: 1,
        latency: Duration::ZERO,
        lifted: false,
    }
}

/// Those that are planned.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for round in ROUNDS {
        ledger.measure(&round.id(), round.measure(setting)).await?;
    }
    Ok(())
}

impl Round {
    /// Of its section.
    fn id(&self) -> String {
        if self.lifted {
            format!("services-{}-{}ms", self.workers, self.latency.as_millis())
        } else {
            format!("services-{}-defaults", self.services)
        }
    }

    async fn measure(&self, setting: &Setting) -> Result<Vec<Section>> {
        let Self { services, workers, .. } = self;
        let (id, latency) = (self.id(), self.latency.as_millis());
        let (tuned, flags) = if self.lifted {
            ("limits lifted", "--kube-api-qps=5000, --kube-api-burst=5000")
        } else {
            ("each side's own defaults", "No flag for limits")
        };
        let some = if *workers == 1 {
            "1 worker".to_owned()
        } else {
            format!("{workers} workers")
        };
        let title = format!("{services} Services, {tuned}, {some}, cloud latency {latency} ms");
        let mut conditions = format!(
            "{NODES} Nodes are ready. From the start of the process until the last Service has its address; then all are deleted, until the last one is \
             gone. CPU and requests are of both together, without the benchmark's own requests to delete. {flags} and \
             --concurrent-service-syncs={workers} on both sides; no election, no routes; compile cache warm"
        );
        if !self.lifted && *services == FEW {
            conditions += ". The goal is that for 500 Services, which a full run has";
        }
        let mut section = Section::new(&id, &title, conditions);
        section.measures = pairs(&title, setting.plan.runs(&id), |side| self.run(setting, side)).await?;
        for measure in &mut section.measures {
            measure.goal = self.goal(&measure.id);
        }
        Ok(vec![section])
    }

    fn tuning(&self) -> Tuning {
        if self.lifted {
            return Tuning::lifted(self.workers);
        }
        Tuning {
            service_workers: Some(self.workers),
            ..Tuning::defaults()
        }
    }

    async fn run(&self, setting: &Setting, side: Side) -> Result<Vec<Reading>> {
        let tuning = setting.warm(self.tuning()).await?;
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
        (measure == "time" && !self.lifted).then_some(Goal::Times(10.0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn rounds_are_planned_with_fewer_services_in_small_run() {
        let [small, full] = [false, true].map(|full| Plan::new(full, &[], None));
        for round in ROUNDS {
            let id = round.id();
            let [small, full] = [&small, &full].map(|plan| plan.runs(&id) > 0);
            assert!(small || full, "{id}");
            assert_eq!(full, round.services == SERVICES, "{id}");
        }
        assert!(small.runs("services-100-defaults") > 0 && small.runs("services-500-defaults") == 0);
    }

    #[test]
    fn one_worker_is_one_on_both_sides_with_own_limits() {
        let tuning = own(SERVICES).tuning();
        assert_eq!((tuning.service_workers, tuning.qps), (Some(1), None));
    }
}
