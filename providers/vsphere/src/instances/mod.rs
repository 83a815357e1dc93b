//! Machines behind Nodes, over all vCenters.
//!
//! Each vCenter is queried for what the ones before did not have. One that cannot be queried is no reason to fail for machines of the
//! others, and never a reason to call a machine absent: it may be there.

pub mod addresses;
pub mod guest_os;
pub(crate) mod inventory;
pub mod machine;
pub mod metadata;
pub mod presence;
pub(crate) mod remembered;
pub mod uuid;
pub mod zones;

use std::time::Duration;

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::types::id_after;

use crate::Vsphere;
use crate::config::settings::VCenterSettings;
use crate::instances::inventory::{Inventory, Want};
use crate::instances::machine::Machine;
use crate::instances::presence::{Circumstances, presence};
use crate::instances::remembered::Remembered;
use crate::instances::uuid::Uuid;
use crate::instances::zones::{Zone, Zones};
use crate::vcenter::session::Sessions;
use crate::vcenter::tags::Tags;

/// How all provider ids begin. MUST NOT change: they are written into every Node.
pub const PREFIX: &str = "vsphere://";

/// A vCenter that does not answer is left alone for so long where there are others, so that waiting for it does not use up their time.
const AFTER_SILENCE: Duration = Duration::from_secs(20);

/// A machine, and the place of its vCenter in the configuration.
pub struct Located {
    vcenter: usize,
    machine: Machine,
}

impl Machines for Vsphere {
    type Machine = Located;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let Some(provider_id) = &node.provider_id else {
            return Ok(Key::Name(&node.name));
        };
        let id = id_after(PREFIX, provider_id).filter(|id| Uuid::parse(id).is_some());
        id.map(Key::Id).ok_or_else(|| {
            Failure::invalid(format!(
                "the provider id {provider_id} is not {PREFIX} and the BIOS UUID of a machine"
            ))
        })
    }

    /// One read of an inventory answers for ids and names.
    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Located>) -> Result<(), Failure> {
        let ids = wanted.ids.iter().filter_map(|id| {
            let uuid = Uuid::parse(id.as_str())?;
            Some((Key::Id(id.as_str()), Want::Id(uuid)))
        });
        let names = wanted.names.iter().map(|name| {
            let want = Want::Name {
                system: name.node.system_uuid.as_deref().and_then(Uuid::parse),
                name: name.name.into(),
            };
            (Key::Name(name.name), want)
        });
        let wants: Vec<(Key<'_>, Want)> = ids.chain(names).collect();
        for (place, vcenter) in self.settings.vcenters.iter().enumerate() {
            // An id is found once; a name could be two machines'.
            let open = wants
                .iter()
                .filter(|(key, _)| matches!(key, Key::Name(_)) || !answers.has(*key));
            let (keys, open): (Vec<Key<'_>>, Vec<&Want>) = open.map(|(key, want)| (*key, want)).unzip();
            if open.is_empty() {
                continue;
            }
            let found = self.unless_silent(vcenter, || self.inventory(vcenter).find(&open));
            let found = found.unwrap_or_else(|failure| vec![Err(failure); keys.len()]);
            for (key, found) in keys.into_iter().zip(found) {
                match found {
                    Ok(machines) => {
                        for machine in machines {
                            let vcenter = place;
                            answers.found(key, Located { vcenter, machine });
                        }
                    }
                    Err(failure) => answers.failed(key, named(vcenter, failure)),
                }
            }
        }
        for id in &wanted.ids {
            match self.settings.skip_node_deletion {
                true => answers.failed(Key::Id(id.as_str()), kept(id)),
                // That a vCenter failed counts before this.
                false => answers.denied(*id),
            }
        }
        Ok(())
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Located>) -> Result<(), Failure> {
        self.find(
            &Wanted {
                ids: ids.into(),
                names: vec![],
            },
            answers,
        )
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Located>) -> Result<(), Failure> {
        self.find(
            &Wanted {
                ids: vec![],
                names: names.into(),
            },
            answers,
        )
    }

    fn label(&self, located: &Located) -> String {
        located.machine.name.clone()
    }

    fn describe(&self, found: &[Found<'_, Located>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let mut described: Vec<Result<Existing, Failure>> = Vec::new();
        let of = |place| found.iter().filter(move |found| found.machine.vcenter == place);
        let mut zones: Vec<_> = self
            .settings
            .vcenters
            .iter()
            .enumerate()
            .map(|(place, vcenter)| {
                let machines: Vec<&Machine> = of(place).map(|found| &found.machine.machine).collect();
                self.zones(vcenter, &machines).into_iter()
            })
            .collect();
        for Found { node, machine: located } in found {
            let (Some(vcenter), Some(zones)) = (
                self.settings.vcenters.get(located.vcenter),
                zones.get_mut(located.vcenter),
            ) else {
                continue;
            };
            let circumstances = Circumstances {
                provider_id: node.provider_id.as_deref(),
                rules: &self.settings.addresses,
                families: &vcenter.families,
                labels: &self.settings.node_labels,
            };
            let told = presence(&located.machine, &circumstances, zones.next().unwrap_or(Ok(None)));
            described.push(told.map_err(|failure| named(vcenter, failure)));
        }
        Ok(described)
    }
}

impl Vsphere {
    /// The zones of these machines of one vCenter, in their order.
    fn zones(&self, vcenter: &VCenterSettings, machines: &[&Machine]) -> Vec<Result<Option<Zone>, Failure>> {
        let Some(categories) = &self.settings.categories else {
            return machines.iter().map(|_| Ok(None)).collect();
        };
        if machines.is_empty() {
            return Vec::new();
        }
        let sessions = Sessions::new(vcenter, self.context);
        let zones = Zones {
            sessions: &sessions,
            tags: Tags::new(vcenter, self.context),
            categories,
            context: self.context,
            vcenter: &vcenter.name,
        };
        zones.of(machines).into_iter().map(|zone| zone.map(Some)).collect()
    }

    pub(crate) fn inventory<'a>(&self, vcenter: &'a VCenterSettings) -> Inventory<'a> {
        Inventory {
            sessions: Sessions::new(vcenter, self.context),
            remembered: Remembered::new(self.context.state(), &vcenter.name),
            limited: !vcenter.datacenters.is_empty(),
        }
    }

    /// Does something with a vCenter, unless it did not answer a moment ago and there are others.
    pub(crate) fn unless_silent<T>(
        &self,
        vcenter: &VCenterSettings,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (key, state) = (format!("silent/{}", vcenter.name), self.context.state());
        if let Some(stored) = state.get::<String>(&key) {
            return Err(Failure::unavailable(stored.value));
        }
        let done = work();
        if let (
            Err(Failure {
                kind: FailureKind::Unavailable,
                message: text,
                ..
            }),
            true,
        ) = (&done, self.settings.vcenters.len() > 1)
        {
            state.put(&key, text, Keep::at_most(AFTER_SILENCE));
        }
        done
    }
}

fn kept(id: &Id<'_>) -> Failure {
    Failure::not_found(format!(
        "no vCenter has the machine {}; its Node stays, because of global.skipNodeDeletion",
        id.as_str()
    ))
}

/// The failure with the vCenter's name before it.
pub(crate) fn named(vcenter: &VCenterSettings, failure: Failure) -> Failure {
    failure.context(&format!("vCenter {}", vcenter.name))
}
