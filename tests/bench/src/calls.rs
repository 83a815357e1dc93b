//! Loading a component, and what one call in a fresh instance costs when the guest asks nobody.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cloudwit_host::{Grants, Host, HostOptions, Limits, Outside, Provider, ProviderSettings};
use cloudwit_model::{Cloud, ClusterNode, ClusterView, EventSink, ObjectEvent, Service};
use prometheus_client::registry::Registry;

use crate::Row;

/// Enough that CPU time, which is counted in hundredths of a second, is exact to a percent.
const CALLS: u32 = 20_000;

/// Loads are quick and vary; the median of so many is shown.
const LOADS: usize = 5;

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
pub async fn measure(component: &Path) -> Result<Vec<Row>> {
    let mut cold = Vec::new();
    let mut cached = Vec::new();
    let mut provider = None;
    for _ in 0..LOADS {
        let cache = tempfile::tempdir().context("making a cache")?;
        let (first, _) = load(component, cache.path(), false).await?;
        let (second, loaded) = load(component, cache.path(), true).await?;
        cold.push(first);
        cached.push(second);
        provider = Some(loaded);
    }
    let provider = provider.context("nothing was loaded")?;
    let (wall, cpu) = call(&provider).await?;
    Ok(vec![
        ("load, compiled".into(), format!("{:.0} ms", median(cold) * 1e3)),
        (
            "load, compiled code from the cache".into(),
            format!("{:.2} ms", median(cached) * 1e3),
        ),
        (
            "call without I/O in a fresh instance, time".into(),
            format!("{:.1} us", wall * 1e6),
        ),
        (
            "call without I/O in a fresh instance, CPU".into(),
            format!("{:.1} us", cpu * 1e6),
        ),
    ])
}

/// Loads in a host of its own; seconds for the whole load.
async fn load(component: &Path, cache: &Path, expect_cached: bool) -> Result<(f64, Provider)> {
    let options = HostOptions {
        cache_dir: Some(cache.to_owned()),
        ..HostOptions::default()
    };
    let host = Host::new(options, &mut Registry::default())?;
    let settings = ProviderSettings {
        name: "sim".into(),
        config_text: r#"{"endpoint": "http://127.0.0.1:1"}"#.into(),
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
    let provider = host.load(component, settings, outside).await?;
    let facts = provider.load_facts();
    anyhow::ensure!(
        facts.from_cache == expect_cached,
        "the cache did not do its part: {facts:?}"
    );
    Ok((facts.load_time.as_secs_f64(), provider))
}

/// Seconds of wall time and of CPU time for one call.
async fn call(provider: &Provider) -> Result<(f64, f64)> {
    let service = Service {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u-1".into(),
        ..Service::default()
    };
    for _ in 0..CALLS / 10 {
        let name = provider.balancer_name(&service).await?;
        anyhow::ensure!(!name.is_empty(), "the guest did not do its part");
    }
    let (started, cpu) = (Instant::now(), cpu_time()?);
    for _ in 0..CALLS {
        provider.balancer_name(&service).await?;
    }
    let per_call = |time: Duration| time.as_secs_f64() / f64::from(CALLS);
    Ok((per_call(started.elapsed()), per_call(cpu_time()? - cpu)))
}

fn cpu_time() -> Result<Duration> {
    let usage = xtask::process::usage(std::process::id()).context("/proc tells nothing about this process")?;
    Ok(Duration::from_secs_f64(usage.cpu_seconds))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
