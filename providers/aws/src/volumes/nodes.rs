//! Instances as the node plugin needs them: id, zone, and how many volumes it takes.
//!
//! As upstream counts (`node.go`, `getVolumesLimit`), with the numbers of `DescribeInstanceTypes` in place of a table: what the type can attach, less the
//! machine's own disks, and less its network interfaces where they share the slots.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::lookup::{Key, Machines as _};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::instances::by_id::Found;
use crate::instances::machine::Machine;
use crate::instances::machine_id;
use crate::volumes::ZONE_KEYS;
use crate::volumes::disk::devices::is_of_a_pod;
use crate::volumes::disk::number;

/// How long the numbers of a type are cached.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// What an instance on Nitro takes where AWS does not report it (EBS User Guide, "Amazon EBS volume limits for Amazon EC2 instances").
const USUAL: Limit = Limit { most: 27, shared: true };

/// What one on Xen takes, where interfaces have slots of their own. AWS documents 40, and Linux may not start with as many.
const XEN: Limit = Limit {
    most: 39,
    shared: false,
};

/// How many volumes instances of a type take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    most: u32,
    /// Whether network interfaces take the same slots.
    shared: bool,
}

impl Limit {
    /// Reads an item of `DescribeInstanceTypes`.
    fn read(item: &Element) -> Self {
        if item.text("hypervisor") == Some("xen") {
            return XEN;
        }
        let Some(info) = item.child("ebsInfo") else {
            return USUAL;
        };
        let most = number(info, "maximumEbsAttachments").and_then(|most| u32::try_from(most).ok());
        Self {
            most: most.unwrap_or(USUAL.most),
            shared: info.text("attachmentLimitType") != Some("dedicated"),
        }
    }

    /// How many volumes of Pods this machine takes. Never none, which Kubernetes takes for no limit.
    fn of(self, machine: &Machine) -> u32 {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let own = machine.devices.iter().filter(|name| !is_of_a_pod(name)).count();
        // The root disk is there even if it is not described.
        let mut taken = count(own.max(1));
        if self.shared {
            // The first interface is counted in the type's number.
            taken = taken.saturating_add(count(machine.interfaces.len().saturating_sub(1)));
        }
        self.most.saturating_sub(taken).max(1)
    }
}

impl Aws {
    pub(super) fn nodes_for_volumes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let ids = self.instances_of(nodes)?;
        let asked: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
        let machines = self.find_by_ids(&asked)?;
        let found = ids.into_iter().map(|id| {
            let id = id?;
            match machines.get(&id) {
                Some(Found::Machine(machine)) => Ok(machine.as_ref()),
                Some(Found::Failed(failure)) => Err(failure.clone()),
                Some(Found::Gone) | None => Err(Failure::not_found(format!("there is no instance {id}"))),
            }
        });
        let found: Each<&Machine> = found.collect();
        let limits = self.limits(
            &found
                .iter()
                .flatten()
                .map(|machine| machine.kind.as_str())
                .collect::<Vec<_>>(),
        )?;
        let node = |machine: Result<&Machine, Failure>| {
            let machine = machine?;
            let limit = limits.get(&machine.kind).copied().unwrap_or(USUAL);
            Ok(VolumeNode {
                id: machine.id.clone(),
                topology: Topology {
                    segments: ZONE_KEYS
                        .iter()
                        .map(|key| Pair::new(*key, machine.zone.as_str()))
                        .collect(),
                },
                max_volumes: Some(limit.of(machine)),
            })
        };
        Ok(found.into_iter().map(node).collect())
    }

    /// The instance of each Node; those that are known by name are looked up.
    fn instances_of(&self, nodes: &[NodeRef]) -> Result<Each<String>, Failure> {
        let keys: Vec<_> = nodes.iter().map(|node| self.key(node)).collect();
        let is_named = |key: &Result<Key<'_>, Failure>| matches!(key, Ok(Key::Name(_)));
        let named: Vec<NodeRef> = nodes
            .iter()
            .zip(&keys)
            .filter(|(_, key)| is_named(key))
            .map(|(node, _)| node.clone())
            .collect();
        let looked_up = match named.is_empty() {
            true => Vec::new(),
            false => self.lookup(&named)?,
        };
        let mut looked_up = looked_up.into_iter();
        let one = |(node, key): (&NodeRef, Result<Key<'_>, Failure>)| {
            let missing = || Failure::not_found(format!("Node {} has no instance", node.name));
            let id = match key? {
                Key::Id(id) => id.to_owned(),
                Key::Name(_) => match looked_up.next().ok_or_else(missing)?? {
                    Presence::Running(instance) | Presence::Stopped(instance) => {
                        machine_id(&instance.provider_id).ok_or_else(missing)?.to_owned()
                    }
                    Presence::Absent(_) => return Err(missing()),
                },
            };
            if !id.starts_with(crate::BARE_ID_PREFIX) {
                return Err(Failure::not_found(format!(
                    "{id} is no instance of EC2, and takes no volumes"
                )));
            }
            Ok(id)
        };
        Ok(nodes.iter().zip(keys).map(one).collect())
    }

    /// What these types take. Those that may not be requested from AWS are left out.
    fn limits(&self, kinds: &[&str]) -> Result<BTreeMap<String, Limit>, Failure> {
        let state = self.context.state();
        let mut limits = BTreeMap::new();
        let mut unknown: Vec<&str> = Vec::new();
        for kind in kinds {
            match state.get::<(u32, bool)>(&key(kind)) {
                Some(kept) => {
                    let (most, shared) = kept.value;
                    limits.insert((*kind).to_owned(), Limit { most, shared });
                }
                None if !unknown.contains(kind) => unknown.push(kind),
                None => {}
            }
        }
        if unknown.is_empty() {
            return Ok(limits);
        }
        // By a filter, since AWS would refuse all of them for one unknown type.
        let call = self.api.ec2("DescribeInstanceTypes").filter("instance-type", &unknown);
        let read = |item: &Element| Ok((crate::api::reading::text(item, "instanceType"), Limit::read(item)));
        let told = match call.pages(&["instanceTypeSet"], read) {
            Err(error) if *error.kind() == FailureKind::Denied => {
                warn!(
                    "how many volumes an instance takes is not known, and taken for 27: the policy lacks ec2:DescribeInstanceTypes"
                );
                return Ok(limits);
            }
            told => told?,
        };
        for (kind, limit) in told {
            state.put(&key(&kind), &(limit.most, limit.shared), Keep::at_most(KEPT));
            limits.insert(kind, limit);
        }
        Ok(limits)
    }
}

fn key(kind: &str) -> String {
    format!("volume-limit/{kind}")
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::recorded;

    use super::*;
    use crate::instances::machine::NetworkInterface;

    fn machine(devices: &[&str], interfaces: usize) -> Machine {
        Machine {
            devices: devices.iter().map(|name| (*name).to_owned()).collect(),
            interfaces: (0..interfaces).map(|_| NetworkInterface::default()).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn numbers_of_types_are_those_of_aws() {
        let answer = Element::parse(recorded(include_str!(
            "../../recorded/volumes/describe_instance_types.xml"
        )))
        .unwrap();
        let read = answer.all(&["instanceTypeSet", "item"]);
        let mut read: Vec<_> = read
            .map(|item| (item.text("instanceType").unwrap().to_owned(), Limit::read(item)))
            .collect();
        read.sort_by(|one, other| one.0.cmp(&other.0));
        let limit = |most, shared| Limit { most, shared };
        let expected = [
            ("c5d.24xlarge", limit(23, true)),
            ("m5.metal", limit(31, true)),
            ("m7i.48xlarge", limit(128, false)),
            ("t2.micro", XEN),
            ("t3.small", limit(27, true)),
        ];
        assert_eq!(read, expected.map(|(name, limit)| (name.to_owned(), limit)));
    }

    #[test]
    fn machines_own_disks_and_interfaces_take_slots() {
        for (limit, devices, interfaces, expected) in [
            (USUAL, &["/dev/xvda"][..], 1, 26),
            (USUAL, &["/dev/xvda", "/dev/xvdaa", "/dev/xvdab"], 1, 26),
            (USUAL, &["/dev/xvda", "/dev/sdb"], 3, 23),
            (USUAL, &[], 0, 26),
            (XEN, &["/dev/sda1"], 4, 38),
            (USUAL, &["/dev/xvda"], 40, 1),
        ] {
            assert_eq!(
                limit.of(&machine(devices, interfaces)),
                expected,
                "{devices:?} {interfaces}"
            );
        }
    }
}
