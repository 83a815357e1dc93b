//! How a registry is reached, and what an artifact has to show: as the operator configured it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cloudwit_host::destination::Host;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::process::watched_files;
use crate::registry::credentials::{self, Credential};
use crate::registry::reference::Reference;
use crate::registry::signatures::keys::PublicKey;

// What stands above a key here is what the reference page and editors say about it.
/// How a registry is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct RegistryAccess {
    /// PEM file of the authorities that are trusted here, and no others. The public ones when left out. A relative path starts at this file's folder.
    pub ca: Option<PathBuf>,
    /// Docker config file with the credentials, such as the key `.dockerconfigjson` of a mounted imagePullSecret. Without it the registry is asked
    /// anonymously. A relative path starts at this file's folder.
    pub docker_config: Option<PathBuf>,
    /// Speak plain HTTP, so that whoever is on the way can read the credentials. The digest and the signature are checked all the same. Registries on
    /// this machine (`localhost`, 127.0.0.0/8, ::1) without `ca` are reached that way without it.
    pub plain_http: bool,
}

/// What a component has to be signed with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Verification {
    /// PEM files with public keys (ECDSA P-256), such as `cosign.pub`. A signature by one of them is enough. Relative paths start at this file's folder.
    pub keys: Vec<PathBuf>,
}

/// A component in a registry, by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedComponent {
    /// Where; has a digest.
    pub reference: Reference,
    /// How the registry is reached.
    pub access: RegistryAccess,
    /// Files of the public keys, one of which has to have signed it; none where no signature is required.
    pub keys: Vec<PathBuf>,
    /// The most that it may have, in bytes.
    pub limit: u64,
}

impl PinnedComponent {
    /// The files that it is pulled and checked by.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let RegistryAccess { ca, docker_config, .. } = &self.access;
        self.keys.iter().chain(ca).chain(docker_config)
    }

    /// The public keys, read. Blocks.
    pub(super) fn read_keys(&self) -> anyhow::Result<Vec<PublicKey>> {
        let read = |file: &PathBuf| {
            let named = || format!("verify.keys: {}", file.display());
            PublicKey::from_pem(&read(file).with_context(named)?).with_context(named)
        };
        self.keys.iter().map(read).collect()
    }
}

/// What the files of a [`RegistryAccess`] say.
pub(super) struct Opened {
    pub ca: Option<Vec<u8>>,
    pub credential: Option<Credential>,
}

impl RegistryAccess {
    /// Reads the files. Blocks.
    pub(super) fn open(&self, reference: &Reference) -> anyhow::Result<Opened> {
        let ca = self
            .ca
            .as_ref()
            .map(|file| read(file).with_context(|| format!("registry.ca: {}", file.display())));
        let credential = match &self.docker_config {
            None => None,
            Some(file) => {
                let named = || format!("registry.dockerConfig: {}", file.display());
                let text = String::from_utf8(read(file).with_context(named)?)
                    .ok()
                    .context("is not UTF-8 text")
                    .with_context(named)?;
                credentials::find(&text, reference).with_context(named)?
            }
        };
        Ok(Opened {
            ca: ca.transpose()?,
            credential,
        })
    }

    /// Whether this registry is spoken to in plain HTTP.
    pub fn is_plain(&self, host: &Host) -> bool {
        self.plain_http || (self.ca.is_none() && is_loopback(host))
    }
}

/// Whether it is this machine by its name.
pub fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Ip(ip) => ip.is_loopback(),
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    watched_files::read_file(file).context("cannot be read")
}
