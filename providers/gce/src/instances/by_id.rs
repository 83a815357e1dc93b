//! One machine by its provider id: the only question whose answer may end a Node.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::lookup::{Answers, Id, Key};
use cloudwit_guest_sdk::prelude::*;

use super::machine::FIELDS;
use super::{Placed, instance_name};
use crate::Gce;
use crate::api::errors;

/// Project, zone and name of `project/zone/name`.
pub(crate) fn parts(id: &str) -> Option<(&str, &str, &str)> {
    let mut parts = id.split('/');
    let found = (parts.next()?, parts.next()?, parts.next()?);
    let whole = [found.0, found.1, found.2].iter().all(|part| !part.is_empty());
    (whole && parts.next().is_none()).then_some(found)
}

impl Gce {
    pub(super) fn by_id(&self, id: Id<'_>, answers: &mut Answers<'_, Placed>) -> Result<(), Failure> {
        let key = Key::Id(id.as_str());
        let Some((project, zone, name)) = parts(id.as_str()) else {
            return Ok(());
        };
        let name = instance_name(name);
        let path = format!("/projects/{project}/zones/{zone}/instances/{name}");
        match self.api.get(&path, &[("fields", FIELDS)]) {
            Ok(machine) => {
                let project = project.to_owned();
                answers.found(key, Placed { machine, project });
            }
            Err(failure) if errors::denies_instance(&failure, name) => answers.denied(id),
            // Wrong for all of them: each would only be refused again.
            Err(failure) if failure.kind == FailureKind::RateLimited => return Err(failure),
            Err(failure) => answers.failed(key, failure),
        }
        Ok(())
    }

    /// The list of one project, in which most machines are found.
    pub(super) fn by_listing(
        &self,
        project: &str,
        ids: &[Id<'_>],
        answers: &mut Answers<'_, Placed>,
    ) -> Result<(), Failure> {
        let names: BTreeSet<&str> = ids
            .iter()
            .filter_map(|id| Some(instance_name(parts(id.as_str())?.2)))
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut found = Vec::new();
        if let Err(failure) = self.listed(project, &names, &mut |machine| found.push(machine))? {
            warn!(
                project = project,
                "machines are asked for one by one: {}",
                failure.message()
            );
        }
        for machine in found {
            let placed = Placed {
                machine,
                project: project.to_owned(),
            };
            answers.found(Key::Id(&placed.id()), placed);
        }
        Ok(())
    }
}
