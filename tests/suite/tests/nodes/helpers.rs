//! What the stories about Nodes have in common.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloudwit_controllers::{Controller, Options};
use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::objects::{is_uninitialised, ready_condition};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::fake_cloud::{FakeCloud, quick};

pub const LONG: Duration = Duration::from_secs(180);
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

pub fn nodes(client: &Client) -> Api<Node> {
    Api::all(client.clone())
}

/// Only the loops a test is about, so that it can count calls.
pub fn only(controller: Controller, mut options: Options) -> Options {
    options.controllers = [controller].into();
    options
}

pub fn init_only() -> Options {
    let mut options = only(Controller::CloudNode, quick());
    options.node.status_update_frequency = Duration::from_secs(3600);
    options
}

pub fn lifecycle_only() -> Options {
    only(Controller::CloudNodeLifecycle, quick())
}

pub async fn is_initialised(client: &Client, name: &str) -> Result<Node> {
    let node = nodes(client).get(name).await?;
    ensure!(!is_uninitialised(&node), "it is still tainted");
    Ok(node)
}

/// The Events about a Node, as `Type Reason: message`.
pub async fn events(client: &Client, name: &str) -> Result<Vec<String>> {
    let about = ListParams::default().fields(&format!("involvedObject.name={name},involvedObject.kind=Node"));
    let list = Api::<Event>::namespaced(client.clone(), "default").list(&about).await?;
    let text = |event: Event| {
        let Event {
            type_, reason, message, ..
        } = event;
        format!(
            "{} {}: {}",
            type_.unwrap_or_default(),
            reason.unwrap_or_default(),
            message.unwrap_or_default()
        )
    };
    Ok(list.items.into_iter().map(text).collect())
}

pub async fn has_event(client: &Client, name: &str, part: &str) -> Result<String> {
    let events = events(client, name).await?;
    events
        .iter()
        .find(|event| event.contains(part))
        .cloned()
        .with_context(|| format!("no {part:?} among {events:?}"))
}

pub fn address_list(node: &Node) -> Vec<String> {
    let addresses = node
        .status
        .as_ref()
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default();
    addresses
        .iter()
        .map(|address| format!("{} {}", address.type_, address.address))
        .collect()
}

/// Its taints but for those that the API server derives from conditions.
pub fn taint_keys(node: &Node) -> Vec<String> {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    let ours = taints
        .iter()
        .filter(|taint| !taint.key.starts_with("node.kubernetes.io/"));
    ours.map(|taint| taint.key.clone()).collect()
}

pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref())
}

pub async fn set_ready(client: &Client, name: &str, ready: Option<bool>) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": { "conditions": [ready_condition(ready)] } }));
    nodes(client)
        .patch_status(name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// An initialised Node that is not Ready, and its machine.
pub async fn not_ready(client: &Client, cloud: &FakeCloud, name: &str) -> Result<Node> {
    cloud.run(name);
    Ok(NodeBuilder::new(name)
        .initialised()
        .provider_id(&cloud.id(name))
        .ready(None)
        .create(client)
        .await?)
}
