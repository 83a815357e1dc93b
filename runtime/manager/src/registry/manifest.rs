//! Manifests of artifacts (OCI image 1.1): what of them is read, and those that are written.
//!
//! A component is an artifact as the CNCF's layout for WebAssembly has it, and `wkg` writes it: a configuration of a type of its own, one layer.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::registry::reference::ContentDigest;

/// Media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a list of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a component's configuration.
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of a component.
pub const WASM: &str = "application/wasm";
/// Media type of a configuration that says nothing, and its content.
pub const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");

/// Entries of a list that are checked.
pub const MOST_ENTRIES: usize = 64;

/// What a blob or manifest is, and where.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What it is.
    pub media_type: String,
    /// Its digest, as text.
    pub digest: String,
    /// Its size, in bytes.
    pub size: u64,
    /// What kind of artifact a manifest is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Notes on it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Of this content.
    pub fn of(media_type: &str, content: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: ContentDigest::of(content).to_string(),
            size: u64::try_from(content.len()).unwrap_or(u64::MAX),
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// The digest, read.
    pub fn digest(&self) -> anyhow::Result<ContentDigest> {
        ContentDigest::parse(&self.digest)
            .with_context(|| format!("the digest {:?} is not a SHA-256", shortened(&self.digest)))
    }
}

/// The manifest of an artifact.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Version of the format, 2.
    pub schema_version: u32,
    /// What it is.
    #[serde(default)]
    pub media_type: String,
    /// What kind of artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Its configuration.
    pub config: Descriptor,
    /// Its parts.
    pub layers: Vec<Descriptor>,
    /// What it says something about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Notes on it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A list of manifests.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Version of the format, 2.
    pub schema_version: u32,
    /// What it is.
    #[serde(default)]
    pub media_type: String,
    /// Its entries.
    pub manifests: Vec<Descriptor>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        if let Ok(manifest) = serde_json::from_slice::<Self>(bytes) {
            return Ok(manifest);
        }
        if serde_json::from_slice::<Index>(bytes).is_ok() {
            bail!("it is a list of manifests (an image for several platforms), and no component");
        }
        bail!("it is not an OCI manifest")
    }

    /// The layer that is the component.
    ///
    /// # Errors
    ///
    /// When the artifact is something else.
    pub fn component(&self) -> anyhow::Result<&Descriptor> {
        let kind = self.artifact_type.as_deref().unwrap_or(&self.config.media_type);
        let is_wasm = self.config.media_type == WASM_CONFIG || kind == WASM_CONFIG || kind == WASM;
        if !is_wasm {
            bail!(
                "it is not a WebAssembly component but {:?}; push the component with `cloudwit provider push` or `wkg oci push`",
                shortened(kind)
            );
        }
        match self.layers.as_slice() {
            [layer] if layer.media_type == WASM => Ok(layer),
            [layer] => bail!("its layer is {:?} and not {WASM}", shortened(&layer.media_type)),
            layers => bail!("it has {} layers; a component has one", layers.len()),
        }
    }
}

/// A text from outside, for a message.
pub fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest(change: impl FnOnce(&mut Value)) -> Result<String, String> {
        let digest = ContentDigest::of(b"x").to_string();
        let mut manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": { "mediaType": WASM_CONFIG, "digest": digest, "size": 1 },
            "layers": [{ "mediaType": WASM, "digest": digest, "size": 1, "urls": [] }],
            "unknown": true,
        });
        change(&mut manifest);
        let read = Manifest::parse(manifest.to_string().as_bytes()).map_err(|error| error.to_string())?;
        read.component()
            .map(|layer| layer.digest.clone())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn component_is_one_wasm_layer_and_other_artifacts_are_named() {
        assert!(manifest(|_| {}).is_ok());
        let refused = |change: fn(&mut Value)| manifest(change).unwrap_err();
        let image =
            refused(|manifest| manifest["config"]["mediaType"] = "application/vnd.oci.image.config.v1+json".into());
        assert!(image.contains("application/vnd.oci.image.config.v1+json"), "{image}");
        assert!(refused(|manifest| manifest["layers"] = json!([])).contains("has 0 layers"));
        assert!(refused(|manifest| manifest["layers"][0]["mediaType"] = "text/plain".into()).contains("text/plain"));
        assert!(
            refused(|manifest| *manifest = json!({ "schemaVersion": 2, "manifests": [] }))
                .contains("list of manifests")
        );
        assert!(refused(|manifest| *manifest = json!([])).contains("not an OCI manifest"));
    }
}
