//! The aggregated lists of machines and of disks: all zones of a project in one call, in pages.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use super::Machine;
use super::machine::FIELDS;
use crate::Gce;
use crate::api::Paged;
use crate::disks::{self, Disk};

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

impl Gce {
    /// The machines of these names in the project. The inner failure tells that some zone did not answer, so that what was not found may exist.
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
        self.aggregated(project, ("disks", disks::FIELDS), names, &mut |scope| {
            scope.disks.into_iter().for_each(&mut *each);
        })
    }

    fn aggregated(
        &self,
        project: &str,
        (kind, fields): (&str, &str),
        names: &[&str],
        each: &mut dyn FnMut(Scope),
    ) -> Result<Result<(), Failure>, Failure> {
        let mut silent = Ok(());
        let filter: Vec<String> = names.iter().map(|name| format!("(name = \"{name}\")")).collect();
        let filter = filter.join(" OR ");
        let fields = format!("nextPageToken,unreachables,items/*(warning,{kind}({fields}))");
        let query = [("filter", &*filter), ("fields", &*fields)];
        self.api.pages(
            &format!("/projects/{project}/aggregated/{kind}"),
            &query,
            |page: Page| {
                let warnings = page
                    .items
                    .iter()
                    .filter_map(|(scope, items)| Some((scope, items.warning.as_ref()?)));
                let mut warnings = warnings.filter(|(_, warning)| warning.code != "NO_RESULTS_ON_PAGE");
                if let Some((scope, warning)) = warnings.next() {
                    let text = format!("{scope} could not be listed: {}: {}", warning.code, warning.message);
                    silent = Err(Failure::unavailable(text));
                } else if let Some(scope) = page.unreachables.first() {
                    silent = Err(Failure::unavailable(format!("{scope} could not be listed")));
                }
                page.items.into_values().for_each(&mut *each);
                Ok(())
            },
        )?;
        Ok(silent)
    }
}
