//! An operator's tags on machines: one request for all of them, one result each.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

use crate::Sim;
use crate::api::{PartResult, TagChanges};

impl Tagging for Sim {
    fn tag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        self.change_tags(nodes, &TagChanges::Set(by_key(tags)))
    }

    fn untag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure> {
        let mut results = self.change_tags(nodes, &TagChanges::Remove(by_key(tags)))?;
        for result in &mut results {
            // A machine that is gone has no tags.
            if result.as_ref().is_err_and(Failure::is_not_found) {
                *result = Ok(());
            }
        }
        Ok(results)
    }
}

impl Sim {
    fn change_tags(&self, nodes: &[NodeRef], changes: &TagChanges) -> Result<Vec<Result<(), Failure>>, Failure> {
        let machines: Vec<Result<&str, Failure>> = nodes.iter().map(|node| self.machine_of(node)).collect();
        let possible: Vec<&str> = machines.iter().flatten().copied().collect();
        let answers = match possible.is_empty() {
            true => Vec::new(),
            false => self.api.change_tags(&possible, changes)?,
        };
        // The cloud answers what was sent; what was impossible from the start keeps its own failure and its place.
        let mut answers = answers.into_iter();
        let result = |machine: Result<&str, Failure>| machine.and_then(|_| changed(answers.next()));
        Ok(machines.into_iter().map(result).collect())
    }

    fn machine_of<'n>(&self, node: &'n NodeRef) -> Result<&'n str, Failure> {
        let id = node.provider_id.as_deref().and_then(|id| id_after(&self.prefix, id));
        id.ok_or_else(|| {
            let (name, prefix) = (&node.name, &self.prefix);
            Failure::invalid(format!("Node {name} has no provider id that begins with {prefix}"))
        })
    }
}

fn by_key(tags: &[Pair]) -> std::collections::BTreeMap<String, String> {
    tags.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect()
}

fn changed(answer: Option<PartResult>) -> Result<(), Failure> {
    let answer = answer.ok_or_else(|| Failure::other("the cloud answered about fewer machines than it was asked"))?;
    match answer.status {
        200..=299 => Ok(()),
        status => Err(Failure::from_status(status, answer.message)),
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::json;

    use super::*;

    fn host() -> FakeHost {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test/"}"#)
            .secret("token", "t0ken");
        host
    }

    fn nodes() -> [NodeRef; 3] {
        ["sim://vm-1", "aws:///z/i-1", "sim://vm-2"].map(|id| NodeRef::named(id).with_provider_id(id))
    }

    fn kinds(results: Vec<Result<(), Failure>>) -> Vec<Option<FailureKind>> {
        results
            .into_iter()
            .map(|result| result.err().map(|failure| failure.kind))
            .collect()
    }

    #[test]
    fn machines_share_a_request_and_each_has_its_result() {
        let host = host();
        host.expect("POST", "https://sim.test/v1/instances/tags")
            .with_json(json!({"instances": ["vm-1", "vm-2"], "set": {"team": "blue"}}))
            .answers(
                200,
                json!({"results": [{"status": 200}, {"status": 404, "message": "gone"}]}),
            );
        let results = host.provider::<Sim>().tag(&nodes(), &[Pair::new("team", "blue")]);
        assert_eq!(
            kinds(results.unwrap()),
            [None, Some(FailureKind::Invalid), Some(FailureKind::NotFound)]
        );
    }

    #[test]
    fn missing_machine_is_untagged() {
        let host = host();
        host.expect("POST", "https://sim.test/v1/instances/tags")
            .with_json(json!({"instances": ["vm-1", "vm-2"], "remove": {"team": "blue"}}))
            .answers(
                200,
                json!({"results": [{"status": 200}, {"status": 404, "message": "gone"}]}),
            );
        let results = host.provider::<Sim>().untag(&nodes(), &[Pair::new("team", "blue")]);
        assert_eq!(kinds(results.unwrap()), [None, Some(FailureKind::Invalid), None]);
    }
}
