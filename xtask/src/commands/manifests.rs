//! `cargo xtask manifests`: plain YAML from the chart, by a Helm that is built here with Go.
//!
//! `deploy/manifests` is what `cloudwit install` has inside and what people apply who do without Helm; the snapshot shows what a change of
//! the chart does with everything switched on. A test renders all of it again and compares.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::go::tool::GoTool;
use crate::{tools, workspace};

/// The Helm that renders, and installs in tests.
const HELM: GoTool = GoTool {
    name: "helm3",
    version: "v3.22.0",
    packages: &["helm.sh/helm/v3/cmd/helm"],
    tags: "",
    what: "Helm, which renders the manifests (about 2 minutes the first time)",
};

/// The Helm of that version, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn helm() -> Result<PathBuf> {
    Ok(HELM.get()?.join("helm"))
}

/// The version of Kubernetes for which charts are rendered; nothing in ours depends on it but the check that it is new enough.
const KUBERNETES: &str = "1.37.0";

/// What stands at the head of each rendered file.
const HEAD: &str = "# Rendered from deploy/chart by `cargo xtask manifests`. Change the chart, not this file.\n";

/// What the label `app.kubernetes.io/managed-by` says of manifests that Helm does not install.
const NOT_BY_HELM: &str = "--set=managedBy=cloudwit-install";

/// A file that is rendered: where it is, and the flags of `helm template`. Paths begin at the root.
const RENDERED: [(&str, &[&str]); 3] = [
    (
        "deploy/manifests/cloudwit.yaml",
        &["--set=existingConfiguration=cloudwit-config", NOT_BY_HELM],
    ),
    (
        "deploy/manifests/cloudwit-controller-accounts.yaml",
        &[
            "--set=existingConfiguration=cloudwit-config",
            "--set=controllerAccounts=true",
            NOT_BY_HELM,
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

/// The manifests of `deploy/manifests` with what should be in them.
///
/// # Errors
///
/// As [`run`].
pub fn plain() -> Result<Vec<(PathBuf, String)>> {
    let mut rendered = rendered()?;
    rendered.retain(|(file, _)| file.parent().is_some_and(|folder| folder.ends_with("deploy/manifests")));
    Ok(rendered)
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
