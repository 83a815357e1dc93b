//! Which Node is which machine: upstream's driver attaches disks to the names of Nodes, and Azure to ids of machines.
//!
//! The provider ids of the cluster's Nodes come first. What they lack (a Node that is gone, or no cluster at all) is taken from the list of the resource group's
//! machines.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

use crate::arm::ids::{folded, name};
use crate::instances::Machine;
use crate::volumes::disk::Disk;
use crate::{Azure, PROVIDER_ID_PREFIX};

/// Names of Nodes by ids of their machines in small letters.
#[derive(Debug, Default)]
pub(crate) struct NodeNames(BTreeMap<String, String>);

impl NodeNames {
    /// The name of the Node of a machine; that of the machine itself where there is no other.
    pub(crate) fn of(&self, machine: &str) -> String {
        let known = self.0.get(&folded(machine)).cloned();
        known.unwrap_or_else(|| name(machine).to_ascii_lowercase())
    }

    fn knows(&self, machine: &str) -> bool {
        self.0.contains_key(&folded(machine))
    }
}

/// Whether a machine is that of the Node of this name.
pub(crate) fn is_of(machine: &Machine, node: &str) -> bool {
    machine.name.eq_ignore_ascii_case(node) || machine.computer_name.eq_ignore_ascii_case(node)
}

impl Azure {
    /// Names of the Nodes that these disks are attached to.
    ///
    /// # Errors
    /// The cloud's error of a list of its machines, where that is needed.
    pub(crate) fn node_names<'d>(&self, disks: impl Iterator<Item = &'d Disk>) -> Result<NodeNames, Failure> {
        let machines: Vec<&String> = disks.flat_map(|disk| &disk.machines).collect();
        if machines.is_empty() {
            return Ok(NodeNames::default());
        }
        let by_id = self
            .cluster_machines()
            .into_iter()
            .map(|(node, id)| (folded(&id), node));
        let mut names = NodeNames(by_id.collect());
        if !machines.iter().all(|machine| names.knows(machine)) {
            for machine in self.listed_machines()? {
                let own = Some(machine.computer_name).filter(|name| !name.is_empty());
                let own = own.unwrap_or_else(|| machine.name.to_ascii_lowercase());
                names.0.entry(folded(&machine.id)).or_insert(own);
            }
        }
        Ok(names)
    }

    /// Ids of the machines of the Nodes with these names. One without a machine has none.
    ///
    /// # Errors
    /// The cloud's error of a list of its machines, where that is needed.
    pub(crate) fn machine_ids<'n>(
        &self,
        nodes: impl Iterator<Item = &'n str>,
    ) -> Result<BTreeMap<&'n str, String>, Failure> {
        let known = self.cluster_machines();
        let mut ids = BTreeMap::new();
        let mut unknown = Vec::new();
        for node in nodes {
            match known.get(node) {
                Some(id) => drop(ids.insert(node, id.clone())),
                None => unknown.push(node),
            }
        }
        if !unknown.is_empty() {
            let listed = self.listed_machines()?;
            for node in unknown {
                let found = listed.iter().find(|machine| is_of(machine, node));
                ids.extend(found.map(|machine| (node, machine.id.clone())));
            }
        }
        Ok(ids)
    }

    /// Ids of machines by the names of the cluster's Nodes; none where the view of them is not granted.
    fn cluster_machines(&self) -> BTreeMap<String, String> {
        let nodes = self.context.nodes().unwrap_or_default().into_iter();
        let with_id = nodes.filter_map(|node| {
            let id = id_after(PROVIDER_ID_PREFIX, node.ref_.provider_id.as_deref()?)?.to_owned();
            Some((node.ref_.name, id))
        });
        with_id.collect()
    }

    fn listed_machines(&self) -> Result<Vec<Machine>, Failure> {
        self.in_group(&self.config.group(&self.config.resource_group))
    }
}
