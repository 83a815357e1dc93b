//! What the host costs by itself, in this process and without a cloud: loading a component, and a call in a fresh instance.
//!
//! | what | how |
//! | ---- | --- |
//! | load | a host of its own each time, once with an empty cache and once with what the first left there |
//! | a call | the provider `sim` is asked for the name of a load balancer: an instance is made, called, and thrown away |

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cloudwit_host::{Grants, Host, HostOptions, Limits, Outside, Provider, ProviderSettings};
use cloudwit_model::{ClusterNode, ClusterView, EventSink, ObjectEvent, Service};
use prometheus_client::registry::Registry;

use crate::measure::{Goal, Measure, Section, Unit};

/// Enough that CPU time, which is counted in hundredths of a second, is exact to a percent.
const CALLS: u32 = 20_000;

/// Loads are quick and vary.
const LOADS: usize = 5;

/// How often [`CALLS`] are made.
const ROUNDS: usize = 5;

/// CPU time of a call without I/O, in millionths of a second.
const CALL_GOAL: f64 = 60.0;

/// No cluster: the guest's call asks for nothing.
struct Nobody;

impl EventSink for Nobody {
    fn emit(&self, _: ObjectEvent) {}
}

impl ClusterView for Nobody {
    fn nodes(&self) -> Vec<ClusterNode> {
        Vec::new()
    }

    fn services(&self) -> Vec<Service> {
        Vec::new()
    }
}

/// Load times, cold and cached, and the cost of a call.
///
/// # Errors
///
/// When the component cannot be loaded or called, or the cache is not used.
pub async fn measure(component: &Path) -> Result<Section> {
    let mut compiled = Measure::new("load-compiled", "load, compiled", Unit::Seconds);
    let mut cached = Measure::new("load-cached", "load, compiled code from the cache", Unit::Seconds);
    let mut provider = None;
    for _ in 0..LOADS {
        let cache = tempfile::tempdir().context("making a cache")?;
        let (time, _) = load(component, cache.path(), false).await?;
        compiled.ours.values.push(time);
        let (time, loaded) = load(component, cache.path(), true).await?;
        cached.ours.values.push(time);
        provider = Some(loaded);
    }
    let provider = provider.context("nothing was loaded")?;
    let mut wall = Measure::new("call-time", "call in a fresh instance, time", Unit::Microseconds);
    let mut cpu = Measure::new("call-cpu", "call in a fresh instance, CPU", Unit::Microseconds);
    for _ in 0..ROUNDS {
        let cost = call(&provider).await?;
        wall.ours.values.push(cost.wall * 1e6);
        cpu.ours.values.push(cost.cpu * 1e6);
    }
    let mut section = Section::new(
        "component",
        "The provider `sim` in the host: load, and a call without I/O",
        format!(
            "{LOADS} loads in a new host each, on all cores. {ROUNDS} rounds of {CALLS} calls one after the other, each in an instance of its own; \
             CPU of the whole process"
        ),
    );
    section.measures = vec![compiled, cached, wall, cpu.goal(Goal::AtMost(CALL_GOAL))];
    Ok(section)
}

/// Seconds of one piece of work.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// From its begin to its end.
    pub wall: f64,
    /// CPU time of all threads of this process.
    pub cpu: f64,
}

/// Measures so many repetitions and gives the cost of one.
///
/// # Errors
///
/// When one of them fails.
pub async fn cost<F: Future<Output = Result<()>>>(repetitions: u32, mut work: impl FnMut() -> F) -> Result<Cost> {
    let (started, cpu) = (Instant::now(), cpu_time()?);
    for _ in 0..repetitions {
        work().await?;
    }
    Ok(Cost::of_one(
        repetitions,
        started.elapsed(),
        cpu_time()?.saturating_sub(cpu),
    ))
}

impl Cost {
    /// Of one out of so many repetitions, which took so long together.
    fn of_one(repetitions: u32, wall: Duration, cpu: Duration) -> Self {
        let one = |all: Duration| all.as_secs_f64() / f64::from(repetitions);
        Self {
            wall: one(wall),
            cpu: one(cpu),
        }
    }
}

/// Loads in a host of its own; seconds for the whole load.
async fn load(component: &Path, cache: &Path, expect_cached: bool) -> Result<(f64, Provider)> {
    let provider = provider(component, Some(cache), r#"{"endpoint": "http://127.0.0.1:1"}"#).await?;
    let facts = provider.load_facts();
    anyhow::ensure!(
        facts.from_cache == expect_cached,
        "the cache did not do its part: {facts:?}"
    );
    Ok((facts.load_time.as_secs_f64(), provider))
}

/// A component in a host of its own, with this cloud config and without grants.
///
/// # Errors
///
/// When it is refused.
pub async fn provider(component: &Path, cache: Option<&Path>, config: &str) -> Result<Provider> {
    let options = HostOptions {
        cache_dir: cache.map(Path::to_owned),
        ..HostOptions::default()
    };
    let host = Host::new(options, &mut Registry::default())?;
    let settings = ProviderSettings {
        name: "bench".into(),
        config_text: config.into(),
        values: Vec::new(),
        cluster_name: "bench".into(),
        cluster_cidrs: Vec::new(),
        grants: Grants::default(),
        limits: Limits::default(),
    };
    let outside = Outside {
        events: Arc::new(Nobody),
        cluster: Arc::new(Nobody),
    };
    Ok(host.load(component, settings, outside).await?)
}

async fn call(provider: &Provider) -> Result<Cost> {
    let service = service();
    let ask = || async {
        let name = provider.balancer_name(&service).await?;
        anyhow::ensure!(!name.is_empty(), "the guest did not do its part");
        Ok(())
    };
    cost(CALLS / 10, ask).await?;
    cost(CALLS, ask).await
}

/// The Service of all calls that are about one.
pub fn service() -> Service {
    Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u-1".into(),
        ..Service::default()
    }
}

fn cpu_time() -> Result<Duration> {
    let usage = xtask::run::process::usage(std::process::id()).context("/proc tells nothing about this process")?;
    Ok(Duration::from_secs_f64(usage.cpu_seconds))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_cost_of_one_is_that_of_all_divided_by_their_number() {
        let cost = Cost::of_one(4, Duration::from_secs(2), Duration::from_secs(3));
        assert_eq!((cost.wall, cost.cpu), (0.5, 0.75));
    }

    #[tokio::test]
    async fn repeated_work_ends_at_its_first_failure() {
        let done = Cell::new(0);
        let work = |fails_at: u32| {
            done.set(0);
            let done = &done;
            move || async move {
                done.set(done.get() + 1);
                anyhow::ensure!(done.get() != fails_at, "number {fails_at} fails");
                Ok(())
            }
        };
        cost(7, work(0)).await.unwrap();
        assert_eq!(done.get(), 7);
        let error = cost(7, work(3)).await.unwrap_err();
        assert_eq!((done.get(), error.to_string().as_str()), (3, "number 3 fails"));
    }
}
