//! Volumes come to machines and leave them: a task for each machine, with all of its volumes.
//!
//! ```text
//!   tasks of tokens, one read -> the machines with their disks, one read -> CnsAttachVolume or CnsDetachVolume for each machine    -> pending until its task is done
//! ```
//!
//! What is to be done about one is decided from what its machine has, so a lost token loses nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Vsphere;
use crate::vcenter::soap::Reference;
use crate::volumes::KIND;
use crate::volumes::cns::id_element;
use crate::volumes::cns::task::{TaskId, TaskState, Tasks};
use crate::volumes::cns::volume::is_id;
use crate::volumes::find::no_volume;
use crate::volumes::machines::{WithDisks, disk_uuid};

/// When changes without time left are continued.
const NEXT: Duration = Duration::from_millis(100);

/// How long a vCenter gets a task for each volume after it failed one with several as a whole: one of them was to blame, or it takes no lists.
const ALONE: Keep = Keep::at_most(Duration::from_secs(60));

fn later() -> Failure {
    Failure::pending(
        NEXT,
        "",
        "there were more volumes than fit into one call; the next one goes on",
    )
}

/// An attached volume for the plugins: upstream's reads `diskUUID`, ours the device's own World Wide Name (SCSI VPD page 83) or the link of udev's rules.
fn attached(uuid: &str) -> Result<Attached, Failure> {
    if uuid.is_empty() {
        return Err(Failure::other("the disk's UUID is not told"));
    }
    Ok(Attached {
        context: vec![Pair::new(KIND.0, KIND.1), Pair::new("diskUUID", uuid)],
        devices: vec![Device::Wwn(format!("0x{uuid}")), Device::ById(format!("wwn-0x{uuid}"))],
    })
}

/// A volume that comes to a machine or leaves it.
struct Move<'a> {
    volume: &'a str,
    node: &'a str,
    token: Option<&'a str>,
    doing: String,
}

/// Where it goes, in CNS's words: the method and its parameter.
type Way = (&'static str, &'static str);

/// What is to be done about one.
enum Step<T> {
    /// Nothing.
    Done(T),
    /// A task.
    Begin,
}

/// Decides about one, from its machine and from what its task failed with.
type Decide<'d, T> = dyn FnMut(&Move<'_>, Option<&WithDisks>, Option<Failure>) -> Result<Step<T>, Failure> + 'd;

/// What came of one; none while that is open.
type Settled<T> = Option<Result<T, Failure>>;

impl Vsphere {
    pub(super) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let moves = attachments.iter().map(|one| Move {
            volume: &one.volume,
            node: &one.node_id,
            token: one.token.as_deref(),
            doing: format!("attaching {} to {}", one.volume, one.node_id),
        });
        let limit = usize::try_from(self.settings.volumes.limit).unwrap_or(usize::MAX);
        // New ones of each machine.
        let mut coming: BTreeMap<String, usize> = BTreeMap::new();
        let mut decide = |one: &Move<'_>, machine: Option<&WithDisks>, failed: Option<Failure>| {
            let wanted = attachments
                .iter()
                .find(|wanted| wanted.node_id == one.node && wanted.volume == one.volume);
            if wanted.is_some_and(|wanted| wanted.read_only) {
                return Err(Failure::invalid("volumes are attached for reading and writing only"));
            }
            let here = machine.and_then(|machine| machine.disks.get(one.volume));
            match (here, failed) {
                (Some(uuid), _) => return attached(uuid).map(Step::Done),
                (None, Some(failure)) if failure.kind == FailureKind::FailedPrecondition => {
                    return Err(failure.context(&format!("{} is attached elsewhere", one.volume)));
                }
                (None, Some(failure)) => return Err(failure),
                (None, None) => {}
            }
            let machine = machine.ok_or_else(|| Failure::not_found(format!("there is no machine {}", one.node)))?;
            if !is_id(one.volume) {
                return Err(no_volume(one.volume));
            }
            let coming = coming.entry(one.node.to_owned()).or_default();
            if machine.disks.len().saturating_add(*coming) >= limit {
                let text = format!("machine {} has {limit} volumes, and no more fit", one.node);
                return Err(Failure::exhausted(text));
            }
            *coming += 1;
            Ok(Step::Begin)
        };
        let done = |result: &Element| attached(&disk_uuid(result.text("diskUUID").unwrap_or_default()));
        let way = ("CnsAttachVolume", "attachSpecs");
        self.run(way, &moves.collect::<Vec<_>>(), &done, &mut decide)
    }

    pub(super) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let moves = detachments.iter().map(|one| Move {
            volume: &one.volume,
            node: &one.node_id,
            token: one.token.as_deref(),
            doing: format!("detaching {} from {}", one.volume, one.node_id),
        });
        let mut decide = |one: &Move<'_>, machine: Option<&WithDisks>, failed: Option<Failure>| {
            let is_here = machine.is_some_and(|machine| machine.disks.contains_key(one.volume));
            match failed {
                // Whatever the answer of CNS: it is not there any more.
                _ if !is_here => Ok(Step::Done(())),
                Some(failure) => Err(failure),
                None => Ok(Step::Begin),
            }
        };
        let way = ("CnsDetachVolume", "detachSpecs");
        self.run(way, &moves.collect::<Vec<_>>(), &|_| Ok(()), &mut decide)
    }

    /// Tasks that are over are answered by `done`; for all others `decide` returns what to do, from the machine and from what the task failed with.
    fn run<T>(
        &self,
        way: Way,
        moves: &[Move<'_>],
        done: &dyn Fn(&Element) -> Result<T, Failure>,
        decide: &mut Decide<'_, T>,
    ) -> Result<Each<T>, Failure> {
        let tasks = self.tasks_of(moves.iter().filter_map(|one| TaskId::read(one.token)))?;
        let looked = moves.iter().map(|one| self.look(&tasks, one, done));
        let looked: Vec<Settled<T>> = looked.collect();
        let is_open = |look: &Settled<T>| match look {
            None => true,
            Some(Err(failure)) => !matches!(failure.kind, FailureKind::Pending(_)),
            Some(Ok(_)) => false,
        };
        let open = moves.iter().zip(&looked).filter(|(_, look)| is_open(look));
        let machines = self.machines(open.map(|(one, _)| one.node));
        let mut changes: Changes<'_> = Changes::new();
        let mut answers: Vec<Settled<T>> = Vec::new();
        for (at, (one, look)) in moves.iter().zip(looked).enumerate() {
            let failed = match look {
                Some(Err(failure)) if !matches!(failure.kind, FailureKind::Pending(_)) => Some(failure),
                Some(settled) => {
                    answers.push(Some(settled));
                    continue;
                }
                None => None,
            };
            let machine = match machines.get(one.node) {
                Some(Ok(machine)) => machine.as_ref(),
                Some(Err(failure)) => {
                    answers.push(Some(Err(failure.clone())));
                    continue;
                }
                None => None,
            };
            answers.push(match (decide(one, machine, failed), machine) {
                (Ok(Step::Done(done)), _) => Some(Ok(done)),
                (Err(failure), _) => Some(Err(failure)),
                (Ok(Step::Begin), None) => Some(Err(later())),
                (Ok(Step::Begin), Some(machine)) => {
                    let change = changes.entry((machine.vcenter, &machine.reference.value)).or_default();
                    change.push((at, one.volume));
                    None
                }
            });
        }
        let mut begun = self.change(way, &changes);
        let answer = |(at, (one, answer)): (usize, (&Move<'_>, Settled<T>))| {
            answer.unwrap_or_else(|| match begun.remove(&at) {
                Some(Ok(task)) => Err(task.pending(&one.doing)),
                Some(Err(failure)) => Err(failure),
                None => Err(later()),
            })
        };
        Ok(moves.iter().zip(answers).enumerate().map(answer).collect())
    }

    /// The states of these tasks, a read for each vCenter.
    fn tasks_of(&self, ids: impl Iterator<Item = TaskId>) -> Result<Tasks, Failure> {
        let ids: BTreeSet<TaskId> = ids.collect();
        let mut tasks = Tasks::new();
        for vcenter in &self.settings.vcenters {
            let here: Vec<&TaskId> = ids.iter().filter(|id| id.vcenter == vcenter.name).collect();
            tasks.extend(self.cns(vcenter).tasks(&here)?);
        }
        Ok(tasks)
    }

    /// The result of its task; none where there is none, or it is not known any more.
    fn look<T>(&self, tasks: &Tasks, one: &Move<'_>, done: &dyn Fn(&Element) -> Result<T, Failure>) -> Settled<T> {
        let id = TaskId::read(one.token)?;
        let state = tasks.get(&id)?;
        if let TaskState::Failed(_) = state {
            let kept = self.context.state();
            kept.put(&alone(&id.vcenter), &true, ALONE);
        }
        Some(match state.result(Some(one.volume)) {
            None => Err(id.pending(&one.doing)),
            Some(result) => result.and_then(done),
        })
    }

    /// Begins the changes, a task for each machine or for each volume. Gives the task of each move, by its place.
    fn change(&self, (method, parameter): Way, changes: &Changes<'_>) -> BTreeMap<usize, Result<TaskId, Failure>> {
        let mut brake = Brake::new(self.context, later);
        let mut begun = BTreeMap::new();
        for ((place, machine), volumes) in changes {
            let Some(vcenter) = self.settings.vcenters.get(*place) else {
                continue;
            };
            let cns = self.cns(vcenter);
            let is_alone = self.context.state().get::<bool>(&alone(&vcenter.name)).is_some();
            let machine = Reference::new(crate::instances::machine::KIND, machine).write("vm");
            for part in volumes.chunks(if is_alone { 1 } else { volumes.len() }) {
                let spec = |(_, id): &(usize, &str)| {
                    format!("<{parameter}>{}{machine}</{parameter}>", id_element("volumeId", id))
                };
                let what: String = part.iter().map(spec).collect();
                let task = brake.run(|| cns.begin(method, &|_| what.clone()));
                for (at, _) in part {
                    begun.insert(*at, task.as_ref().map(|task| cns.task(task)).map_err(Failure::clone));
                }
            }
        }
        begun
    }
}

/// Changes by vCenter and machine: the volumes, each with its place among the moves.
type Changes<'a> = BTreeMap<(usize, &'a str), Vec<(usize, &'a str)>>;

fn alone(vcenter: &str) -> String {
    format!("alone/{vcenter}")
}

#[cfg(test)]
mod tests;
