//! Machines behind Nodes: by id and by name, many at once from the pages of a list.

pub mod machine;

use cloudwit_guest_sdk::lookup::{Existing, Key, Listing};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::api::Call;
use crate::config::{self, given};
use crate::{Baidu, machine_id};
use machine::Machine;

impl Listing for Baidu {
    type Machine = Machine;
    const NOTHING: &'static str = "no machine at all is seen; is this the right Region and user?";

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        Key::read(node, machine_id, "Baidu's", "cce://i-rtYbC2kd")
    }

    fn each(&self, each: &mut dyn FnMut(Machine)) -> Result<(), Failure> {
        self.api.each(&machines(), "instances", |machine: Machine| {
            if !machine.is_deleted() {
                each(machine);
            }
        })
    }

    /// The machine of this id. None only where Baidu reports the id as not found, or the machine as deleted.
    fn one(&self, id: &str) -> Result<Option<Machine>, Failure> {
        #[derive(Deserialize)]
        struct One {
            instance: Machine,
        }
        let call = Call::get(config::Product::Bcc, format!("/v2/instance/{id}"));
        match self.api.send::<One>(&call) {
            Ok(one) if one.instance.id == id => Ok(Some(one.instance).filter(|machine| !machine.is_deleted())),
            Ok(one) => Err(Failure::other(format!(
                "asked for {id}, Baidu answers about {}",
                one.instance.id
            ))),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        let answer: Value = self.api.send(&machines().query("maxKeys", 1))?;
        Ok(answer["instances"].as_array().is_some_and(|found| !found.is_empty()))
    }

    fn id(machine: &Machine) -> &str {
        &machine.id
    }

    /// Another VPC may have the same addresses.
    fn is_called(&self, machine: &Machine, name: &str) -> Result<bool, Failure> {
        Ok(machine.vpc_id.as_deref() == Some(self.vpc()) && machine.is_called(name))
    }

    fn existing(&self, machine: &Machine) -> Result<Existing, Failure> {
        machine.existing(given(&self.config.region).unwrap_or_default())
    }
}

/// A list of machines.
pub fn machines() -> Call {
    Call::get(config::Product::Bcc, "/v2/instance")
}

#[cfg(test)]
mod tests;
