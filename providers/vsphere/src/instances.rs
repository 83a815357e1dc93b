//! Machines behind Nodes, over all vCenters.
//!
//! One vCenter after the other is asked for what the ones before did not have. One that cannot be asked is no reason to fail for machines of the
//! others, and never a reason to call a machine absent: it may be there.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::types::id_after;

use crate::Vsphere;
use crate::inventory::{Found, Inventory, Want};
use crate::machine::Machine;
use crate::presence::{Circumstances, presence};
use crate::remembered::Remembered;
use crate::session::Sessions;
use crate::settings::VCenterSettings;
use crate::tags::Tags;
use crate::uuid::Uuid;
use crate::zones::{Zone, Zones};

/// How all provider ids begin. MUST NOT change: they are written into every Node.
pub const PREFIX: &str = "vsphere://";

/// A vCenter that does not answer is left alone for so long where there are others, so that waiting for it does not use up their time.
const AFTER_SILENCE: Duration = Duration::from_secs(20);

/// What was found out about one Node.
#[derive(Default)]
struct Report {
    /// Machines, and what each vCenter made of them.
    told: Vec<(Machine, Result<Presence, Failure>)>,
    /// Why some vCenter could not say.
    failures: Vec<Failure>,
}

impl Instances for Vsphere {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        let wants: Vec<Result<Want, Failure>> = nodes.iter().map(want).collect();
        let mut reports: Vec<Report> = nodes.iter().map(|_| Report::default()).collect();
        for vcenter in &self.settings.vcenters {
            let open: Vec<usize> = (0..nodes.len())
                .filter(|at| match (wants.get(*at), reports.get(*at)) {
                    // An id is found once; a name could be two machines'.
                    (Some(Ok(Want::Id(_))), Some(report)) => report.told.is_empty(),
                    (Some(Ok(Want::Name { .. })), Some(_)) => true,
                    _ => false,
                })
                .collect();
            if !open.is_empty() {
                self.ask(vcenter, nodes, &wants, &open, &mut reports);
            }
        }
        Ok(wants
            .into_iter()
            .zip(reports)
            .map(|(want, report)| self.conclude(want?, report))
            .collect())
    }
}

impl Vsphere {
    /// Asks one vCenter for the Nodes at these places.
    fn ask(
        &self,
        vcenter: &VCenterSettings,
        nodes: &[NodeRef],
        wants: &[Result<Want, Failure>],
        open: &[usize],
        reports: &mut [Report],
    ) {
        let asked: Vec<&Want> = open.iter().filter_map(|at| wants.get(*at)?.as_ref().ok()).collect();
        let found = self.unless_silent(vcenter, || self.inventory(vcenter).find(&asked));
        let found = match found {
            Ok(found) => found,
            Err(failure) => {
                let failure = named(vcenter, failure);
                for at in open {
                    if let Some(report) = reports.get_mut(*at) {
                        report.failures.push(failure.clone());
                    }
                }
                return;
            }
        };
        let zones = self.zones(vcenter, &found);
        let mut zones = zones.into_iter();
        for (at, found) in open.iter().zip(found) {
            let (Some(report), Some(node)) = (reports.get_mut(*at), nodes.get(*at)) else {
                continue;
            };
            match found {
                Err(failure) => report.failures.push(named(vcenter, failure)),
                Ok(machines) => {
                    for machine in machines {
                        let zone = zones.next().unwrap_or(Ok(None));
                        let circumstances = Circumstances {
                            provider_id: node.provider_id.as_deref(),
                            rules: &self.settings.addresses,
                            families: &vcenter.families,
                            labels: &self.settings.node_labels,
                        };
                        let told = presence(&machine, &circumstances, zone);
                        report
                            .told
                            .push((machine, told.map_err(|failure| named(vcenter, failure))));
                    }
                }
            }
        }
    }

    /// The zones of all machines that were found, in their order.
    fn zones(&self, vcenter: &VCenterSettings, found: &[Found]) -> Vec<Result<Option<Zone>, Failure>> {
        let machines: Vec<&Machine> = found.iter().filter_map(|found| found.as_ref().ok()).flatten().collect();
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
        zones.of(&machines).into_iter().map(|zone| zone.map(Some)).collect()
    }

    fn inventory<'a>(&self, vcenter: &'a VCenterSettings) -> Inventory<'a> {
        Inventory {
            sessions: Sessions::new(vcenter, self.context),
            remembered: Remembered::new(self.context.state(), &vcenter.name),
            limited: !vcenter.datacenters.is_empty(),
        }
    }

    /// Does something with a vCenter, unless it did not answer a moment ago and there are others to ask.
    fn unless_silent<T>(
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

    /// What all vCenters together say about one Node.
    fn conclude(&self, want: Want, report: Report) -> Result<Presence, Failure> {
        let Report { mut told, failures } = report;
        if told.len() > 1 {
            let names: Vec<&str> = told.iter().map(|(machine, _)| machine.name.as_str()).collect();
            return Err(Failure::invalid(format!(
                "several machines fit this Node: {}; rename the guests of all but one, or set the Node's provider id",
                names.join(", ")
            )));
        }
        if let Some((_, presence)) = told.pop() {
            return presence;
        }
        if let Some(failure) = failures.into_iter().next() {
            return Err(failure);
        }
        match want {
            Want::Name { .. } => Ok(Presence::Absent(Evidence::ByName)),
            Want::Id(uuid) if self.settings.skip_node_deletion => Err(Failure::not_found(format!(
                "no vCenter has the machine {uuid}; its Node stays, because of global.skipNodeDeletion"
            ))),
            Want::Id(_) => Ok(Presence::Absent(Evidence::ById)),
        }
    }
}

/// How the machine of a Node is found.
fn want(node: &NodeRef) -> Result<Want, Failure> {
    let Some(provider_id) = &node.provider_id else {
        return Ok(Want::Name {
            system: node.system_uuid.as_deref().and_then(Uuid::parse),
            name: node.name.clone(),
        });
    };
    let uuid = id_after(PREFIX, provider_id).and_then(Uuid::parse);
    uuid.map(Want::Id).ok_or_else(|| {
        Failure::invalid(format!(
            "the provider id {provider_id} is not {PREFIX} and the BIOS UUID of a machine"
        ))
    })
}

/// The failure with the vCenter's name before it.
fn named(vcenter: &VCenterSettings, failure: Failure) -> Failure {
    failure.context(&format!("vCenter {}", vcenter.name))
}
