//! `process_*` and `kubernetes_build_info`, under the names that every Go program has.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::version::{UPSTREAM, VERSION};

/// Registers them.
pub fn register(registry: &mut Registry) {
    let info = Family::<[(&'static str, &'static str); 3], Gauge>::default();
    let labels = [
        ("git_version", VERSION),
        ("kubernetes_behaviour", UPSTREAM),
        ("compiler", "rustc"),
    ];
    info.get_or_create(&labels).set(1);
    registry.register(
        "kubernetes_build_info",
        "1, with the version of this binary and of upstream whose behaviour it has",
        info,
    );
    // Metrics are registered within a moment of the start.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    registry.register_collector(Box::new(Process {
        started: started.as_secs_f64(),
    }));
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
        gauge("process_open_fds", "Open file descriptors", open)
    }
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
    fn memory_files_and_version_are_told() {
        let mut registry = Registry::default();
        register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for name in [
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_open_fds",
            "process_cpu_seconds_total",
            "process_start_time_seconds",
        ] {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} ")))
                .unwrap();
            assert!(line.parse::<f64>().unwrap() > 0.0, "{text}");
        }
        assert!(text.contains("kubernetes_build_info{git_version="), "{text}");
    }
}
