//! Metrics of calls, loads and swaps. All label values come from closed sets.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cloudwit_model::{CloudError, FaultKind};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::swap::status::SwapResult;

/// Operation of a provider; the label `operation` and the name of the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Instantiate,
    Describe,
    Check,
    Probe,
    Lookup,
    BalancerName,
    GetBalancer,
    EnsureBalancer,
    UpdateTargets,
    DeleteBalancer,
    ListRoutes,
    ApplyRoutes,
    VolumeDriver,
    VolumeNodes,
    GetVolumes,
    CreateVolume,
    DeleteVolume,
    AttachVolumes,
    DetachVolumes,
    ExpandVolume,
    ListVolumes,
    CreateSnapshot,
    DeleteSnapshot,
    GetSnapshots,
    ListSnapshots,
    ModifyVolume,
    VolumeCapacity,
    LabelSources,
    VolumeLabels,
    ListClusters,
    ScrubDns,
    Locate,
    EnsureSshKey,
    Tag,
    Untag,
}

impl Operation {
    /// The function of the contract; `instantiate` for the load's look at the types.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instantiate => "instantiate",
            Self::Describe => "info.describe",
            Self::Check => "info.check",
            Self::Probe => "info.probe",
            Self::Lookup => "instances.lookup",
            Self::BalancerName => "load-balancers.name",
            Self::GetBalancer => "load-balancers.get",
            Self::EnsureBalancer => "load-balancers.ensure",
            Self::UpdateTargets => "load-balancers.update-targets",
            Self::DeleteBalancer => "load-balancers.delete",
            Self::ListRoutes => "routes.list",
            Self::ApplyRoutes => "routes.apply",
            Self::VolumeDriver => "volumes.describe",
            Self::VolumeNodes => "volumes.nodes",
            Self::GetVolumes => "volumes.get",
            Self::CreateVolume => "volumes.create",
            Self::DeleteVolume => "volumes.delete",
            Self::AttachVolumes => "volumes.attach",
            Self::DetachVolumes => "volumes.detach",
            Self::ExpandVolume => "volume-expansion.expand",
            Self::ListVolumes => "volume-listing.list",
            Self::CreateSnapshot => "volume-snapshots.create",
            Self::DeleteSnapshot => "volume-snapshots.delete",
            Self::GetSnapshots => "volume-snapshots.get",
            Self::ListSnapshots => "volume-snapshots.list",
            Self::ModifyVolume => "volume-modification.modify",
            Self::VolumeCapacity => "volume-capacity.get",
            Self::LabelSources => "volume-labels.sources",
            Self::VolumeLabels => "volume-labels.get",
            Self::ListClusters => "clusters.list",
            Self::ScrubDns => "dns.scrub",
            Self::Locate => "location.get",
            Self::EnsureSshKey => "ssh-keys.ensure",
            Self::Tag => "tagging.tag",
            Self::Untag => "tagging.untag",
        }
    }
}

impl EncodeLabelValue for Operation {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.as_str().encode(encoder)
    }
}

/// What an item of an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    /// A Node's machine.
    Node,
    /// A Service whose load balancer was to get other targets.
    Service,
    /// A route that exists.
    Route,
    /// A route that was to be made or deleted.
    RouteChange,
    /// A volume, or its attachment to a machine.
    Volume,
    /// A snapshot of a volume.
    Snapshot,
    /// A cluster of the cloud.
    Cluster,
}

impl ItemKind {
    /// The kind as a metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Service => "service",
            Self::Route => "route",
            Self::RouteChange => "route_change",
            Self::Volume => "volume",
            Self::Snapshot => "snapshot",
            Self::Cluster => "cluster",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    provider: String,
    operation: Operation,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    provider: String,
    operation: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    provider: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ItemLabels {
    provider: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SwapLabels {
    provider: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoadLabels {
    code: &'static str,
}

/// What a call has cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spent {
    pub time: Duration,
    pub cpu: Duration,
    /// Most linear memory, in bytes.
    pub memory: usize,
}

/// Counters of one host, for all its providers.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    calls: Family<CallLabels, Counter>,
    durations: Family<OperationLabels, Histogram, fn() -> Histogram>,
    memory: Family<OperationLabels, Histogram, fn() -> Histogram>,
    cpu: Family<ProviderLabels, Counter<f64, AtomicU64>>,
    faults: Family<FaultLabels, Counter>,
    invalid_items: Family<ItemLabels, Counter>,
    instances: Gauge,
    loads: Family<LoadLabels, Histogram, fn() -> Histogram>,
    swaps: Family<SwapLabels, Counter>,
    refused: Family<ProviderLabels, Gauge>,
}

impl Metrics {
    /// Registers everything below `cloudwit_provider_`.
    pub fn register(registry: &mut Registry) -> Self {
        // 1 ms (no request to the cloud) to 65 s (the default wall-clock limit and the wait before).
        let durations = || Histogram::new(exponential_buckets(0.001, 2.0, 17));
        // 1 MiB (a component in Rust) to 256 MiB (the most that limits.memoryBytes can be).
        let memory = || Histogram::new(exponential_buckets(1_048_576.0, 2.0, 9));
        // 1 ms (found compiled) to 33 s (a guest with a whole language runtime, compiled).
        let loads = || Histogram::new(exponential_buckets(0.001, 2.0, 16));
        let metrics = Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(durations),
            memory: Family::new_with_constructor(memory),
            cpu: Family::default(),
            faults: Family::default(),
            invalid_items: Family::default(),
            instances: Gauge::default(),
            loads: Family::new_with_constructor(loads),
            swaps: Family::default(),
            refused: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("cloudwit_provider");
        registry.register(
            "calls",
            "Calls of a provider, by what came of them",
            metrics.calls.clone(),
        );
        registry.register_with_unit(
            "call_duration",
            "Time calls took, without the wait for a free instance",
            Unit::Seconds,
            metrics.durations.clone(),
        );
        registry.register_with_unit(
            "call_memory",
            "Most memory that calls had",
            Unit::Bytes,
            metrics.memory.clone(),
        );
        registry.register_with_unit("cpu", "CPU time of calls", Unit::Seconds, metrics.cpu.clone());
        registry.register(
            "faults",
            "Calls in which the provider misbehaved, by kind",
            metrics.faults.clone(),
        );
        registry.register(
            "invalid_items",
            "Items of answers that were not used since they are invalid, by kind",
            metrics.invalid_items.clone(),
        );
        registry.register(
            "instances_in_use",
            "Instances that exist at the moment",
            metrics.instances.clone(),
        );
        registry.register_with_unit(
            "load_duration",
            "Time it took to get a component's code, compiled now or found in the cache",
            Unit::Seconds,
            metrics.loads.clone(),
        );
        registry.register(
            "swaps",
            "Changes of a component, configuration or secret, by result",
            metrics.swaps.clone(),
        );
        registry.register(
            "refused",
            "1 while the files of a provider are not what runs, since they were refused",
            metrics.refused.clone(),
        );
        metrics
    }

    /// An instance is about to exist.
    pub fn instance_begins(&self) {
        self.instances.inc();
    }

    /// An instance is gone, and with it the call it was made for. `outcome` is none when no caller waited for the answer
    /// any more.
    pub fn call_ends(&self, provider: &str, operation: Operation, outcome: Option<Outcome>, spent: Spent) {
        self.instances.dec();
        let provider = provider.to_owned();
        let result = outcome.map_or("cancelled", Outcome::label);
        if let Some(Outcome::Fault(kind)) = outcome {
            self.faults
                .get_or_create(&FaultLabels {
                    provider: provider.clone(),
                    kind: kind.label(),
                })
                .inc();
        }
        self.cpu
            .get_or_create(&ProviderLabels {
                provider: provider.clone(),
            })
            .inc_by(spent.cpu.as_secs_f64());
        let of_operation = OperationLabels {
            provider: provider.clone(),
            operation,
        };
        self.memory
            .get_or_create(&of_operation)
            .observe(u32::try_from(spent.memory).unwrap_or(u32::MAX).into());
        self.durations
            .get_or_create(&of_operation)
            .observe(spent.time.as_secs_f64());
        self.calls
            .get_or_create(&CallLabels {
                provider,
                operation,
                result,
            })
            .inc();
    }

    /// Items of an answer are not used.
    pub fn invalid_items(&self, provider: &str, kind: ItemKind, items: usize) {
        let (provider, kind) = (provider.to_owned(), kind.label());
        let counter = self.invalid_items.get_or_create(&ItemLabels { provider, kind });
        counter.inc_by(u64::try_from(items).unwrap_or(u64::MAX));
    }

    /// A call never got an instance.
    pub fn call_refused(&self, provider: &str, operation: Operation, kind: FaultKind) {
        let provider = provider.to_owned();
        self.faults
            .get_or_create(&FaultLabels {
                provider: provider.clone(),
                kind: kind.label(),
            })
            .inc();
        self.calls
            .get_or_create(&CallLabels {
                provider,
                operation,
                result: "fault",
            })
            .inc();
    }

    /// A component's code is there.
    pub fn loaded(&self, from_cache: bool, took: Duration) {
        let code = if from_cache { "cached" } else { "compiled" };
        self.loads
            .get_or_create(&LoadLabels { code })
            .observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// A provider runs; its gauge is there from the start, so that an alert has something to compare.
    pub fn runs(&self, provider: &str) {
        let provider = provider.to_owned();
        self.refused.get_or_create(&ProviderLabels { provider }).set(0);
    }

    /// A change of a provider's files was checked.
    pub fn swap(&self, provider: &str, result: SwapResult) {
        let labels = ProviderLabels {
            provider: provider.to_owned(),
        };
        self.refused.get_or_create(&labels).set(i64::from(result.is_refusal()));
        let (provider, result) = (labels.provider, result.label());
        self.swaps.get_or_create(&SwapLabels { provider, result }).inc();
    }
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// An answer.
    Ok,
    /// A failure, by its label.
    Failure(&'static str),
    /// A fault.
    Fault(FaultKind),
}

impl Outcome {
    /// The outcome of a call with this result.
    pub fn of<T>(result: &Result<T, CloudError>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(CloudError::Failure(failure)) => Self::Failure(failure.label()),
            Err(CloudError::Fault(fault)) => Self::Fault(fault.kind),
            Err(error @ CloudError::DryRun) => Self::Failure(error.label()),
        }
    }

    /// The outcome as a metric label and in spans; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failure(label) => label,
            Self::Fault(_) => "fault",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_shows_in_every_metric_it_belongs_to() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.instance_begins();
        let spent = Spent {
            time: Duration::from_millis(3),
            cpu: Duration::from_millis(2),
            memory: 1_200_000,
        };
        let trap = Some(Outcome::Fault(FaultKind::Trap));
        metrics.call_ends("sim", Operation::Lookup, trap, spent);
        metrics.instance_begins();
        metrics.call_ends("sim", Operation::Probe, None, spent);
        metrics.loaded(true, spent.time);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "cloudwit_provider_calls_total{provider=\"sim\",operation=\"instances.lookup\",result=\"fault\"} 1",
            "cloudwit_provider_calls_total{provider=\"sim\",operation=\"info.probe\",result=\"cancelled\"} 1",
            "cloudwit_provider_faults_total{provider=\"sim\",kind=\"trap\"} 1",
            "cloudwit_provider_instances_in_use 0",
            "cloudwit_provider_cpu_seconds_total{provider=\"sim\"} 0.004",
            "cloudwit_provider_call_duration_seconds_count{provider=\"sim\",operation=\"info.probe\"} 1",
            "cloudwit_provider_call_memory_bytes_bucket{le=\"1048576.0\",provider=\"sim\",operation=\"info.probe\"} 0",
            "cloudwit_provider_call_memory_bytes_bucket{le=\"2097152.0\",provider=\"sim\",operation=\"info.probe\"} 1",
            "cloudwit_provider_load_duration_seconds_count{code=\"cached\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
    }
}
