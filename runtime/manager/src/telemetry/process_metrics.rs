//! `process_*` and `kubernetes_build_info`, under the names that every Go program has.

use std::fmt;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use rustix::process::{Resource, getrlimit};

use crate::flags::values::version::{UPSTREAM, VERSION};

/// Registers them.
pub fn register(registry: &mut Registry) {
    let info = Family::<[(&'static str, &'static str); 10], Gauge>::default();
    let (major, minor) = VERSION.split_once('.').unwrap_or((VERSION, ""));
    let minor = minor.split_once('.').map_or(minor, |(minor, _)| minor);
    // What is not known is empty, as in upstream's own builds without it.
    let labels = [
        ("build_date", "1970-01-01T00:00:00Z"),
        ("compiler", "rustc"),
        ("git_commit", ""),
        ("git_tree_state", ""),
        ("git_version", concat!("v", env!("CARGO_PKG_VERSION"))),
        ("go_version", ""),
        ("kubernetes_behaviour", UPSTREAM),
        ("major", major),
        ("minor", minor),
        ("platform", platform()),
    ];
    info.get_or_create(&labels).set(1);
    registry.register(
        "kubernetes_build_info",
        "1, with the version of this binary and of upstream whose behaviour it has",
        info,
    );
    registry.register_collector(Box::new(Process { started: started() }));
}

/// When the process was started, in seconds since 1970: metrics are registered within a moment of it.
pub fn started() -> f64 {
    static STARTED: OnceLock<f64> = OnceLock::new();
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64()
    };
    *STARTED.get_or_init(now)
}

/// System and machine, as Go names them.
fn platform() -> &'static str {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux/amd64",
        ("linux", "aarch64") => "linux/arm64",
        _ => "other",
    }
}

#[derive(Debug)]
struct Process {
    started: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let metric = encoder.encode_descriptor(
            "process_cpu_seconds",
            "CPU time, of the process itself and in the kernel",
            None,
            MetricType::Counter,
        )?;
        ConstCounter::new(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9).encode(metric)?;
        let mut gauge = |name, help, value: Option<f64>| match value {
            Some(value) => {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(metric)
            }
            None => Ok(()),
        };
        gauge(
            "process_resident_memory_bytes",
            "Resident memory",
            status_bytes("VmRSS:"),
        )?;
        gauge(
            "process_virtual_memory_bytes",
            "Virtual memory",
            status_bytes("VmSize:"),
        )?;
        gauge(
            "process_start_time_seconds",
            "When the process was started, in seconds since 1970",
            Some(self.started),
        )?;
        let open = std::fs::read_dir("/proc/self/fd").ok().map(|list| list.count() as f64);
        gauge("process_open_fds", "Open file descriptors", open)?;
        gauge(
            "process_max_fds",
            "File descriptors that may be open",
            limit(Resource::Nofile),
        )?;
        gauge(
            "process_virtual_memory_max_bytes",
            "Virtual memory that may be used",
            limit(Resource::As),
        )
    }
}

/// The limit that is in force; without one the largest number, as Go programs have it.
fn limit(resource: Resource) -> Option<f64> {
    Some(getrlimit(resource).current.unwrap_or(u64::MAX) as f64)
}

/// A line of `/proc/self/status`, which counts in KiB.
fn status_bytes(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_files_and_version_are_reported() {
        let mut registry = Registry::default();
        register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for name in [
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_open_fds",
            "process_max_fds",
            "process_virtual_memory_max_bytes",
            "process_cpu_seconds_total",
            "process_start_time_seconds",
        ] {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} ")))
                .unwrap();
            assert!(line.parse::<f64>().unwrap() > 0.0, "{text}");
        }
        assert!(text.contains("kubernetes_build_info{build_date=\""), "{text}");
        assert!(
            text.contains(",git_version=\"v") && text.contains(",platform=\""),
            "{text}"
        );
    }
}
