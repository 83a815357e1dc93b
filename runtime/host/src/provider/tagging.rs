//! Tags on the machines of a loaded provider.

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{CloudError, NodeRef, TagChange, Tags};

use crate::call::answer::limits::TAGGED_NODES;
use crate::call::instance::Subjects;
use crate::metrics::{ItemKind, Operation};
use crate::provider::Provider;

impl Provider {
    pub(super) async fn changed_tags(
        &self,
        change: TagChange,
        nodes: &[NodeRef],
        tags: &Tags,
    ) -> Result<Each<()>, CloudError> {
        if nodes.is_empty() {
            return Ok(Vec::new());
        }
        if nodes.len() > TAGGED_NODES {
            return Err(self.too_many(nodes.len(), "Nodes", TAGGED_NODES).into());
        }
        let operation = match change {
            TagChange::Add => Operation::Tag,
            TagChange::Remove => Operation::Untag,
        };
        let mut session = self.0.caller.begin(operation, Subjects::nodes(nodes)).await?;
        let asked = self.0.adapter.change_tags(&mut session.store, change, nodes, tags);
        let answers = session.call.run(asked).await?;
        session.call.count_invalid(ItemKind::Node, &answers);
        Ok(answers)
    }
}
