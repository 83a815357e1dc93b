//! Pull of a component: from the store or the registry, by digest, with its signatures.
//!
//! | entry of the store | what it is |
//! | ------------------ | ---------- |
//! | `HEX.manifest.json` | the manifest with this digest |
//! | `HEX.wasm` | a blob with this digest: the component |
//! | `HEX.signatures.json` | signatures of the manifest with this digest, checked each time |

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::time::timeout;

use crate::registry::access::PinnedComponent;
use crate::registry::client::Client;
use crate::registry::manifest::{self, Descriptor, Index, Manifest};
use crate::registry::reference::{ContentDigest, Reference};
use crate::registry::signatures::bundle;
use crate::registry::signatures::keys::PublicKey;
use crate::registry::signatures::simple_signing;
use crate::registry::signatures::{self, SignatureFile};
use crate::registry::store::Store;

/// How long one pull may take.
const LONGEST: Duration = Duration::from_secs(180);

/// Size of a manifest or of all signatures in the store, in bytes.
const SMALL: u64 = 16 << 20;

/// The file with the component, whose digest is that of the reference, and which one of the keys has signed where there are any. Asks the
/// registry for what is not in the store below `cache_dir`.
///
/// # Errors
///
/// When the registry does not give it, or it is not what it has to be. Trying again may help.
pub async fn component(pinned: &PinnedComponent, cache_dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let reference = &pinned.reference;
    let begun = Instant::now();
    let pull = Pull::open(pinned, cache_dir);
    let pulled = timeout(LONGEST, async { pull.await?.run().await }).await;
    let pulled = pulled.unwrap_or_else(|_| Err(anyhow::anyhow!("not done within {} s", LONGEST.as_secs())));
    let (file, from) = pulled.with_context(|| format!("{reference} cannot be used"))?;
    let (file_name, took_seconds) = (file.display(), begun.elapsed().as_secs_f64());
    match from {
        Origin::Registry => tracing::info!(
            reference = %reference,
            from = "registry",
            signed = !pinned.keys.is_empty(),
            file = %file_name,
            took_seconds,
            "component pulled"
        ),
        Origin::Store => {
            tracing::debug!(reference = %reference, file = %file_name, took_seconds, "component in the store")
        }
    }
    Ok(file)
}

/// Where the component was.
enum Origin {
    Store,
    Registry,
}

struct Pull {
    pinned: PinnedComponent,
    digest: ContentDigest,
    keys: Vec<PublicKey>,
    store: Store,
}

/// What is in the store of it.
struct Kept {
    manifest: Option<Vec<u8>>,
    signatures: Vec<SignatureFile>,
}

impl Pull {
    async fn open(pinned: &PinnedComponent, cache_dir: Option<&Path>) -> anyhow::Result<Self> {
        let digest = pinned.reference.digest.clone().context("it has no digest")?;
        let (of, dir) = (pinned.clone(), cache_dir.map(Path::to_path_buf));
        let opened = tokio::task::spawn_blocking(move || anyhow::Ok((of.read_keys()?, Store::open(dir.as_deref()))));
        let (keys, store) = opened.await.context("reading its files")??;
        Ok(Self {
            pinned: pinned.clone(),
            digest,
            keys,
            store,
        })
    }

    async fn run(self) -> anyhow::Result<(PathBuf, Origin)> {
        let kept = self.kept().await?;
        if let Some(file) = self.stored(&kept).await? {
            return Ok((file, Origin::Store));
        }
        let client = Client::open(&self.pinned.reference, &self.pinned.access).await?;
        let manifest = match kept.manifest {
            Some(manifest) => manifest,
            None => self.pull_manifest(&client).await?,
        };
        let read = Manifest::parse(&manifest)?;
        let layer = read.component()?;
        if layer.size > self.pinned.limit {
            bail!(
                "the component has {} bytes, more than limits.componentBytes allows, {}",
                layer.size,
                self.pinned.limit
            );
        }
        // Before the component, which may be large.
        let signatures = match self.keys.is_empty() {
            true => Vec::new(),
            false => {
                let found = signatures_of(&client, &self.digest).await.context("its signatures")?;
                signatures::check(&found, &manifest, &self.keys)?;
                found
            }
        };
        let component = layer.digest()?;
        let content = client.blob(&component, layer.size).await?;
        if content.len() as u64 != layer.size {
            bail!(
                "the component has {} bytes and not {}, as its manifest says",
                content.len(),
                layer.size
            );
        }
        let file = self.keep(manifest, signatures, component, content).await?;
        Ok((file, Origin::Registry))
    }

    async fn pull_manifest(&self, client: &Client) -> anyhow::Result<Vec<u8>> {
        let manifest = client.manifest(&self.digest.to_string()).await?;
        let manifest = manifest.context("the registry does not have it, or the credentials do not show it")?;
        let found = ContentDigest::of(&manifest);
        if found != self.digest {
            bail!("the manifest that the registry sent has another digest, {found}");
        }
        Ok(manifest)
    }

    /// What is in the store, the manifest by its digest.
    async fn kept(&self) -> anyhow::Result<Kept> {
        let (store, digest) = (self.store.clone(), self.digest.clone());
        let read = move || {
            let manifest = store.get(&manifest_name(&digest), SMALL).map(|(_, content)| content);
            let signatures = store.get(&signatures_name(&digest), SMALL);
            Kept {
                manifest: manifest.filter(|content| ContentDigest::of(content) == digest),
                signatures: signatures
                    .and_then(|(_, content)| serde_json::from_slice(&content).ok())
                    .unwrap_or_default(),
            }
        };
        tokio::task::spawn_blocking(read).await.context("reading the store")
    }

    /// The component, if the store has it and its signatures are good.
    async fn stored(&self, kept: &Kept) -> anyhow::Result<Option<PathBuf>> {
        let Some(manifest) = &kept.manifest else {
            return Ok(None);
        };
        let signed = self.keys.is_empty() || signatures::check(&kept.signatures, manifest, &self.keys).is_ok();
        let Ok(component) = Manifest::parse(manifest).and_then(|read| read.component()?.digest()) else {
            return Ok(None);
        };
        if !signed {
            return Ok(None);
        }
        let (store, limit) = (self.store.clone(), self.pinned.limit);
        let read = move || {
            let (file, content) = store.get(&component_name(&component), limit)?;
            (ContentDigest::of(&content) == component).then_some(file)
        };
        tokio::task::spawn_blocking(read).await.context("reading the store")
    }

    async fn keep(
        &self,
        manifest: Vec<u8>,
        signatures: Vec<SignatureFile>,
        component: ContentDigest,
        content: Vec<u8>,
    ) -> anyhow::Result<PathBuf> {
        let (store, digest) = (self.store.clone(), self.digest.clone());
        let signatures = serde_json::to_vec(&signatures).context("writing its signatures")?;
        let write = move || {
            store.put(&manifest_name(&digest), &manifest)?;
            store.put(&signatures_name(&digest), &signatures)?;
            store.put(&component_name(&component), &content)
        };
        tokio::task::spawn_blocking(write)
            .await
            .context("writing the store")?
            .context("the component cannot be kept")
    }
}

fn manifest_name(digest: &ContentDigest) -> String {
    format!("{}.manifest.json", digest.hex())
}

fn signatures_name(digest: &ContentDigest) -> String {
    format!("{}.signatures.json", digest.hex())
}

fn component_name(digest: &ContentDigest) -> String {
    format!("{}.wasm", digest.hex())
}

/// Digest of the manifest that a reference leads to now, after a look whether it is a component's.
pub async fn resolve(client: &Client, reference: &Reference) -> anyhow::Result<ContentDigest> {
    let manifest = client.manifest(&reference.version()).await?;
    let manifest = manifest.with_context(|| {
        format!(
            "the registry has no {:?} in {}, or the credentials do not show it",
            reference.version(),
            reference.repository
        )
    })?;
    let digest = ContentDigest::of(&manifest);
    if let Some(expected) = reference.digest.as_ref().filter(|expected| **expected != digest) {
        bail!("the manifest that the registry sent has the digest {digest} and not {expected}");
    }
    Manifest::parse(&manifest)?.component()?;
    Ok(digest)
}

/// All signatures of a manifest, in either format. One that cannot be read is left out.
async fn signatures_of(client: &Client, digest: &ContentDigest) -> anyhow::Result<Vec<SignatureFile>> {
    let mut found = Vec::new();
    for entry in referrers(client, digest)
        .await?
        .into_iter()
        .filter(may_be_bundle)
        .take(signatures::MOST)
    {
        match bundle_of(client, &entry).await {
            Ok(bundle) => found.extend(bundle),
            Err(error) => tracing::warn!(%digest, "a signature cannot be read: {error:#}"),
        }
    }
    if let Some(manifest) = client.manifest(&simple_signing::tag(digest)).await? {
        let Ok(manifest) = Manifest::parse(&manifest) else {
            return Ok(found);
        };
        for layer in manifest.layers.iter().take(signatures::MOST) {
            let Some(signature) = layer.annotations.get(simple_signing::SIGNATURE) else {
                continue;
            };
            if layer.media_type == simple_signing::PAYLOAD
                && layer.size <= signatures::LARGEST
                && let Ok(digest) = layer.digest()
            {
                match client.blob(&digest, layer.size).await {
                    Ok(payload) => found.push(SignatureFile::simple(&payload, signature)),
                    Err(error) => tracing::warn!(%digest, "a signature cannot be read: {error:#}"),
                }
            }
        }
    }
    Ok(found)
}

/// What refers to a manifest: by the registry's list, else by the tag that clients keep instead.
pub(super) async fn referrers(client: &Client, digest: &ContentDigest) -> anyhow::Result<Vec<Descriptor>> {
    let listed = client.referrers(digest).await.unwrap_or_default();
    let mut all = listed.as_deref().and_then(entries).unwrap_or_default();
    if let Some(index) = client.manifest(&bundle::referrers_tag(digest)).await? {
        all.extend(entries(&index).unwrap_or_default());
    }
    all.truncate(manifest::MOST_ENTRIES);
    Ok(all)
}

fn entries(index: &[u8]) -> Option<Vec<Descriptor>> {
    serde_json::from_slice::<Index>(index).ok().map(|index| index.manifests)
}

/// Where a registry does not list the kind of an entry, its manifest has it.
fn may_be_bundle(entry: &Descriptor) -> bool {
    entry.artifact_type.as_deref().is_none_or(|kind| kind == bundle::BUNDLE)
}

async fn bundle_of(client: &Client, entry: &Descriptor) -> anyhow::Result<Option<SignatureFile>> {
    let Ok(digest) = entry.digest() else { return Ok(None) };
    let Some(content) = client.manifest(&digest.to_string()).await? else {
        return Ok(None);
    };
    if ContentDigest::of(&content) != digest {
        return Ok(None);
    }
    let Ok(manifest) = Manifest::parse(&content) else {
        return Ok(None);
    };
    let [layer] = manifest.layers.as_slice() else {
        return Ok(None);
    };
    if layer.media_type != bundle::BUNDLE || layer.size > signatures::LARGEST {
        return Ok(None);
    }
    let content = client.blob(&layer.digest()?, layer.size).await?;
    Ok(Some(SignatureFile::bundle(&content)))
}
