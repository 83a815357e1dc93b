//! The package of the chart: what Helm packs, packed again so that it is the same bytes each time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::commands::manifests;
use crate::release::packing;
use crate::release::version::VERSION;
use crate::{tools, workspace};

/// Writes the package into a folder, under the name that Helm gives it. `work` is a folder for what comes in between.
///
/// # Errors
///
/// When Helm does not build, or the chart is wrong; with Helm's own words.
pub fn package(folder: &Path, work: &Path) -> Result<PathBuf> {
    let helm = manifests::helm()?;
    let work = work.join("chart");
    fs::create_dir_all(&work).with_context(|| format!("making {}", work.display()))?;
    let mut package = Command::new(&helm);
    package.args(["package", "deploy/chart", "--destination"]).arg(&work);
    tools::output(package.current_dir(workspace::root()))?;
    let name = format!("cloudwit-{VERSION}.tgz");
    tools::output(
        Command::new("tar")
            .arg("-xzf")
            .arg(work.join(&name))
            .arg("-C")
            .arg(&work),
    )?;
    let file = folder.join(&name);
    packing::pack(&work, "cloudwit", &file)?;
    let shown = tools::output(Command::new(&helm).args(["show", "chart"]).arg(&file))?;
    if !shown.lines().any(|line| line == format!("version: {VERSION}")) {
        bail!("Helm does not find version {VERSION} in {}", file.display());
    }
    Ok(file)
}
