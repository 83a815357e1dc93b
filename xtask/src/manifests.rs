//! `cargo xtask manifests`: plain YAML from the chart, by a Helm that is built here with Go.
//!
//! `deploy/manifests` is what `cloudwit install` has inside and what people apply who do without Helm; the snapshot shows what a change of
//! the chart does with everything switched on. A test renders all of it again and compares.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{controlplane, progress, tools, workspace};

/// The Helm that renders. Its build takes about a minute and a half of CPU time.
const HELM: &str = "v3.22.0";

/// The version of Kubernetes for which charts are rendered; nothing in ours depends on it but the check that it is new enough.
const KUBERNETES: &str = "1.37.0";

/// What stands at the head of each rendered file.
const HEAD: &str = "# Rendered from deploy/chart by `cargo xtask manifests`. Change the chart, not this file.\n";

/// A file that is rendered: where it is, and the flags of `helm template`. Paths begin at the root.
const RENDERED: [(&str, &[&str]); 3] = [
    (
        "deploy/manifests/cloudwit.yaml",
        &["--set=existingConfiguration=cloudwit-config"],
    ),
    (
        "deploy/manifests/cloudwit-controller-accounts.yaml",
        &[
            "--set=existingConfiguration=cloudwit-config",
            "--set=controllerAccounts=true",
        ],
    ),
    (
        "deploy/chart/.snapshots/full.yaml",
        &["--values=deploy/chart/.snapshots/full.values.yaml"],
    ),
];

/// Renders all files anew.
///
/// # Errors
///
/// When Go is missing, Helm does not build, or the chart is wrong; with Helm's own words.
pub fn run() -> Result<()> {
    for (file, text) in rendered()? {
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Each file with what should be in it.
///
/// # Errors
///
/// As [`run`].
pub fn rendered() -> Result<Vec<(PathBuf, String)>> {
    let render = |(file, flags): &(&str, &[&str])| Ok((workspace::root().join(file), template(flags)?));
    RENDERED.iter().map(render).collect()
}

/// What the chart becomes with these flags, as the release `cloudwit` in `kube-system`.
///
/// # Errors
///
/// As [`run`].
pub fn template(flags: &[&str]) -> Result<String> {
    let mut helm = Command::new(helm()?);
    helm.current_dir(workspace::root())
        .args(["template", "cloudwit", "deploy/chart", "--namespace=kube-system"])
        .arg(format!("--kube-version={KUBERNETES}"))
        .args(flags);
    Ok(format!("{HEAD}{}", tools::output(&mut helm)?))
}

/// Helm, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
fn helm() -> Result<PathBuf> {
    let tools_dir = workspace::target().join("tools");
    fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
    let lock = File::create(tools_dir.join("helm.lock")).context("making the lock of Helm's build")?;
    lock.lock().context("waiting for another process that builds Helm")?;
    let file = tools_dir.join(format!("helm-{HELM}"));
    if file.is_file() {
        return Ok(file);
    }
    tools::require_go_for("Helm, which renders the manifests")?;
    let built = tools_dir.join("helm.unfinished");
    let mut packages = 0;
    progress::run(
        controlplane::go(&workspace::root())
            .env("GOBIN", &built)
            .args(["install", "-v"])
            .args(controlplane::COMPILER_FLAGS)
            .arg("-ldflags=-s -w")
            .arg(format!("helm.sh/helm/v3/cmd/helm@{HELM}")),
        "building Helm (about 2 minutes the first time)",
        |line| {
            packages += 1;
            Some(format!("package {packages}, {line}"))
        },
    )?;
    fs::rename(built.join("helm"), &file).with_context(|| format!("moving Helm to {}", file.display()))?;
    Ok(file)
}
