//! Push and signature of a component, for `cloudwit provider push` and `sign`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::json;

use crate::registry::access::RegistryAccess;
use crate::registry::client::Client;
use crate::registry::manifest::{Descriptor, EMPTY, INDEX, Index, MANIFEST, Manifest, WASM, WASM_CONFIG};
use crate::registry::pull;
use crate::registry::reference::{ContentDigest, Reference};
use crate::registry::signatures::bundle;
use crate::registry::signatures::keys::PrivateKey;

/// What a component exports and imports, for its configuration.
#[derive(Debug, Default)]
pub struct Interfaces {
    /// Exports.
    pub exports: Vec<String>,
    /// Imports.
    pub imports: Vec<String>,
}

/// Digest of the manifest that the reference leads to now.
pub async fn pin(reference: &Reference, access: &RegistryAccess) -> anyhow::Result<ContentDigest> {
    pull::resolve(&Client::open(reference, access).await?, reference).await
}

/// Pushes a component under the tag of the reference; the digest of its manifest. The manifest has no time in it, so that the same component has
/// the same digest each time.
pub async fn push(
    component: Vec<u8>,
    interfaces: &Interfaces,
    reference: &Reference,
    access: &RegistryAccess,
) -> anyhow::Result<ContentDigest> {
    let client = Client::open(reference, access).await?;
    let layer = Descriptor::of(WASM, &component);
    let config = json!({
        "created": Timestamp::UNIX_EPOCH.to_string(),
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer.digest],
        "component": { "exports": interfaces.exports, "imports": interfaces.imports },
    });
    let config = serde_json::to_vec(&config).context("writing the configuration")?;
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        artifact_type: Some(WASM_CONFIG.to_owned()),
        config: Descriptor::of(WASM_CONFIG, &config),
        layers: vec![layer],
        subject: None,
        annotations: BTreeMap::new(),
    };
    let manifest = serde_json::to_vec(&manifest).context("writing the manifest")?;
    let digest = ContentDigest::of(&manifest);
    client.put_blob(component).await?;
    client.put_blob(config).await?;
    client.put_manifest(&reference.version(), MANIFEST, manifest).await?;
    Ok(digest)
}

/// Signs the component that the reference leads to; the digest of its manifest. The signature is a bundle that refers to the manifest; where the registry
/// keeps no list of these, the list under the tag `sha256-HEX` is written.
pub async fn sign(reference: &Reference, access: &RegistryAccess, key: &PrivateKey) -> anyhow::Result<ContentDigest> {
    let client = Client::open(reference, access).await?;
    let digest = pull::resolve(&client, reference).await?;
    let subject = client
        .manifest(&digest.to_string())
        .await?
        .context("the manifest is gone")?;
    let bundle = bundle::sign(&digest, key)?;
    let (empty_type, empty) = EMPTY;
    let manifest = Manifest {
        schema_version: 2,
        media_type: MANIFEST.to_owned(),
        artifact_type: Some(bundle::BUNDLE.to_owned()),
        config: Descriptor::of(empty_type, empty),
        layers: vec![Descriptor::of(bundle::BUNDLE, &bundle)],
        subject: Some(Descriptor::of(MANIFEST, &subject)),
        annotations: BTreeMap::from([
            ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
            (
                "dev.sigstore.bundle.predicateType".to_owned(),
                bundle::SIGNED.to_owned(),
            ),
        ]),
    };
    let content = serde_json::to_vec(&manifest).context("writing the manifest")?;
    client.put_blob(empty.to_vec()).await?;
    client.put_blob(bundle).await?;
    let version = ContentDigest::of(&content).to_string();
    let entry = Descriptor {
        artifact_type: manifest.artifact_type,
        annotations: manifest.annotations,
        ..Descriptor::of(MANIFEST, &content)
    };
    if !client.put_manifest(&version, MANIFEST, content).await? {
        list(&client, &digest, entry).await?;
    }
    Ok(digest)
}

/// Adds an entry to the list under the tag, which this client keeps since the registry does not.
async fn list(client: &Client, digest: &ContentDigest, entry: Descriptor) -> anyhow::Result<()> {
    let tag = bundle::referrers_tag(digest);
    let before = client.manifest(&tag).await?;
    let before = before.and_then(|index| serde_json::from_slice::<Index>(&index).ok());
    let mut manifests = before.map(|index| index.manifests).unwrap_or_default();
    manifests.retain(|known| known.digest != entry.digest);
    manifests.push(entry);
    let index = Index {
        schema_version: 2,
        media_type: INDEX.to_owned(),
        manifests,
    };
    let content = serde_json::to_vec(&index).context("writing the list of referrers")?;
    client.put_manifest(&tag, INDEX, content).await?;
    Ok(())
}
