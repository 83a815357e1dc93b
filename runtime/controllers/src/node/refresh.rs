//! Periodic refresh of the addresses of initialised Nodes, page by page.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudwit_model::{CloudError, Failure, Instance, NodeRef, Presence, ProviderIdentity, Retry};
use futures::StreamExt;
use tokio::time::sleep;
use tracing::{Instrument as _, Span, warn};

use crate::cloud::lookups::Answers;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint, node_ref};
use crate::metrics::Purpose;
use crate::node::plan::{plan_addresses, plan_identity};
use crate::node::write::{InitError, write_addresses};
use crate::node::{CloudNode, each};
use crate::options::Controller;
use crate::queue::span;
use crate::sync::lock;

/// How often a page of the refresh is tried again when the cloud throttles.
const PAGE_ATTEMPTS: u32 = 3;

/// Nodes about which there was no answer, and why.
type FailedPart = (Vec<Arc<Node>>, CloudError);

impl CloudNode {
    /// Refreshes addresses at once and then in each period, which starts when the pass before has ended.
    pub(super) async fn refresh_all(&self) {
        loop {
            self.refresh().await;
            sleep(self.context.options.node.status_update_frequency).await;
        }
    }

    async fn refresh(&self) {
        let owns = self.context.scope.owns_node();
        let mut nodes = self
            .context
            .nodes
            .matching(|node| !has_taint(node, UNINITIALIZED) && owns(node));
        nodes.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        for page in nodes.chunks(self.context.cloud.lookup_limit().max(1)) {
            let span = span::on_many(Controller::CloudNode, page.len());
            let refreshed = self.refresh_page(page, &span).instrument(span.clone()).await;
            span::ended(&span, refreshed);
        }
    }

    /// Looks a page up, and again after the advised pause when the cloud throttles. False when there was no answer about some.
    async fn refresh_page(&self, page: &[Arc<Node>], span: &Span) -> bool {
        let (mut page, mut complete) = (page.to_vec(), true);
        for attempt in 1..=PAGE_ATTEMPTS {
            let refs: Vec<NodeRef> = page.iter().map(|node| node_ref(node)).collect();
            let failed = Mutex::new(Vec::new());
            let parts = self.context.lookups.about(Purpose::Refresh, refs, span.clone());
            parts
                .for_each_concurrent(None, |part| {
                    let nodes: Vec<Arc<Node>> = part.at.into_iter().map(|at| page[at].clone()).collect();
                    self.refresh_part(nodes, part.answer, &failed)
                })
                .await;
            let (mut again, mut pause) = (Vec::new(), Duration::ZERO);
            for (nodes, error) in failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
                match error.retry() {
                    Retry::After(advised) if attempt < PAGE_ATTEMPTS => {
                        again.extend(nodes);
                        pause = pause.max(advised);
                    }
                    _ => {
                        complete = false;
                        let nodes = nodes.len();
                        warn!(nodes, %error, "failed to refresh addresses; retrying in next period");
                    }
                }
            }
            if again.is_empty() {
                break;
            }
            sleep(pause).await;
            page = again;
        }
        complete
    }

    async fn refresh_part(&self, nodes: Vec<Arc<Node>>, answer: Answers, failed: &Mutex<Vec<FailedPart>>) {
        match answer {
            Ok(answers) => {
                let answered = nodes.into_iter().zip(answers);
                let owner = (self.context.scope.owns_node(), self.context.scope.identity());
                each(self.refresh_at_once, answered, |(node, answer)| {
                    self.refresh_node(node, answer, &owner)
                })
                .await;
            }
            Err(error) => lock(failed).push((nodes, error)),
        }
    }

    /// `owner` selects the provider's own Nodes, and is the provider.
    async fn refresh_node(
        &self,
        node: Arc<Node>,
        answer: Result<Presence, Failure>,
        owner: &(impl Fn(&Node) -> bool, ProviderIdentity),
    ) {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let presence = match answer {
            Ok(presence) => presence,
            Err(failure) => {
                return Self::not_refreshed(name, &failure);
            }
        };
        let Some(instance) = presence.instance() else { return };
        // The look-up took its time: plan on what is cached now.
        let Some(current) = self
            .context
            .nodes
            .get(name)
            .filter(|now| now.metadata.uid == node.metadata.uid)
        else {
            return;
        };
        if let Err(error) = self.write_refreshed(&current, instance, owner).await {
            Self::not_refreshed(name, &error);
        }
    }

    fn not_refreshed(node: &str, why: &dyn std::fmt::Display) {
        let span = span::part_on_object(Controller::CloudNode, node);
        span::ended(&span, false);
        span.in_scope(|| warn!(node, %why, "failed to refresh addresses; retrying in next period"));
    }

    async fn write_refreshed(
        &self,
        node: &Node,
        instance: &Instance,
        (owns, provider): &(impl Fn(&Node) -> bool, ProviderIdentity),
    ) -> Result<(), InitError> {
        if has_taint(node, UNINITIALIZED) {
            return Ok(());
        }
        if owns(node) {
            plan_identity(node, instance, provider)?;
        }
        let Some(addresses) = plan_addresses(node, instance)? else {
            return Ok(());
        };
        if let Some(written) = write_addresses(&self.context.apply, node, &addresses).await? {
            self.context.nodes.observe(written);
        }
        Ok(())
    }
}
