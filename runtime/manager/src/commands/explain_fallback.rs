//! `cloudwit explain` without a running process: the object itself and its Events.

use anyhow::Context;
use cloudwit_controllers::explain_object;
use cloudwit_controllers::kube::node::Node;
use cloudwit_controllers::report::explain::span;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim, Service};
use k8s_openapi::jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::commands::explain::Object;
use crate::commands::explain_answer::Answer;
use crate::volumes::sentences;

/// The newest so many Events are shown.
const EVENTS: usize = 10;

/// Events about Nodes and PersistentVolumes live here, since these have no namespace.
const OF_NO_NAMESPACE: &str = "default";

/// The answer of the API server; None when there is no such object.
pub async fn ask(client: &Client, object: &Object) -> anyhow::Result<Option<Answer>> {
    let asked = "failed to query the API server";
    let (sentences, kind, namespace, name) = match object {
        Object::Node { name } => {
            let node = Api::<Node>::all(client.clone()).get_opt(name).await.context(asked)?;
            let said = node.map(|node| explain_object::node(&node));
            (said, "Node", OF_NO_NAMESPACE, name.as_str())
        }
        Object::Service { name } => {
            let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
            let api = Api::<Service>::namespaced(client.clone(), namespace);
            let said = api.get_opt(name).await.context(asked)?;
            let said = said.map(|service| explain_object::service(&service));
            (said, "Service", namespace, name)
        }
        Object::Pv { name } => {
            let volumes = Api::<PersistentVolume>::all(client.clone());
            let said = volumes.get_opt(name).await.context(asked)?;
            let said = said.map(|volume| sentences::volume(&volume));
            (said, "PersistentVolume", OF_NO_NAMESPACE, name.as_str())
        }
        Object::Pvc { name } => {
            let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
            let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
            let said = claims.get_opt(name).await.context(asked)?;
            let said = said.map(|claim| sentences::claim(&claim));
            (said, "PersistentVolumeClaim", namespace, name)
        }
    };
    let Some(sentences) = sentences else { return Ok(None) };
    let events = match events(client, kind, namespace, name).await {
        Ok(events) => events,
        // They are an extra: a reader without the right to see them still gets the rest.
        Err(error) => vec![format!("could not be read: {error}")],
    };
    Ok(Some(Answer::from_api_server(object.to_string(), sentences, events)))
}

async fn events(client: &Client, kind: &str, namespace: &str, name: &str) -> kube::Result<Vec<String>> {
    let about = ListParams::default().fields(&format!("involvedObject.kind={kind},involvedObject.name={name}"));
    let mut events = Api::<Event>::namespaced(client.clone(), namespace)
        .list(&about)
        .await?
        .items;
    events.sort_by_key(happened);
    let oldest = events.len().saturating_sub(EVENTS);
    Ok(events[oldest..]
        .iter()
        .map(|event| line(event, Timestamp::now()))
        .collect())
}

/// When it happened the last time.
fn happened(event: &Event) -> Option<Timestamp> {
    let moment = event.last_timestamp.as_ref().or(event.first_timestamp.as_ref());
    moment
        .map(|time| time.0)
        .or_else(|| event.event_time.as_ref().map(|time| time.0))
}

fn line(event: &Event, now: Timestamp) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let ago = happened(event)
        .and_then(|then| now.duration_since(then).try_into().ok())
        .map_or_else(String::new, |ago| format!("{} ago: ", span(ago)));
    let times = match event.count {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    };
    let from = event
        .source
        .as_ref()
        .and_then(|source| source.component.as_deref())
        .map_or_else(String::new, |component| format!(" [{component}]"));
    format!(
        "{ago}{} {}{times}: {}{from}",
        text(&event.type_),
        text(&event.reason),
        text(&event.message)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_with_its_age_and_how_often() {
        let event: Event = serde_json::from_value(serde_json::json!({
            "metadata": {}, "involvedObject": {}, "type": "Warning", "reason": "InitializationFailed",
            "message": "Still waiting: down", "count": 4, "lastTimestamp": "2026-01-01T00:00:00Z",
            "source": { "component": "cloud-node-controller" },
        }))
        .unwrap();
        let now = "2026-01-01T00:03:10Z".parse().unwrap();
        assert_eq!(
            line(&event, now),
            "3 m 10 s ago: Warning InitializationFailed (4 times): Still waiting: down [cloud-node-controller]"
        );
        let bare: Event = serde_json::from_value(serde_json::json!({ "metadata": {}, "involvedObject": {} })).unwrap();
        assert_eq!(line(&bare, now), " : ");
    }
}
