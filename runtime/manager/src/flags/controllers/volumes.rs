//! Flags of volumes.

use std::path::PathBuf;

/// Flags about volumes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Volumes")]
pub struct VolumeArgs {
    /// Serves the volumes of each provider that has them as a CSI driver, on the unix socket DRIVER.sock in this folder, while this process leads.
    /// The usual sidecars (csi-provisioner, csi-attacher, csi-resizer, csi-snapshotter) stand beside it with their own leader election off. Without
    /// it no volumes are served.
    #[arg(long, value_name = "DIR")]
    pub csi_socket_dir: Option<PathBuf>,
}
