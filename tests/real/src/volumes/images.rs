//! Images of what volumes need as Pods: each sidecar, and Cloudwit with the programs for file systems, as `deploy/image/csi-node.Containerfile` makes it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xtask::kubernetes::node_parts::FILE_SYSTEMS;
use xtask::kubernetes::oci::OciImage;

use super::SidecarFiles;
use crate::hub::images::{TAG, archive};
use crate::process::call;

/// The sidecars by their names in the chart's values; their images are `csi-NAME`.
pub const SIDECARS: [&str; 4] = ["provisioner", "attacher", "resizer", "snapshotter"];

/// The name of the image for the machines.
pub const NODE_IMAGE: &str = "cloudwit-csi-node";

/// All of them as tar archives.
///
/// # Errors
///
/// When a file cannot be read or written.
pub fn archives(files: &SidecarFiles, cloudwit: &Path, parts: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let programs = [&files.provisioner, &files.attacher, &files.resizer, &files.snapshotter];
    let sidecars = SIDECARS.iter().zip(programs);
    let mut all = sidecars
        .map(|(name, program)| archive(&format!("csi-{name}"), program, folder))
        .collect::<Result<Vec<_>>>()?;
    let work = folder.join("csi-node-image");
    let root = work.join("root");
    let place = root.join("usr/local/bin");
    fs::create_dir_all(&work).with_context(|| format!("making {}", work.display()))?;
    call(&format!(
        "cp -a {} {}",
        parts.join(FILE_SYSTEMS).display(),
        root.display()
    ))?;
    fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
    fs::copy(cloudwit, place.join("cloudwit")).with_context(|| format!("copying {}", cloudwit.display()))?;
    let file = folder.join(NODE_IMAGE).with_extension("tar");
    let image = OciImage {
        name: &format!("localhost/{NODE_IMAGE}:{TAG}"),
        entrypoint: &["/usr/local/bin/cloudwit"],
        path: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        user: "0",
    };
    image.archive(&root, &work, &file)?;
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))?;
    all.push(file);
    Ok(all)
}
