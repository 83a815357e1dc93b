//! `[BlockStorage]` of `cloud.conf`, which upstream's storage driver reads from the same file.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::given;

/// How many volumes a server has at most, where none is configured: upstream's number.
const USUAL_LIMIT: u32 = 256;

/// `[BlockStorage]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct BlockStorage {
    /// How many volumes a server has at most.
    pub node_volume_attach_limit: Option<u32>,
    /// Whether volumes can be attached to servers of every zone.
    pub ignore_volume_az: bool,
    ignore_volume_microversion: bool,
    bs_version: Option<String>,
    trust_device_path: IgnoredAny,
    rescan_on_resize: IgnoredAny,
}

impl BlockStorage {
    /// How many volumes a server has at most. Never none, which Kubernetes takes for no limit.
    pub fn limit(&self) -> u32 {
        self.node_volume_attach_limit.unwrap_or(USUAL_LIMIT).max(1)
    }

    /// Keys without effect here get a warning: they may be there for another program.
    pub(crate) fn validate(&self, problems: &mut Problems) {
        if self.node_volume_attach_limit == Some(0) {
            problems.add(
                "blockstorage.node-volume-attach-limit",
                "0 leaves no volume to any server; write a number above it, or leave the key out for 256",
            );
        }
        if self.ignore_volume_microversion {
            problems.warn(
                "blockstorage.ignore-volume-microversion",
                "this key means nothing: volumes need Cinder of 2017 (Pike, microversion 3.42) or newer",
            );
        }
        if let Some(version) = given(&self.bs_version).filter(|version| !matches!(*version, "auto" | "v3")) {
            problems.warn(
                "blockstorage.bs-version",
                format!("volumes need version 3 of Cinder's API; \"{version}\" means nothing"),
            );
        }
    }
}
