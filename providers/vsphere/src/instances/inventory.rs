//! Finding machines on one vCenter: by what is cached, by its search index when they are few, by one read of all machines when they are many.
//!
//! ```text
//!   cached objects     -> still there, and with that id? -> found
//!   few, all datacenters -> search index -> found
//!   else, and before anything is called absent -> every machine by the views: ids, name and address of each -> found, or not there
//! ```
//!
//! What is missing in the search index may only be not indexed yet, so it is no evidence.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::escape;

use crate::instances::machine::{KIND, METADATA, Machine, PROPERTIES, setting_path};
use crate::instances::remembered::Remembered;
use crate::instances::uuid::Uuid;
use crate::vcenter::properties::{Along, Query, retrieve};
use crate::vcenter::session::{Session, Sessions};
use crate::vcenter::soap::{CallError, Reference};

/// Machines of which all is read, in one page: two to twenty kilobytes each.
const MACHINES: u32 = 100;

/// Machines of which only ids are read, in one page.
const KEYS: u32 = 500;

/// So many are searched for one by one; more are found by reading all.
const FEW: usize = 4;

/// How the machine of a Node is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// By the id in its provider id, and by nothing else.
    Id(Uuid),
    /// By the id that the Node read in its firmware, else by its name.
    Name {
        /// `status.nodeInfo.systemUUID`.
        system: Option<Uuid>,
        /// The Node's name.
        name: String,
    },
}

/// What there is for one [`Want`]: the machines that fit. More than one is for the caller to decide.
pub type Found = Result<Vec<Machine>, Failure>;

/// Machines that were read, and where.
type Read = Vec<(Reference, Result<Machine, Failure>)>;

/// The ids of a machine by which it is found.
struct Keys {
    reference: Reference,
    uuid: Option<Uuid>,
    instance: Option<Uuid>,
    host_name: String,
    address: String,
}

/// Finds machines on one vCenter.
#[derive(Debug)]
pub struct Inventory<'a> {
    /// Its sessions.
    pub sessions: Sessions<'a>,
    /// Where machines were before.
    pub remembered: Remembered,
    /// Whether only parts of the inventory count.
    pub limited: bool,
}

impl Inventory<'_> {
    /// The machines that are looked up, one answer for each in its order.
    ///
    /// # Errors
    /// What prevents every answer.
    pub fn find(&self, wants: &[&Want]) -> Result<Vec<Found>, Failure> {
        let mut answers: Vec<Option<Found>> = self.look_at_remembered(wants)?;
        let open = |answers: &[Option<Found>]| -> Vec<usize> {
            (0..wants.len())
                .filter(|at| answers.get(*at).is_some_and(Option::is_none))
                .collect()
        };
        let missing = open(&answers);
        if !self.limited && missing.len() <= FEW {
            self.search(wants, &missing, &mut answers)?;
        }
        let missing = open(&answers);
        if !missing.is_empty() {
            self.read_all(wants, &missing, &mut answers)?;
        }
        self.remember(wants, &answers);
        Ok(answers
            .into_iter()
            .map(|answer| answer.unwrap_or_else(|| Ok(Vec::new())))
            .collect())
    }

    /// Machines that were found before are read where they were.
    fn look_at_remembered(&self, wants: &[&Want]) -> Result<Vec<Option<Found>>, Failure> {
        let known = self.remembered.references(wants);
        let references: Vec<Reference> = known.iter().flatten().cloned().collect();
        let read = self.read(&references)?;
        let answer = |(want, known): (&&Want, &Option<Reference>)| {
            let known = known.as_ref()?;
            let (_, machine) = read.iter().find(|(reference, _)| reference == known)?;
            match machine {
                Ok(machine) if fits(want, machine) => Some(Ok(vec![machine.clone()])),
                // Its storage is gone, or its host is: the server then has little more than its reference.
                Ok(machine) if machine.uuid.is_none() => Some(Err(Failure::unavailable(format!(
                    "{} is there, but does not tell its id; is it inaccessible?",
                    machine.name
                )))),
                // Its object is another machine's by now.
                Ok(_) => None,
                Err(failure) => Some(Err(failure.clone())),
            }
        };
        Ok(wants.iter().zip(&known).map(answer).collect())
    }

    /// Looks up a few in the search index.
    fn search(&self, wants: &[&Want], at: &[usize], answers: &mut [Option<Found>]) -> Result<(), Failure> {
        for index in at {
            let (Some(want), Some(answer)) = (wants.get(*index), answers.get_mut(*index)) else {
                continue;
            };
            let found = self.sessions.with(|session| self.search_one(session, want))?;
            let read = self.read(&found)?;
            let machines: Found = read.into_iter().map(|(_, machine)| machine).collect();
            if !matches!(&machines, Ok(machines) if machines.is_empty()) {
                *answer = Some(machines);
            }
        }
        Ok(())
    }

    fn search_one(&self, session: &Session, want: &Want) -> Result<Vec<Reference>, CallError> {
        let (uuid, name) = match want {
            Want::Id(uuid) => (Some(uuid), None),
            Want::Name { system, name } => (system.as_ref(), Some(name)),
        };
        if let Some(uuid) = uuid {
            for (uuid, instance) in [(uuid, "false"), (&uuid.swapped(), "false"), (uuid, "true")] {
                let found = self.ask_index(session, "FindByUuid", "uuid", uuid.as_str(), instance)?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        let Some(name) = name else { return Ok(Vec::new()) };
        let found = self.ask_index(session, "FindAllByDnsName", "dnsName", name, "")?;
        if !found.is_empty() || name.parse::<std::net::IpAddr>().is_err() {
            return Ok(found);
        }
        self.ask_index(session, "FindAllByIp", "ip", name, "")
    }

    fn ask_index(
        &self,
        session: &Session,
        method: &str,
        key: &str,
        value: &str,
        instance: &str,
    ) -> Result<Vec<Reference>, CallError> {
        let mut what = format!("<{key}>{}</{key}><vmSearch>true</vmSearch>", escape(value));
        if !instance.is_empty() {
            what.push_str(&format!("<instanceUuid>{instance}</instanceUuid>"));
        }
        let answer = self.sessions.call(session, method, &session.search_index, &what)?;
        Ok(answer.values().filter_map(Reference::of).collect())
    }

    /// Reads ids and names of all machines and finds these among them.
    fn read_all(&self, wants: &[&Want], at: &[usize], answers: &mut [Option<Found>]) -> Result<(), Failure> {
        let (all, hidden) = self.sessions.with(|session| self.keys(session))?;
        if all.is_empty() {
            return Err(Failure::denied(
                "the inventory is empty for this user: give the role Read-only, with propagation, on the vCenter or the datacenters",
            ));
        }
        let found: Vec<(usize, Vec<Reference>)> = at
            .iter()
            .filter_map(|index| wants.get(*index).map(|want| (*index, matching(&all, want))))
            .collect();
        let references: Vec<Reference> = found.iter().flat_map(|(_, references)| references.clone()).collect();
        let read = self.read(&references)?;
        let by_id = |index: usize| matches!(wants.get(index), Some(Want::Id(_)));
        for (index, references) in found {
            let Some(answer) = answers.get_mut(index) else { continue };
            let machines = read.iter().filter(|(reference, _)| references.contains(reference));
            let machines: Found = machines.map(|(_, machine)| machine.clone()).collect();
            *answer = Some(match machines {
                // It was there a moment ago, or may be the one that cannot be read.
                Ok(machines) if machines.len() < references.len() => Err(Failure::conflict(
                    "the machine vanished while it was read; it is looked for again",
                )),
                Ok(machines) if machines.is_empty() && hidden > 0 && by_id(index) => {
                    Err(Failure::unavailable(format!(
                        "nobody can say that it is gone: {hidden} machines of the inventory do not tell their ids, for want of permission or because they are inaccessible"
                    )))
                }
                machines => machines,
            });
        }
        Ok(())
    }

    /// The ids of all machines, and how many lack them.
    fn keys(&self, session: &Session) -> Result<(Vec<Keys>, usize), CallError> {
        const PATHS: &[&str] = &[
            "summary.config.uuid",
            "summary.config.instanceUuid",
            "guest.hostName",
            "guest.ipAddress",
        ];
        let (mut all, mut hidden) = (Vec::new(), 0);
        let query = Query {
            properties: &[(KIND, PATHS)],
            from: &session.views,
            along: Along::Views,
            page: KEYS,
        };
        retrieve(&self.sessions, session, &query, &mut |object| {
            let Some(reference) = object.reference() else { return };
            let uuid = |path| object.text(path).and_then(Uuid::parse);
            let text = |path| object.text(path).map(String::from).unwrap_or_default();
            hidden += usize::from(uuid("summary.config.uuid").is_none());
            all.push(Keys {
                reference,
                uuid: uuid("summary.config.uuid"),
                instance: uuid("summary.config.instanceUuid"),
                host_name: text("guest.hostName"),
                address: text("guest.ipAddress"),
            });
        })?;
        debug!(machines = all.len(), "read the inventory");
        Ok((all, hidden))
    }

    /// Reads these machines; those that do not exist are left out.
    fn read(&self, references: &[Reference]) -> Result<Read, Failure> {
        if references.is_empty() {
            return Ok(Vec::new());
        }
        // A server that cannot give single settings gives all of them.
        let all_settings = self.remembered.gives_all_settings();
        self.sessions.with(|session| {
            let (machines, refused) = self.read_with(session, references, all_settings)?;
            if !refused {
                return Ok(machines);
            }
            self.remembered.remember_all_settings();
            Ok(self.read_with(session, references, true)?.0)
        })
    }

    /// With all settings of each machine, or only those that count. Answers also whether the server refused the latter.
    fn read_with(
        &self,
        session: &Session,
        references: &[Reference],
        all_settings: bool,
    ) -> Result<(Read, bool), CallError> {
        let settings = METADATA.map(setting_path);
        let mut paths = PROPERTIES.to_vec();
        if all_settings {
            paths.push("config.extraConfig");
        } else {
            paths.extend(settings.iter().map(String::as_str));
        }
        let query = Query {
            properties: &[(KIND, &paths)],
            from: references,
            along: Along::These,
            page: MACHINES,
        };
        let (mut machines, mut refused) = (Vec::new(), false);
        let read = retrieve(&self.sessions, session, &query, &mut |object| {
            refused |= object
                .unreadable()
                .any(|(path, kind)| kind == "InvalidProperty" && settings.iter().any(|setting| setting == path));
            let gone = object.unreadable().any(|(_, kind)| kind == "ManagedObjectNotFound");
            if let Some(reference) = object.reference().filter(|found| !gone && references.contains(found)) {
                machines.push((reference, Machine::read(object)));
            }
        });
        match read {
            Err(CallError::Fault(fault)) if fault.kind == "InvalidProperty" && !all_settings => Ok((machines, true)),
            Err(error) => Err(error),
            Ok(()) => Ok((machines, refused)),
        }
    }

    /// Keeps where machines were found.
    fn remember(&self, wants: &[&Want], answers: &[Option<Found>]) {
        let found = wants
            .iter()
            .zip(answers)
            .filter_map(|(want, answer)| match (want, answer) {
                (Want::Id(uuid), Some(Ok(machines))) => machines.first().map(|machine| (uuid, &machine.reference)),
                _ => None,
            });
        self.remembered.add(found);
    }
}

/// Whether the machine is the one of the look-up's id.
fn fits(want: &Want, machine: &Machine) -> bool {
    match want {
        Want::Id(uuid) => {
            let own = machine.uuid.as_ref();
            own == Some(uuid) || own == Some(&uuid.swapped())
        }
        Want::Name { .. } => false,
    }
}

/// The machines that fit, by the first way that finds any.
fn matching(all: &[Keys], want: &Want) -> Vec<Reference> {
    let by = |fits: &dyn Fn(&Keys) -> bool| -> Vec<Reference> {
        all.iter()
            .filter(|keys| fits(keys))
            .map(|keys| keys.reference.clone())
            .collect()
    };
    let (uuid, name) = match want {
        Want::Id(uuid) => (Some(uuid), None),
        Want::Name { system, name } => (system.as_ref(), Some(name)),
    };
    if let Some(uuid) = uuid {
        let swapped = uuid.swapped();
        for found in [
            by(&|keys| keys.uuid.as_ref() == Some(uuid)),
            by(&|keys| keys.uuid.as_ref() == Some(&swapped)),
            by(&|keys| keys.instance.as_ref() == Some(uuid)),
        ] {
            if !found.is_empty() {
                return found;
            }
        }
    }
    let Some(name) = name else { return Vec::new() };
    let named = by(&|keys| keys.host_name == *name);
    if named.is_empty() {
        by(&|keys| keys.address == *name)
    } else {
        named
    }
}
