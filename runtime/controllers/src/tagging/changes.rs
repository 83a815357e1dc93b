//! Changes of tags: the call about many machines, and what becomes of each of them.

use std::sync::Arc;

use cloudwit_model::{CloudError, EventKind, Failure, NodeRef, Retry, TagChange};
use futures::{StreamExt as _, stream};
use kube::api::Patch;
use serde_json::json;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::ambient::since;
use crate::context::Context;
use crate::kube::node::Node;
use crate::kube::writer::{Part, Target, WriteError};
use crate::queue::{Outcome, Taken};
use crate::report::cause::{Cause, CauseKind};
use crate::sync::lock;
use crate::tagging::TagController;
use crate::tagging::plan::{Work, is_final, label};

/// Tries after which upstream gives a change up (`maxRequeuingCount`); from then on failures count under the other word of its metric.
const UPSTREAM_TRIES: u32 = 9;

/// Tries after which a machine of a gone Node keeps its tags: with pauses that double from 5 ms, about three quarters of an hour.
const UNTAG_TRIES: u32 = 20;

/// A machine whose tags change.
pub(super) struct Job {
    pub(super) taken: Taken,
    pub(super) about: NodeRef,
    /// Its Node, unless that is gone.
    pub(super) node: Option<Arc<Node>>,
}

impl TagController {
    /// Changes the tags of all these in one call. Of those that the provider faults on, each half is looked up alone. False when there was no answer about some.
    pub(super) async fn change(&self, change: TagChange, jobs: Vec<Job>) -> bool {
        let mut open = vec![jobs];
        let mut complete = true;
        while let Some(mut jobs) = open.pop() {
            match self.ask(change, &jobs).await {
                Ok(results) => self.finish_all(change, jobs, results).await,
                Err(CloudError::DryRun) => jobs.into_iter().for_each(|job| job.taken.finish(Outcome::Done)),
                Err(error) if error.is_about_items() && jobs.len() > 1 => {
                    let tail = jobs.split_off(jobs.len() / 2);
                    open.extend([jobs, tail]);
                }
                Err(error) => {
                    complete = false;
                    let cause = Cause::from(&error);
                    jobs.into_iter().for_each(|job| self.retry(job, &cause, error.retry()));
                }
            }
        }
        complete
    }

    async fn ask(&self, change: TagChange, jobs: &[Job]) -> Result<Vec<Result<(), Failure>>, CloudError> {
        let nodes: Vec<NodeRef> = jobs.iter().map(|job| job.about.clone()).collect();
        let tags = &self.context.options.tagging.tags;
        self.context.cloud.change_tags(change, &nodes, tags).await
    }

    async fn finish_all(&self, change: TagChange, jobs: Vec<Job>, results: Vec<Result<(), Failure>>) {
        let at_once = self.context.options.tagging.concurrent_syncs;
        stream::iter(jobs.into_iter().zip(results))
            .for_each_concurrent(at_once, |(job, result)| self.finish(change, job, result))
            .await;
    }

    async fn finish(&self, change: TagChange, job: Job, result: Result<(), Failure>) {
        let age = job
            .node
            .as_ref()
            .and_then(|node| node.metadata.creation_timestamp.as_ref());
        match (result, &job.node) {
            (Ok(()), Some(node)) => match self.write_label(node).await {
                Ok(()) => self.done(job),
                Err(error) => self.retry(job, &Cause::new(CauseKind::ApiServer, error.to_string()), error.retry()),
            },
            (Ok(()), None) => {
                info!(
                    node = job.about.name,
                    provider_id = job.about.provider_id,
                    "machine untagged"
                );
                self.done(job);
            }
            (Err(failure), _) if is_final(change, &failure, age.map(since)) => self.skip(job, &failure.to_string()),
            (Err(failure), _) => self.retry(job, &Cause::from(&failure), failure.retry()),
        }
    }

    /// Notes on the Node which tags its machine has.
    async fn write_label(&self, node: &Node) -> Result<(), WriteError> {
        let provider = self.context.scope.identity();
        let label = label(&provider);
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let metadata = json!({ "uid": node.metadata.uid, "labels": { label: *self.digest } });
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let Context {
            apply, nodes, metrics, ..
        } = &self.context;
        let why = "note which tags its machine has";
        let written = apply
            .patch::<Node>(Target::node(name), Part::Object, &patch, why)
            .await?;
        written.into_iter().for_each(|written| nodes.observe(written));
        info!(node = name, "machine tagged");
        if let (None, Some(created)) = (node.labels.get(label), &node.metadata.creation_timestamp) {
            metrics.tagging.initial_delay.observe(since(created).as_secs_f64());
        }
        Ok(())
    }

    fn done(&self, job: Job) {
        self.forget(&job);
        job.taken.finish(Outcome::Done);
    }

    fn forget(&self, job: &Job) {
        lock(&self.waiting).done(job.taken.key());
        lock(&self.skipped).remove(job.taken.key());
    }

    /// Another try cannot help.
    fn skip(&self, job: Job, why: &str) {
        let Job { taken, about, node } = job;
        let key = taken.key();
        lock(&self.waiting).done(key);
        // A Node that went meanwhile needs no Event.
        let known = node.is_some() && self.context.nodes.get(key).is_some();
        let before = known
            .then(|| lock(&self.skipped).insert(key.clone(), why.into()))
            .flatten();
        if before.is_none_or(|before| *before != *why) {
            info!(node = about.name, provider_id = about.provider_id, why, "tags skipped");
        }
        taken.finish(Outcome::Done);
    }

    /// An Event and the log say so from time to time.
    fn retry(&self, job: Job, cause: &Cause, retry: Retry) {
        let Job { taken, about, node } = job;
        let why = &*cause.reason;
        let failures = taken.failures();
        self.context.metrics.tagging.failed(failures >= UPSTREAM_TRIES);
        let name = &about.name;
        let due = lock(&self.waiting).failed(taken.key(), cause, Instant::now());
        let provider = self.context.scope.identity().name;
        match &node {
            Some(node) if due => {
                warn!(node = name, provider, why, "machine still not tagged");
                let message = format!("Cloud provider {provider:?} did not tag this Node's machine: {why}");
                self.recorder.node(node, EventKind::Warning, "TaggingFailed", message);
            }
            None if failures >= UNTAG_TRIES => {
                let provider_id = &about.provider_id;
                warn!(
                    node = name,
                    provider, provider_id, why, "machine keeps its tags: retries exhausted"
                );
                lock(&self.waiting).done(taken.key());
                return taken.finish(Outcome::Done);
            }
            None if due => warn!(
                node = name,
                provider, why, "machine of a Node that is gone still tagged"
            ),
            _ => debug!(node = name, why, ?retry, "tags not changed yet"),
        }
        taken.finish(Outcome::Retry(retry));
    }
}

/// The Node that a key of the queue is about.
pub(super) fn node_of(key: &str) -> &str {
    Work::of(key).node()
}
