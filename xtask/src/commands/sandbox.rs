//! `cargo xtask sandbox`: builds what the sandbox needs and hands over to it (`tests/sandbox`).
//!
//! The sandbox is a program of its own because it speaks to Kubernetes, whose client would make `cargo xtask` slow to build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cli::{SandboxArgs, SandboxCloud};
use crate::commands::real;
use crate::kubernetes::controlplane;
use crate::servers::vcsim;
use crate::{guests, programs, servers, tools, workspace};

/// Builds, runs, and gives back whether it went well.
///
/// # Errors
///
/// When a tool is missing, something does not build, or the sandbox's checks fail.
pub fn run(args: &SandboxArgs) -> Result<()> {
    if args.real {
        return real::run(args);
    }
    tools::require_wasm_target()?;
    if args.kubeconfig.is_none() && std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        controlplane::binary()?;
    }
    match args.cloud {
        SandboxCloud::Sim => {}
        SandboxCloud::Alibaba => drop(servers::stand_in("alibaba")?),
        SandboxCloud::Aws => drop(servers::moto()?),
        SandboxCloud::Azure => drop(servers::stand_in("azure")?),
        SandboxCloud::Baidu => drop(servers::stand_in("baidu")?),
        SandboxCloud::Cloudstack => drop(servers::stand_in("cloudstack")?),
        SandboxCloud::Gce => drop(servers::stand_in("gce")?),
        SandboxCloud::Mesos => drop(servers::stand_in("mesos")?),
        SandboxCloud::Openstack => drop(servers::openstack_cloud()?),
        SandboxCloud::Ovirt => drop(servers::stand_in("ovirt")?),
        SandboxCloud::Photon => drop(servers::stand_in("photon")?),
        SandboxCloud::Rackspace => drop(servers::stand_in("rackspace")?),
        SandboxCloud::Rancher => drop(servers::stand_in("rancher")?),
        SandboxCloud::Vsphere => drop(vcsim::programs()?),
    }
    run_with(args, &guests::provider(args.cloud.name())?)
}

/// Where logs and files of the sandbox go by default.
pub fn folder() -> PathBuf {
    workspace::target().join("sandbox")
}

/// Held as long as a sandbox runs in this folder, since two would take each other's files away.
///
/// # Errors
///
/// When another one runs.
pub fn lock(folder: &Path) -> Result<File> {
    let file = folder.with_added_extension("lock");
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    }
    let lock = File::create(&file).with_context(|| format!("making {}", file.display()))?;
    if lock.try_lock().is_err() {
        bail!(
            "a sandbox is running already; end it first (it holds {}), or give this one another --folder",
            file.display()
        );
    }
    Ok(lock)
}

/// Runs with this component as the cloud's provider.
///
/// # Errors
///
/// When something does not build, or the sandbox's checks fail.
pub fn run_with(args: &SandboxArgs, provider: &Path) -> Result<()> {
    let programs = programs::build(&programs::ALL)?;
    // Ctrl-C reaches the whole process group. The sandbox tears everything down then; we wait for it.
    // Where another handler is set already, the sandbox is torn down all the same.
    let _ = ctrlc::set_handler(|| {});
    let mut command = Command::new(programs.join("cloudwit-sandbox"));
    command
        .current_dir(workspace::root())
        .args(["--cloud", args.cloud.name()])
        .arg("--provider")
        .arg(provider)
        .args(["--nodes", &args.nodes.to_string()])
        .arg("--folder")
        .arg(std::path::absolute(args.folder.clone().unwrap_or_else(folder)).context("reading --folder")?);
    command.args(args.once.then_some("--once"));
    if let Some(kubeconfig) = &args.kubeconfig {
        // Seen from where the command was typed, which need not be the root.
        let kubeconfig = std::path::absolute(kubeconfig).context("reading --kubeconfig")?;
        command.arg("--kubeconfig").arg(kubeconfig);
    }
    let status = command.stdin(Stdio::null()).status().context("starting the sandbox")?;
    if !status.success() {
        bail!("the sandbox failed, see above");
    }
    Ok(())
}
