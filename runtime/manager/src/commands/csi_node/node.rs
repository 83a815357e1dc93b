//! This machine's Node: its annotation, followed.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use cloudwit_csi_node::info::Annotation;
use cloudwit_model::volume::NODE_ANNOTATION;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::api::server;

/// Between two tries to reach the API server. A plugin that is registered mounts and unmounts without it.
const AGAIN: Duration = Duration::from_secs(10);

/// A Node's name (RFC 1123 subdomain), which goes into a field selector.
pub fn name(text: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.');
    if (1..=253).contains(&text.len()) && text.chars().all(fits) {
        Ok(text.into())
    } else {
        Err("a Node's name has lower-case letters, digits, '-' and '.', such as node-7".into())
    }
}

/// Follows the annotation; does not end.
pub async fn follow(kubeconfig: Option<&Path>, node: &str, annotation: &watch::Sender<Annotation>) {
    loop {
        match server::connect(kubeconfig).await {
            Ok(client) => watch(client, node, annotation).await,
            Err(error) => warn!("{error:#}; trying again in {AGAIN:?}"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn watch(client: Client, node: &str, annotation: &watch::Sender<Annotation>) {
    let only = watcher::Config::default().fields(&format!("metadata.name={node}"));
    let mut events = pin!(watcher(Api::<PartialObjectMeta<Node>>::all(client), only).default_backoff());
    let mut listed = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed = None,
            Ok(watcher::Event::InitApply(found)) => listed = Some(read(&found)),
            Ok(watcher::Event::InitDone) => set(annotation, node, listed.take()),
            Ok(watcher::Event::Apply(found)) => set(annotation, node, Some(read(&found))),
            Ok(watcher::Event::Delete(_)) => set(annotation, node, None),
            Err(error) => warn!(node, %error, "failed to watch the Node; retrying"),
        }
    }
}

fn read(node: &impl ResourceExt) -> Annotation {
    let value = node.annotations().get(NODE_ANNOTATION);
    value.map_or(Annotation::Missing, |value| Annotation::Value(value.clone()))
}

/// None where there is no such Node.
fn set(annotation: &watch::Sender<Annotation>, node: &str, found: Option<Annotation>) {
    let now = found.unwrap_or(Annotation::Missing);
    annotation.send_if_modified(|before| {
        let changed = *before != now;
        if changed {
            match &now {
                Annotation::Value(value) => info!(node, value, "node information read"),
                _ => info!(node, "Node without {NODE_ANNOTATION}; waiting for the controller"),
            }
            *before = now.clone();
        }
        changed
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_nodes_go_into_the_selector() {
        assert!(name("node-7.example").is_ok());
        for odd in ["", "a,b", "a=b", "A", &"a".repeat(254)] {
            assert!(name(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn annotation_follows_the_node() {
        let (send, seen) = watch::channel(Annotation::default());
        let mut node = Node::default();
        set(&send, "n", Some(read(&node)));
        assert_eq!(*seen.borrow(), Annotation::Missing);
        node.annotations_mut().insert(NODE_ANNOTATION.into(), "{}".into());
        set(&send, "n", Some(read(&node)));
        assert_eq!(*seen.borrow(), Annotation::Value("{}".into()));
        set(&send, "n", None);
        assert_eq!(*seen.borrow(), Annotation::Missing);
    }
}
