//! Nodes and Services from manifests, as a provider gets to see them.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use cloudwit_controllers::kube::node::Node;
use cloudwit_controllers::kube::node::view::{cluster_node, node_ref};
use cloudwit_controllers::kube::service::view::service_view;
use cloudwit_model::{ClusterNode, NodeRef, Service};
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What stands for standard input in the place of a file.
const STDIN: &str = "-";

/// The Node of `NAME` or `NAME=PROVIDER-ID`.
pub fn node(text: &str) -> Result<NodeRef, String> {
    let (name, id) = match text.split_once('=') {
        Some((name, id)) => (name, Some(id)),
        None => (text, None),
    };
    match (name, id) {
        ("", _) => Err("give NAME or NAME=PROVIDER-ID".into()),
        (_, Some("")) => Err(format!("nothing is after =; give {name} or {name}=PROVIDER-ID")),
        (name, id) => Ok(NodeRef {
            name: name.to_owned(),
            provider_id: id.map(str::to_owned),
            ..NodeRef::default()
        }),
    }
}

/// The Nodes of a file with manifests: of kind Node, NodeList or List.
pub fn nodes(file: &Path) -> anyhow::Result<Vec<(NodeRef, ClusterNode)>> {
    let mut nodes = Vec::new();
    for object in objects(file)? {
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind != "Node" {
            bail!(
                "--nodes={}: an object is of kind {kind:?}; give Nodes only",
                file.display()
            );
        }
        let node = Node::deserialize(object).with_context(|| format!("--nodes={}", file.display()))?;
        nodes.push((node_ref(&node), cluster_node(&node)));
    }
    Ok(nodes)
}

/// The manifest of the one Service of a file.
pub fn manifest(file: &Path) -> anyhow::Result<Value> {
    let [object] = <[Value; 1]>::try_from(objects(file)?)
        .map_err(|all| anyhow!("{}: {} objects; give one Service", file.display(), all.len()))?;
    Ok(object)
}

/// The Service of a manifest. One without a uid, which the API server would have given, gets one that is made of its name.
pub fn service(manifest: Value) -> anyhow::Result<Service> {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    if kind != "Service" {
        bail!("expected a Service, not an object of kind {kind:?}");
    }
    let service = k8s_openapi::api::core::v1::Service::deserialize(manifest).context("this is not a Service")?;
    let mut view = service_view(&service).map_err(|wrong| anyhow!("invalid Service: {wrong}"))?;
    if view.namespace.is_empty() {
        view.namespace = "default".into();
    }
    if view.uid.is_empty() {
        let digest = Sha256::digest(format!("{}/{}", view.namespace, view.name));
        view.uid = uuid::Uuid::from_slice(&digest[..16])?.to_string();
    }
    Ok(view)
}

fn objects(file: &Path) -> anyhow::Result<Vec<Value>> {
    let text = if file == Path::new(STDIN) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
        text
    } else {
        std::fs::read_to_string(file).with_context(|| format!("{}: cannot be read as text", file.display()))?
    };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| format!("{}: no YAML or JSON", file.display()))?;
    Ok(documents.into_iter().flat_map(items).collect())
}

/// The items of a list, which need not say what they are, since the list does; or the one object.
fn items(mut document: Value) -> Vec<Value> {
    let kind = document["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
    let kind = kind.unwrap_or_default().to_owned();
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(mut items)) => {
            for item in items
                .iter_mut()
                .filter(|item| item.is_object() && item.get("kind").is_none())
            {
                item["kind"] = kind.as_str().into();
            }
            items
        }
        _ if document.is_null() => Vec::new(),
        _ => vec![document],
    }
}
