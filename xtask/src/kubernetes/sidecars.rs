//! Builds Kubernetes' CSI sidecars (`tests/sidecars`).

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::go::module::{GO_MOD, GoModule, QUICK, go};
use crate::{tools, workspace};

/// Attaches volumes to Nodes.
const ATTACHER: GoModule = GoModule {
    name: "csi-attacher",
    folder: "tests/sidecars",
    package: "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
    what: "the sidecar csi-attacher",
    mod_file: GO_MOD,
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

/// Makes and deletes snapshots.
const SNAPSHOTTER: GoModule = GoModule {
    name: "csi-snapshotter",
    package: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
    what: "the sidecar csi-snapshotter",
    ..ATTACHER
};

/// Makes of a user's snapshot what the sidecar sees.
const SNAPSHOT_CONTROLLER: GoModule = GoModule {
    name: "snapshot-controller",
    package: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
    what: "Kubernetes' controller of snapshots",
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

/// What snapshots need.
#[derive(Debug, Clone)]
pub struct Snapshots {
    /// csi-snapshotter.
    pub snapshotter: PathBuf,
    /// snapshot-controller.
    pub controller: PathBuf,
    /// The folder with their CustomResourceDefinitions.
    pub definitions: PathBuf,
}

/// All of it, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or one does not build.
pub fn snapshots() -> Result<Snapshots> {
    tools::require_go_for("Kubernetes' CSI sidecars")?;
    let (snapshotter, controller) = (SNAPSHOTTER.binary()?, SNAPSHOT_CONTROLLER.binary()?);
    let module = "github.com/kubernetes-csi/external-snapshotter/client/v8";
    let mut list = go(&workspace::root().join(ATTACHER.folder));
    let folder = tools::output(list.args(["list", "-m", "-f", "{{.Dir}}", module]))?;
    Ok(Snapshots {
        snapshotter,
        controller,
        definitions: Path::new(folder.trim()).join("config/crd"),
    })
}
