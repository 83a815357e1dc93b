//! Disks leave machines.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::volumes::*;

use super::machine::DiskMachine;
use super::{add_to, later, waits};
use crate::Azure;
use crate::arm::COMPUTE;
use crate::instances::Machine;
use crate::volumes::disk::find::Disks;
use crate::volumes::names::is_of;

impl Azure {
    pub(in crate::volumes) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let mut brake = Brake::new(self.context, later);
        let doing = |one: &Detachment| format!("detaching {} from {}", one.volume, one.node_id);
        let tokens = detachments.iter().map(|one| (one.token.as_deref(), doing(one)));
        let mut results = self.operations(tokens, &mut brake);
        let disks = self.disks(detachments.iter().map(|one| one.volume.as_str()))?;
        let ids = self.machine_ids(detachments.iter().map(|one| one.node_id.as_str()))?;
        let mut machines: Vec<(String, Vec<usize>)> = Vec::new();
        for (at, (unwanted, result)) in detachments.iter().zip(&mut results).enumerate() {
            if result.is_err() {
                continue;
            }
            let id = match ids.get(unwanted.node_id.as_str()) {
                Some(id) => Ok(Some(id.clone())),
                None => brake.run(|| self.holder(&disks, unwanted)),
            };
            match id {
                Ok(Some(id)) => add_to(&mut machines, &id, at),
                // Without a machine nothing is attached to it.
                Ok(None) => {}
                Err(failure) => *result = Err(failure),
            }
        }
        for (id, places) in machines {
            let machine = brake.run(|| self.disk_machine(&id));
            let volumes: Vec<&str> = places
                .iter()
                .filter_map(|at| Some(detachments.get(*at)?.volume.as_str()))
                .collect();
            let outcomes = match machine {
                Ok(Some(machine)) => self.detach_from(machine, &volumes, &disks, &mut brake),
                // The machine is gone; Azure takes a moment until its disks are free.
                Ok(None) => volumes.iter().map(|volume| is_free(&disks, volume, &id)).collect(),
                Err(failure) => volumes.iter().map(|_| Err(failure.clone())).collect(),
            };
            for (at, outcome) in places.into_iter().zip(outcomes) {
                if let Some(result) = results.get_mut(at) {
                    *result = outcome;
                }
            }
        }
        Ok(results)
    }

    /// Detaches disks from one machine, with one write; the outcomes in their order.
    fn detach_from(&self, machine: DiskMachine, volumes: &[&str], disks: &Disks, brake: &mut Brake) -> Each<()> {
        let here = |volume: &&&str| machine.disk(volume).is_some_and(|disk| !disk.is_leaving);
        let leaving: Vec<&str> = volumes.iter().filter(here).copied().collect();
        let written = match leaving.is_empty() {
            true => Ok(()),
            false if machine.is_changing() => Err(waits(format!("waits for another change of {}", machine.id))),
            false => {
                let mut written = machine.clone();
                written.remove(&leaving, self.config.is_stack());
                let doing = format!("detaching {} disks from {}", leaving.len(), machine.id);
                brake.run(|| self.write_disks(&written, &doing))
            }
        };
        let one = |volume: &&str| match machine.disk(volume) {
            Some(disk) if disk.is_leaving => Err(waits(format!("{volume} is being detached from {}", machine.id))),
            Some(_) => written.clone(),
            None => is_free(disks, volume, &machine.id),
        };
        volumes.iter().map(one).collect()
    }

    /// The machine of a Node that neither the cluster nor the list of machines has, where the disk is attached to it.
    ///
    /// # Errors
    /// `pending` where the disk is attached to a machine that is gone; the cloud's error.
    fn holder(&self, disks: &Disks, unwanted: &Detachment) -> Result<Option<String>, Failure> {
        let Some(disk) = disks.get(&unwanted.volume)? else {
            return Ok(None);
        };
        for id in &disk.machines {
            let Some(value) = self.arm.find(id, COMPUTE, &[])? else {
                return Err(waits(format!("{} is still attached to {id}, which is gone", disk.id)));
            };
            if is_of(&Machine::read(&value)?, &unwanted.node_id) {
                return Ok(Some(id.clone()));
            }
        }
        Ok(None)
    }
}

/// Whether a disk can be attached elsewhere than to this machine, which does not have it in its list any more.
fn is_free(disks: &Disks, volume: &str, machine: &str) -> Result<(), Failure> {
    match disks.get(volume)? {
        Some(disk) if disk.is_at(machine) => Err(waits(format!("{volume} is still attached to {machine}"))),
        _ => Ok(()),
    }
}
