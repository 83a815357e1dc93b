//! The changes: the only place that writes. Most are jobs.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Apply, Jobs};
use serde::Deserialize;

use super::address;
use crate::CloudStack;
use crate::api::{Call, wire};

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Call(Call),
    /// An address is associated by this call, and marked as the Service's.
    Associate {
        call: Call,
        uid: String,
        named: bool,
    },
}

#[derive(Deserialize)]
struct Associated {
    #[serde(deserialize_with = "wire::text")]
    id: String,
    #[serde(default, deserialize_with = "wire::text")]
    jobid: String,
}

impl Change {
    fn call(&self) -> &Call {
        let (Self::Call(call) | Self::Associate { call, .. }) = self;
        call
    }
}

impl Apply for CloudStack {
    type Change = Change;

    fn text(change: &Change) -> String {
        change.call().text()
    }

    fn deletes(change: &Change) -> bool {
        change.call().command().starts_with("delete")
    }

    fn apply(&self, _: &str, change: &Change) -> Result<Vec<String>, Failure> {
        match change {
            Change::Call(call) => Ok(self.api.begin(call)?.into_iter().collect()),
            Change::Associate { call, uid, named } => self.associate(call, uid, *named),
        }
    }

    fn jobs(&self, jobs: Vec<String>) -> Result<Jobs, Failure> {
        self.api.look(jobs)
    }
}

impl CloudStack {
    /// The address is marked as soon as the cloud returns it: a process that ends here leaves none behind.
    fn associate(&self, call: &Call, uid: &str, named: bool) -> Result<Vec<String>, Failure> {
        let made: Associated = self.api.send(call)?;
        let mark = self.api.begin(&address::mark(&made.id, uid, named));
        let marked = mark.inspect_err(|_| self.give_back(&made.id))?;
        let jobs = Some(made.jobid).into_iter().chain(marked);
        Ok(jobs.filter(|job| !job.is_empty()).collect())
    }

    /// Gives an address back that could not be marked: nothing would find it again.
    fn give_back(&self, address: &str) {
        let call = Call::new("disassociateIpAddress").field("id", address);
        if let Err(failure) = self.api.begin(&call) {
            warn!(
                "address {address} is left behind, since it could be neither marked nor given back: {}",
                failure.message()
            );
        }
    }
}
