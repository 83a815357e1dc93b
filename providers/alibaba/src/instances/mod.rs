//! Instances behind Nodes: by id, a hundred in a request; by private address or name where a Node has no provider id yet.

pub mod machine;

use std::net::IpAddr;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::lookup::{Answers, Batch, Existing, Found, Id, Key, Machines, Name, ask_together_where_any};
use cloudwit_guest_sdk::prelude::*;

use crate::api::{Call, ECS, Paging};
use crate::{Alibaba, instance_id, provider_id};
use machine::Machine;

/// Ids and addresses in a request: the most that ECS takes.
const BATCH: usize = 100;

/// So many instances are requested one by one by their names.
const FEW: usize = 3;

impl Machines for Alibaba {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let region = self.global().region();
        let whose = format!("an instance in {region}");
        let example = provider_id(region, "i-bp67acfmxazb4p");
        Key::read(node, |id| instance_id(id, region), &whose, &example)
    }

    fn batch(&self) -> Batch {
        Batch {
            ids: BATCH,
            ..Batch::default()
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let nothing = "no instance at all is seen; is this the right region and access key?";
        let ask = |ids: &[&str]| self.instances(ids);
        let any = || self.sees_any();
        ask_together_where_any(ids, answers, ask, |machine| &machine.instance_id, any, nothing)
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let region = self.global().region();
        let (mut ips, mut ids, mut by_name) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            match Sought::of(name, region) {
                Sought::Ips(found) => ips.extend(found.into_iter().map(|ip| (ip, name.name))),
                Sought::Id(id) => ids.push((id, name.name)),
                Sought::Name => by_name.push(name.name),
            }
        }
        self.by_machine_names(&by_name, answers)?;
        for some in ips.chunks(BATCH) {
            let texts: Vec<String> = some.iter().map(|(ip, _)| ip.to_string()).collect();
            let call = describe()
                .field("InstanceNetworkType", "vpc")
                .field("PrivateIpAddresses", json_list(&texts))
                .opt("VpcId", given(&self.global().vpcid));
            for machine in self.machines(&call)? {
                let own: Vec<IpAddr> = machine.private().filter_map(|ip| ip.parse().ok()).collect();
                if let Some((_, name)) = some.iter().find(|(ip, _)| own.contains(ip)) {
                    answers.found(Key::Name(name), machine);
                }
            }
        }
        for some in ids.chunks(BATCH) {
            let texts: Vec<&str> = some.iter().map(|(id, _)| *id).collect();
            for machine in self.instances(&texts)? {
                if let Some((_, name)) = some.iter().find(|(id, _)| *id == machine.instance_id) {
                    answers.found(Key::Name(name), machine);
                }
            }
        }
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        machine.instance_id.clone()
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        Ok(found.iter().map(|found| found.machine.existing()).collect())
    }
}

/// By what the instance of a Node without a provider id is looked up.
#[derive(Debug, PartialEq, Eq)]
enum Sought<'n> {
    Ips(Vec<IpAddr>),
    Id(&'n str),
    Name,
}

impl<'n> Sought<'n> {
    /// Upstream looks Nodes up by private address. Nodes without a known one are often named after it, `REGION.ADDRESS`.
    fn of(name: &Name<'n>, region: &str) -> Self {
        let addresses = name.node.addresses.iter();
        let internal = addresses.filter(|address| address.kind == AddressKind::InternalIp);
        let ips = internal.filter_map(|address| address.value.parse().ok());
        let ips: Vec<IpAddr> = ips.filter(IpAddr::is_ipv4).collect();
        if !ips.is_empty() {
            return Self::Ips(ips);
        }
        let behind = name.name.strip_prefix(region);
        let short = behind.and_then(|rest| rest.strip_prefix('.')).unwrap_or(name.name);
        match short.parse::<IpAddr>() {
            Ok(ip) => Self::Ips(vec![ip]),
            Err(_) if short.starts_with("i-") => Self::Id(short),
            Err(_) => Self::Name,
        }
    }
}

impl Alibaba {
    /// Those of these ids, at most a hundred, that there are.
    pub(crate) fn instances(&self, ids: &[&str]) -> Result<Vec<Machine>, Failure> {
        self.machines(&describe().field("InstanceIds", json_list(ids)))
    }

    fn machines(&self, call: &Call) -> Result<Vec<Machine>, Failure> {
        self.api.list(call, Paging::Token("MaxResults"), "Instances.Instance")
    }

    /// The filter by name takes one: few are requested one by one, more are taken from a list of all.
    fn by_machine_names(&self, names: &[&str], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        let all = describe().opt("VpcId", given(&self.global().vpcid));
        let calls: Vec<Call> = match names.len() {
            0..=FEW => names
                .iter()
                .map(|name| all.clone().field("InstanceName", name))
                .collect(),
            _ => vec![all],
        };
        for call in calls {
            for machine in self.machines(&call)? {
                // A star in a requested name would match more.
                if let Some(name) = names.iter().find(|name| machine.instance_name == **name) {
                    answers.found(Key::Name(name), machine);
                }
            }
        }
        Ok(())
    }

    /// Whether there is any instance.
    fn sees_any(&self) -> Result<bool, Failure> {
        let answer: serde_json::Value = self.api.send(&describe().field("MaxResults", 10))?;
        let found = answer["Instances"]["Instance"].as_array();
        Ok(found.is_some_and(|found| !found.is_empty()))
    }
}

fn describe() -> Call {
    Call::new(ECS, "DescribeInstances").list("AdditionalAttributes", ["NETWORK_PRIMARY_ENI_IP"])
}

fn json_list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    serde_json::json!(texts).to_string()
}

#[cfg(test)]
mod tests;
