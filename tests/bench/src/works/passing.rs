//! 5,000 Nodes passed to a guest: what it costs to copy them through the component boundary, and back.
//!
//! Two ways lead there. Look-ups of machines take up to 1,000 Nodes a call and get a machine for each. Targets of a load balancer come in one call,
//! all of them. Both guests (`only_instances`, `no_ingress` of `tests/guests`) answer at once, so that nothing but the passing is measured.

use std::path::Path;
use std::process;

use anyhow::{Context, Result, ensure};
use cloudwit_host::Provider;
use cloudwit_model::{Address, AddressKind, Cloud, NodeRef, Target};

use crate::measure::{Measure, Section, Unit};
use crate::works::calls::{self, Cost};

/// How many Nodes.
const NODES: usize = 5_000;

/// CPU time is counted in hundredths of a second.
const REPETITIONS: u32 = 50;

/// How often the repetitions are repeated.
const ROUNDS: usize = 5;

/// Measures both ways.
///
/// # Errors
///
/// When a guest is not there, or does not answer.
pub async fn measure(guests: &Path) -> Result<Section> {
    let nodes: Vec<NodeRef> = (0..NODES).map(node).collect();
    let targets: Vec<Target> = nodes.iter().cloned().map(|node| Target { node, ready: true }).collect();
    let service = calls::service();

    let provider = calls::provider(&guests.join("only_instances.wasm"), None, "").await?;
    let lookups = Way::of(async || look_up(&provider, &nodes).await).await?;
    drop(provider);
    let provider = calls::provider(&guests.join("no_ingress.wasm"), None, "").await?;
    let updates = Way::of(async || {
        provider.update_targets(&service, &targets, None).await?;
        Ok(())
    })
    .await?;

    let mut section = Section::new(
        "passing-5000",
        "5,000 Nodes passed to a guest",
        format!(
            "Each Node has a name, a provider id, a system UUID and three addresses. Look-ups: {} Nodes a call, and a machine for each comes back. Targets: \
             one call. {ROUNDS} rounds of {REPETITIONS} repetitions; CPU and memory of the whole process, which has no more to do",
            provider.lookup_limit()
        ),
    );
    section.measures = lookups.measures("lookup", "looked up").into();
    section
        .measures
        .extend(updates.measures("targets", "as targets of a load balancer"));
    Ok(section)
}

async fn look_up(provider: &Provider, nodes: &[NodeRef]) -> Result<()> {
    for some in nodes.chunks(provider.lookup_limit()) {
        let answers = provider.lookup(some).await?;
        ensure!(
            answers.len() == some.len() && answers.iter().all(Result::is_ok),
            "the guest did not do its part"
        );
    }
    Ok(())
}

/// What one way costs.
struct Way {
    costs: Vec<Cost>,
    /// Resident memory at the peak above that before, in bytes.
    memory: Vec<f64>,
}

impl Way {
    async fn of(work: impl AsyncFn() -> Result<()>) -> Result<Self> {
        // The first fills caches and pools.
        work().await?;
        let mut way = Self {
            costs: Vec::new(),
            memory: Vec::new(),
        };
        for _ in 0..ROUNDS {
            let before = forget_peak()?;
            way.costs.push(calls::cost(REPETITIONS, || work()).await?);
            way.memory.push(usage()?.peak_memory.saturating_sub(before) as f64);
        }
        Ok(way)
    }

    fn measures(self, id: &str, title: &str) -> [Measure; 3] {
        let micros = |id: String, title: String, value: fn(&Cost) -> f64| {
            Measure::new(id, title, Unit::Microseconds).ours(self.costs.iter().map(|cost| value(cost) * 1e6))
        };
        [
            micros(format!("{id}-time"), format!("{title}, time"), |cost| cost.wall),
            micros(format!("{id}-cpu"), format!("{title}, CPU"), |cost| cost.cpu),
            Measure::new(
                format!("{id}-memory"),
                format!("{title}, memory meanwhile"),
                Unit::Bytes,
            )
            .ours(self.memory.iter().copied()),
        ]
    }
}

/// Makes the peak of resident memory what is resident now (`/proc/PID/clear_refs`, proc(5)), which it gives.
fn forget_peak() -> Result<u64> {
    std::fs::write("/proc/self/clear_refs", "5").context("resetting the peak of resident memory")?;
    Ok(usage()?.memory)
}

fn usage() -> Result<xtask::run::process::Usage> {
    xtask::run::process::usage(process::id()).context("/proc tells nothing about this process")
}

fn node(number: usize) -> NodeRef {
    let name = format!("ip-10-0-{}-{}.north-1.compute.example", number / 250, number % 250);
    let internal = format!("10.0.{}.{}", number / 250, number % 250);
    NodeRef {
        provider_id: Some(format!("test://{name}")),
        system_uuid: Some(format!("ec2e1916-9099-7caf-fd21-{number:012}")),
        addresses: vec![
            Address::new(AddressKind::InternalIP, internal),
            Address::new(AddressKind::Hostname, name.clone()),
            Address::new(AddressKind::InternalDNS, name.clone()),
        ],
        name,
        provider: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_node_is_another_one_with_addresses_that_exist() {
        let nodes: Vec<NodeRef> = (0..NODES).map(node).collect();
        let different = |part: fn(&NodeRef) -> String| nodes.iter().map(part).collect::<BTreeSet<_>>().len();
        assert_eq!(different(|node| node.name.clone()), NODES);
        assert_eq!(different(|node| node.provider_id.clone().unwrap()), NODES);
        assert_eq!(different(|node| node.system_uuid.clone().unwrap()), NODES);
        for node in &nodes {
            let [internal, ..] = &node.addresses[..] else {
                panic!("{node:?}")
            };
            assert_eq!(node.addresses.len(), 3);
            internal.value.parse::<std::net::Ipv4Addr>().unwrap();
        }
    }

    #[test]
    fn costs_of_a_repetition_are_reported_in_millionths_of_a_second() {
        let way = Way {
            costs: vec![Cost { wall: 0.25, cpu: 0.5 }, Cost { wall: 1.0, cpu: 2.0 }],
            memory: vec![1024.0, 0.0],
        };
        let [time, cpu, memory] = way.measures("lookup", "looked up");
        assert_eq!(time.ours.values, [250_000.0, 1_000_000.0]);
        assert_eq!(cpu.ours.values, [500_000.0, 2_000_000.0]);
        assert_eq!(
            (memory.ours.values.as_slice(), memory.id.as_str()),
            (&[1024.0, 0.0][..], "lookup-memory")
        );
    }
}
