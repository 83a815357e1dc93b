//! Builds Kubernetes' CSI sidecars (`tests/sidecars`).

use std::path::PathBuf;

use anyhow::Result;

use crate::go_module::{GoModule, QUICK};
use crate::tools;

/// Attaches volumes to Nodes.
const ATTACHER: GoModule = GoModule {
    name: "csi-attacher",
    folder: "tests/sidecars",
    package: "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
    what: "the sidecar csi-attacher",
    compiler_flags: &QUICK,
    linker_flags: |_| Ok("-ldflags=-s -w".to_owned()),
};

/// Lets volumes grow.
const RESIZER: GoModule = GoModule {
    name: "csi-resizer",
    package: "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
    what: "the sidecar csi-resizer",
    ..ATTACHER
};

/// Makes and deletes volumes.
const PROVISIONER: GoModule = GoModule {
    name: "csi-provisioner",
    folder: "tests/sidecars/provisioner",
    package: "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
    what: "the sidecar csi-provisioner",
    ..ATTACHER
};

/// The programs.
#[derive(Debug, Clone)]
pub struct Sidecars {
    /// csi-provisioner.
    pub provisioner: PathBuf,
    /// csi-attacher.
    pub attacher: PathBuf,
    /// csi-resizer.
    pub resizer: PathBuf,
}

/// All of them, built if they are not there yet.
///
/// # Errors
///
/// When Go is missing or one does not build.
pub fn programs() -> Result<Sidecars> {
    tools::require_go_for("Kubernetes' CSI sidecars")?;
    Ok(Sidecars {
        attacher: ATTACHER.binary()?,
        resizer: RESIZER.binary()?,
        provisioner: PROVISIONER.binary()?,
    })
}
