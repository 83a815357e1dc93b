//! Tags that an operator requests on the instances of Nodes, as upstream's tagging controller has them (`pkg/controllers/tagging`).
//!
//! ```text
//!   provider ids -> instance ids -> 50 in a call of CreateTags or DeleteTags -> those that AWS refuses set aside -> one result a Node
//! ```
//!
//! Fargate's machines are no instances and carry no tags.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::api::by_ids::ask_by_ids;
use crate::instances::{FARGATE, machine_id};

/// The label by which upstream's controller notes on a Node which tags its instance has (`tagging_controller.go`, `taggingControllerLabelKey`).
pub const LABEL: &str = "k8s.io/cloud-provider-aws";

/// The most instances in one call: as many as upstream puts into one (`create_tags_batch.go`). AWS takes 1,000 and advises fewer.
const MOST_RESOURCES: usize = 50;

/// The refusals that are about single ids.
const NOT_FOUND: &str = "InvalidInstanceID.NotFound";
const ABOUT_IDS: [&str; 3] = [NOT_FOUND, "InvalidInstanceID.Malformed", "InvalidID"];

/// Results by instance id.
type Results = BTreeMap<String, Result<(), Failure>>;

impl Tagging for Aws {
    fn tag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        self.change_tags("CreateTags", nodes, tags)
    }

    fn untag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let mut results = self.change_tags("DeleteTags", nodes, tags)?;
        for result in &mut results {
            // What does not exist has no tags.
            if result.as_ref().is_err_and(Failure::is_not_found) {
                *result = Ok(());
            }
        }
        Ok(results)
    }
}

impl Aws {
    fn change_tags(
        &self,
        action: &'static str,
        nodes: &[NodeRef],
        tags: &[Pair],
    ) -> Result<Vec<Result<(), Failure>>, Failure> {
        let ids: Vec<Result<&str, Failure>> = nodes.iter().map(instance_id).collect();
        let mut asked: Vec<&str> = ids.iter().flatten().copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let results = self.change_tags_of(action, &asked, tags)?;
        let missing = || Err(Failure::other("AWS was not asked about this instance"));
        let result = |id: Result<&str, Failure>| results.get(id?).cloned().unwrap_or_else(missing);
        Ok(ids.into_iter().map(result).collect())
    }

    /// A failure that is about no instance fails all that were not done before, and the whole call where none was.
    fn change_tags_of(&self, action: &'static str, ids: &[&str], tags: &[Pair]) -> Result<Results, Failure> {
        let (mut results, mut refused) = (Results::new(), Vec::new());
        let mut change = |ids: &[&str]| {
            let call = self.api.ec2(action).list("ResourceId", ids).tags("Tag", tags);
            call.send()?;
            results.extend(ids.iter().map(|id| ((*id).to_owned(), Ok(()))));
            Ok(())
        };
        let mut pages = ids.chunks(MOST_RESOURCES);
        let outcome = pages.try_for_each(|page| ask_by_ids(page, &ABOUT_IDS, &mut change, &mut refused));
        let refused = refused.into_iter();
        results.extend(refused.map(|(id, error)| (id.to_owned(), Err(error.into()))));
        let Err(error) = outcome else {
            return Ok(results);
        };
        let failure = Failure::from(error);
        if results.is_empty() {
            return Err(failure);
        }
        for id in ids {
            results.entry((*id).to_owned()).or_insert_with(|| Err(failure.clone()));
        }
        Ok(results)
    }
}

/// The instance behind a Node.
fn instance_id(node: &NodeRef) -> Result<&str, Failure> {
    let provider_id = node.provider_id.as_deref().unwrap_or_default();
    match machine_id(provider_id) {
        Some(id) if id.starts_with(FARGATE) => Err(Failure::implemented_elsewhere("Fargate's machines carry no tags")),
        Some(id) => Ok(id),
        None => Err(Failure::invalid(format!(
            "the provider id {provider_id:?} is none of AWS"
        ))),
    }
}

#[cfg(test)]
mod tests;
