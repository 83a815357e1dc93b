//! Builds `tests/kubernetes`: etcd, the control plane, kubelet and kube-proxy in one program, for clusters with real Nodes.
//!
//! Apart from `tests/controlplane`, which most tests run, because it takes longer to build: only what asks for real Nodes builds it.

pub mod aws_peer;
pub mod controlplane;
pub mod node_parts;
pub mod oci;
pub mod peer;
pub mod sidecars;

use std::path::PathBuf;

use anyhow::Result;

use crate::go::module::GoModule;
use crate::tools;

/// How it is built.
pub const MODULE: GoModule = GoModule {
    name: "kubernetes",
    folder: "tests/kubernetes",
    what: "Kubernetes with kubelet and kube-proxy",
    ..controlplane::MODULE
};

/// The program, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn binary() -> Result<PathBuf> {
    tools::require_go_for(MODULE.what)?;
    MODULE.binary()
}
