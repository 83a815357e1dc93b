//! Instances by id: as many as possible in one call, although one id that AWS does not know makes it refuse the whole call.
//!
//! AWS names such ids in its refusal. They are set aside, with that as the answer for them, and the others are asked for again. Should the
//! refusal name none of ours, the ids are halved until it is clear which one is meant.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api_error::AwsError;
use crate::instances_machine::{Machine, MachineState, described};

/// The most ids in one call.
const MOST_IDS: usize = 1000;

/// What became known about one machine.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// It exists, in whatever state.
    Machine(Box<Machine>),
    /// The cloud says that it does not exist, or has ended.
    Gone,
    /// Not known, for this reason.
    Failed(Failure),
}

impl From<Machine> for Found {
    fn from(machine: Machine) -> Self {
        match machine.state {
            MachineState::Terminated => Self::Gone,
            _ => Self::Machine(Box::new(machine)),
        }
    }
}

/// Answers by id.
pub(crate) type Answers = BTreeMap<String, Found>;

impl Aws {
    /// What AWS says about each of these ids.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn find_by_ids(&self, ids: &[&str]) -> Result<Answers, AwsError> {
        let mut answers = Answers::new();
        let mut unique = ids.to_vec();
        unique.sort();
        unique.dedup();
        // An id of an odd shape would cost all others a second call.
        let (plain, odd): (Vec<&str>, Vec<&str>) = unique.into_iter().partition(|id| is_plain(id));
        for page in plain.chunks(MOST_IDS).chain(odd.chunks(MOST_IDS)) {
            self.ask_for_ids(page, &mut answers)?;
        }
        Ok(answers)
    }

    fn ask_for_ids(&self, ids: &[&str], answers: &mut Answers) -> Result<(), AwsError> {
        if ids.is_empty() {
            return Ok(());
        }
        // With ids AWS takes no size of pages; the answer is one page as far as it says, but it may say otherwise.
        let call = self.api.ec2("DescribeInstances").list("InstanceId", ids);
        let error = match described(call) {
            Ok(machines) => {
                take(ids, machines, answers);
                return Ok(());
            }
            Err(error) => error,
        };
        if verdict(&error).is_none() {
            return Err(error);
        }
        let words: Vec<&str> = error
            .message
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .collect();
        let (named, rest): (Vec<&str>, Vec<&str>) = ids.iter().copied().partition(|id| words.contains(id));
        let meant = if ids.len() == 1 { ids } else { &named };
        for id in meant {
            if let Some(verdict) = verdict(&error) {
                answers.insert((*id).into(), verdict);
            }
        }
        match ids {
            [_] => Ok(()),
            _ if !named.is_empty() => self.ask_for_ids(&rest, answers),
            several => {
                let (left, right) = several.split_at(several.len() / 2);
                self.ask_for_ids(left, answers)?;
                self.ask_for_ids(right, answers)
            }
        }
    }
}

/// What a refusal says about the ids it means; none when it is about something else.
fn verdict(error: &AwsError) -> Option<Found> {
    match error.code.as_str() {
        "InvalidInstanceID.NotFound" => Some(Found::Gone),
        // No such id can ever exist, but that it was written down so is no proof that a machine is gone.
        "InvalidInstanceID.Malformed" | "InvalidID" => Some(Found::Failed(error.clone().into())),
        _ => None,
    }
}

/// Notes what was answered. Silence is no absence: had an id not existed, the call would have been refused.
fn take(ids: &[&str], machines: Vec<Machine>, answers: &mut Answers) {
    for machine in machines {
        answers.insert(machine.id.clone(), Found::from(machine));
    }
    for id in ids {
        if !answers.contains_key(*id) {
            let text = format!("AWS was asked for the instance {id} and neither described nor denied it");
            answers.insert((*id).into(), Found::Failed(Failure::unavailable(text)));
        }
    }
}

/// Whether the id looks like all of AWS's: `i-` and 8 or 17 hexadecimal digits.
fn is_plain(id: &str) -> bool {
    let digits = id.strip_prefix("i-").unwrap_or_default();
    matches!(digits.len(), 8 | 17) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}
