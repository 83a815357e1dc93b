//! Load balancers of the simulated cloud as rules of the hub's kernel: a new connection goes to the next healthy member.
//!
//! The client's address stays as it is, and answers come back through the hub, as with load balancers that pass packets on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{LoadBalancer, Machine, PortProtocol};

use crate::cloud::State;
use crate::cloud::health::Health;
use crate::process::with_parts;

/// Where kube-proxy tells load balancers of Services with `externalTrafficPolicy: Cluster` whether the Node takes traffic.
const PROXY_HEALTH: u16 = 10256;

/// The load balancers that there are.
pub struct Balancers {
    parts: PathBuf,
    health: Health,
    rules: String,
}

impl Balancers {
    /// None of them yet.
    pub fn new(parts: &Path) -> Self {
        Self {
            parts: parts.to_owned(),
            health: Health::default(),
            rules: String::new(),
        }
    }

    /// Makes the kernel's rules fit.
    ///
    /// # Errors
    ///
    /// When the kernel does not take them.
    pub fn follow(&mut self, state: &State) -> Result<()> {
        let checks = state.load_balancers.iter().flat_map(|balancer| {
            let members = members(balancer, &state.machines);
            members.map(|machine| check_address(balancer, machine))
        });
        self.health.follow(&checks.collect());
        let rules = rules(state, |member| self.health.is_healthy(member));
        if rules == self.rules {
            return Ok(());
        }
        let mut nft = with_parts(Command::new(self.parts.join("usr/sbin/nft")), &self.parts)
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting nft")?;
        let mut input = nft.stdin.take().context("nft has no standard input")?;
        std::io::Write::write_all(&mut input, rules.as_bytes()).context("writing rules")?;
        drop(input);
        let done = nft.wait_with_output().context("waiting for nft")?;
        if !done.status.success() {
            bail!(
                "nft refuses:\n{rules}\n{}",
                String::from_utf8_lossy(&done.stderr).trim()
            );
        }
        self.rules = rules;
        Ok(())
    }
}

/// The machines of a load balancer that exist.
fn members<'a>(balancer: &'a LoadBalancer, machines: &'a [Machine]) -> impl Iterator<Item = &'a Machine> {
    let targets: BTreeSet<&String> = balancer.spec.targets.iter().collect();
    machines.iter().filter(move |machine| targets.contains(&machine.id))
}

fn ip(machine: &Machine) -> &str {
    machine
        .addresses
        .first()
        .map(|address| address.ip.as_str())
        .unwrap_or_default()
}

/// Where a member is asked for its health.
fn check_address(balancer: &LoadBalancer, machine: &Machine) -> String {
    let port = balancer.spec.health_check_port.unwrap_or(PROXY_HEALTH);
    format!("{}:{port}", ip(machine))
}

/// The table of all load balancers, in one piece, so that the kernel takes it at once.
fn rules(state: &State, is_healthy: impl Fn(&str) -> bool) -> String {
    let (mut chains, mut jumps) = (String::new(), String::new());
    for balancer in &state.load_balancers {
        let Some(address) = &balancer.address else { continue };
        let healthy =
            members(balancer, &state.machines).filter(|machine| is_healthy(&check_address(balancer, machine)));
        let healthy: Vec<&str> = healthy.map(ip).collect();
        if healthy.is_empty() {
            // Nothing has this address then, and the client gets an error at once.
            continue;
        }
        let sources = match balancer.spec.source_ranges.as_slice() {
            [] => String::new(),
            ranges => format!("ip saddr {{ {} }} ", ranges.join(", ")),
        };
        let choice = match balancer.spec.affinity_seconds {
            Some(_) => "jhash ip saddr",
            None => "numgen inc",
        };
        for port in &balancer.spec.ports {
            let protocol = match port.protocol {
                PortProtocol::Tcp => "tcp",
                PortProtocol::Udp => "udp",
            };
            let name = format!("{}-{protocol}-{}", balancer.id, port.port).replace('-', "_");
            let mut map = Vec::new();
            for (at, member) in healthy.iter().enumerate() {
                // Writing into a string does not fail.
                let _ = writeln!(
                    chains,
                    " chain {name}_{at} {{ meta l4proto {protocol} dnat to {member}:{} ; }}",
                    port.node_port
                );
                map.push(format!("{at} : goto {name}_{at}"));
            }
            let _ = writeln!(
                jumps,
                "  {sources}ip daddr {address} {protocol} dport {} {choice} mod {} vmap {{ {} }}",
                port.port,
                healthy.len(),
                map.join(", ")
            );
        }
    }
    // Made, so that there is one to remove, and made again.
    format!(
        "table ip balancers\ndelete table ip balancers\ntable ip balancers {{\n{chains} chain prerouting {{\n  \
         type nat hook prerouting priority dstnat ;\n{jumps} }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state() -> State {
        let machine = |id: &str, ip: &str| {
            json!({ "id": id, "name": id, "type": "small", "zone": "z", "region": "r", "state": "running",
                "addresses": [{ "network": "private", "ip": ip }], "labels": {} })
        };
        let balancer = json!({ "id": "lb-1", "state": "active", "address": "198.51.100.1", "spec": {
            "name": "a", "cluster": "c", "scheme": "public", "targets": ["vm-1", "vm-2", "vm-9"],
            "ports": [{ "protocol": "tcp", "port": 80, "nodePort": 30080 }],
            "sourceRanges": ["192.0.2.0/24"], "healthCheckPort": 30999,
        }});
        serde_json::from_value(json!({
            "machines": [machine("vm-1", "10.99.0.11"), machine("vm-2", "10.99.0.12"), machine("vm-3", "10.99.0.13")],
            "loadBalancers": [balancer],
            "routes": [],
            "disks": [],
            "snapshots": [],
        }))
        .unwrap()
    }

    #[test]
    fn connections_take_turns_between_healthy_members() {
        let text = rules(&state(), |_| true);
        assert!(
            text.contains("chain lb_1_tcp_80_0 { meta l4proto tcp dnat to 10.99.0.11:30080 ; }"),
            "{text}"
        );
        let rule = "ip saddr { 192.0.2.0/24 } ip daddr 198.51.100.1 tcp dport 80 numgen inc mod 2 \
                    vmap { 0 : goto lb_1_tcp_80_0, 1 : goto lb_1_tcp_80_1 }";
        assert!(text.contains(rule), "{text}");
        assert!(!text.contains("10.99.0.13"), "not a member: {text}");
    }

    #[test]
    fn an_unhealthy_member_gets_no_connection() {
        let text = rules(&state(), |member| member == "10.99.0.12:30999");
        assert!(text.contains("mod 1 vmap") && !text.contains("10.99.0.11"), "{text}");
    }

    #[test]
    fn without_healthy_members_nothing_is_forwarded() {
        let text = rules(&state(), |_| false);
        assert!(!text.contains("198.51.100.1"), "{text}");
    }
}
