//! Instances by id: as many as possible in one call.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;

use crate::api::by_ids::{ask_by_ids, is_plain};
use crate::api::error::AwsError;
use crate::instances::machine::{Machine, MachineState, described};
use crate::{Aws, BARE_ID_PREFIX};

/// The most ids in one call.
const MOST_IDS: usize = 1000;

/// What became known about one machine.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// It exists, in whatever state.
    Machine(Box<Machine>),
    /// The cloud reports it as not found, or terminated.
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
    /// AWS's answer for each of these ids.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn find_by_ids(&self, ids: &[&str]) -> Result<Answers, AwsError> {
        let mut answers = Answers::new();
        let mut unique = ids.to_vec();
        unique.sort();
        unique.dedup();
        // An id of an odd shape would cost all others a second call.
        let (plain, odd): (Vec<&str>, Vec<&str>) = unique.into_iter().partition(|id| is_plain(BARE_ID_PREFIX, id));
        for page in plain.chunks(MOST_IDS).chain(odd.chunks(MOST_IDS)) {
            self.ask_for_ids(page, &mut answers)?;
        }
        Ok(answers)
    }

    fn ask_for_ids(&self, ids: &[&str], answers: &mut Answers) -> Result<(), AwsError> {
        let mut refused = Vec::new();
        let mut ask = |ids: &[&str]| {
            // With ids AWS takes no size of pages; the answer is documented as one page, but may have a token all the same.
            let call = self.api.ec2("DescribeInstances").list("InstanceId", ids);
            take(ids, described(call)?, answers);
            Ok(())
        };
        ask_by_ids(ids, &REFUSALS, &mut ask, &mut refused)?;
        let verdicts = refused.into_iter().map(|(id, error)| (id.to_owned(), verdict(error)));
        answers.extend(verdicts);
        Ok(())
    }
}

/// AWS's error code for an unknown id.
const UNKNOWN: &str = "InvalidInstanceID.NotFound";

/// How AWS refuses a call for one of its ids.
const REFUSALS: [&str; 3] = [UNKNOWN, "InvalidInstanceID.Malformed", "InvalidID"];

/// What a refusal means for an id. One that can never exist is no proof that a machine is gone: it may have been recorded so.
fn verdict(refusal: AwsError) -> Found {
    match refusal.is(&[UNKNOWN]) {
        true => Found::Gone,
        false => Found::Failed(refusal.into()),
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
