//! The aggregated lists of machines and of disks: all zones of a project in one call, in pages.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use super::Machine;
use super::machine::FIELDS;
use crate::Gce;
use crate::api::Paged;
use crate::volumes::disk::{self, Disk};

/// A page: by scope, such as `zones/us-central1-a`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    items: BTreeMap<String, Scope>,
    unreachables: Vec<String>,
    next_page_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scope {
    instances: Vec<Machine>,
    disks: Vec<Disk>,
    warning: Option<Warning>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Warning {
    code: String,
    message: String,
}

impl Paged for Page {
    fn next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

impl Page {
    /// Whether all zones and regions have answered.
    ///
    /// # Errors
    /// `unavailable` with the first that has not.
    fn complete(&self) -> Result<(), Failure> {
        let warnings = self
            .items
            .iter()
            .filter_map(|(scope, items)| Some((scope, items.warning.as_ref()?)));
        let mut warnings = warnings.filter(|(_, warning)| warning.code != "NO_RESULTS_ON_PAGE");
        let scope = match warnings.next() {
            Some((scope, warning)) => format!("{scope} could not be listed: {}: {}", warning.code, warning.message),
            None => match self.unreachables.first() {
                Some(scope) => format!("{scope} could not be listed"),
                None => return Ok(()),
            },
        };
        Err(Failure::unavailable(scope))
    }
}

impl Gce {
    /// The machines of these names in the project. The inner failure means that some zone did not answer, so that what was not found may exist.
    pub(crate) fn listed(
        &self,
        project: &str,
        names: &[&str],
        each: &mut dyn FnMut(Machine),
    ) -> Result<Result<(), Failure>, Failure> {
        self.aggregated(project, ("instances", FIELDS), names, &mut |scope| {
            scope.instances.into_iter().for_each(&mut *each);
        })
    }

    /// The same of disks, with those of whole regions.
    pub(crate) fn listed_disks(
        &self,
        project: &str,
        names: &[&str],
        each: &mut dyn FnMut(Disk),
    ) -> Result<Result<(), Failure>, Failure> {
        self.aggregated(project, ("disks", disk::FIELDS), names, &mut |scope| {
            scope.disks.into_iter().for_each(&mut *each);
        })
    }

    /// One page of all disks of the project, at most `size`, which is 500 at most, and where the next one begins.
    pub(crate) fn disks_page(
        &self,
        project: &str,
        size: u32,
        token: Option<&str>,
    ) -> Result<(Vec<Disk>, Option<String>), Failure> {
        let (size, fields) = (size.to_string(), fields("disks", disk::FIELDS));
        let mut query = vec![("maxResults", &*size), ("fields", &*fields)];
        query.extend(token.map(|token| ("pageToken", token)));
        let mut page: Page = self.api.get(&format!("/projects/{project}/aggregated/disks"), &query)?;
        page.complete()?;
        let next = page.next();
        let disks = page.items.into_values().flat_map(|scope| scope.disks);
        Ok((disks.collect(), next))
    }

    fn aggregated(
        &self,
        project: &str,
        (kind, wanted): (&str, &str),
        names: &[&str],
        each: &mut dyn FnMut(Scope),
    ) -> Result<Result<(), Failure>, Failure> {
        let mut silent = Ok(());
        let filter: Vec<String> = names.iter().map(|name| format!("(name = \"{name}\")")).collect();
        let (filter, fields) = (filter.join(" OR "), fields(kind, wanted));
        let query = [("filter", &*filter), ("fields", &*fields)];
        self.api.pages(
            &format!("/projects/{project}/aggregated/{kind}"),
            &query,
            |page: Page| {
                if let Err(failure) = page.complete() {
                    silent = Err(failure);
                }
                page.items.into_values().for_each(&mut *each);
                Ok(())
            },
        )?;
        Ok(silent)
    }
}

/// The fields of a page with these of each item.
fn fields(kind: &str, wanted: &str) -> String {
    format!("nextPageToken,unreachables,items/*(warning,{kind}({wanted}))")
}
