//! Server-side apply of the manifests.

use std::path::Path;

use anyhow::{Context, bail};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use crate::api::server;
use crate::commands::install::webhooks::CONFIGURATION;

/// Who we are among those who set fields.
const MANAGER: &str = "cloudwit";

/// Applies them one after the other and says what became of each. Stops at the first that is refused; to apply all of them once more does
/// no harm.
pub async fn apply(objects: &[Value], kubeconfig: Option<&Path>, force: bool) -> anyhow::Result<()> {
    let client = server::connect(kubeconfig).await?;
    for object in objects {
        let (api, object, shown) = addressed(&client, object)?;
        let params = PatchParams {
            force,
            ..PatchParams::apply(MANAGER)
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        let before = api.get_metadata_opt(&name).await;
        let before = before.with_context(|| format!("reading {shown}"))?;
        let before = before.map(|object| object.metadata.resource_version);
        match api.patch(&name, &params, &Patch::Apply(&object)).await {
            Ok(after) => println!("{shown} {}", became(before, &after.metadata.resource_version)),
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "{shown}: others have set some of its fields: {}; --force-conflicts takes them over",
                status.message
            ),
            Err(error) => return Err(error).with_context(|| format!("{shown} was refused")),
        }
    }
    Ok(())
}

/// What became of an object that had this version, or did not exist.
fn became(before: Option<Option<String>>, after: &Option<String>) -> &'static str {
    match before {
        None => "created",
        Some(version) if version == *after => "unchanged",
        Some(_) => "configured",
    }
}

/// The authorities that the API server trusts the webhooks by now, as PEM; none where they are not registered.
pub async fn webhook_authorities(kubeconfig: Option<&Path>) -> anyhow::Result<Option<String>> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(server::connect(kubeconfig).await?);
    let registered = configurations.get_opt(CONFIGURATION).await;
    let registered = registered.context("reading how the webhooks are registered now")?;
    let webhook = registered.and_then(|registered| registered.webhooks?.into_iter().next());
    let authorities = webhook.and_then(|webhook| webhook.client_config.ca_bundle);
    Ok(authorities.map(|pem| String::from_utf8_lossy(&pem.0).into_owned()))
}

/// Where the object is, and how it is shown.
fn addressed(client: &Client, object: &Value) -> anyhow::Result<(Api<DynamicObject>, DynamicObject, String)> {
    let object: DynamicObject = serde_json::from_value(object.clone()).context("reading a manifest")?;
    let types = object.types.clone().context("a manifest without apiVersion and kind")?;
    let kind = GroupVersionKind::try_from(&types).context("reading apiVersion and kind of a manifest")?;
    let resource = ApiResource::from_gvk(&kind);
    let name = object.metadata.name.clone().unwrap_or_default();
    let api = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    Ok((api, object, format!("{} {name}", kind.kind)))
}
