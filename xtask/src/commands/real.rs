//! `cargo xtask sandbox --real`: a cluster with real Nodes on this machine (`tests/real`), if it can run here.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cli::SandboxArgs;
use crate::commands::{image, manifests};
use crate::kubernetes::node_parts::NodeParts;
use crate::kubernetes::{peer, sidecars};
use crate::{guests, kubernetes, programs, tools, workspace};

/// What it runs of the machine's own.
const TOOLS: [&str; 11] = [
    "apt-get", "dpkg", "tar", "unshare", "nsenter", "ip", "mount", "umount", "hostname", "losetup", "blkid",
];

/// Hierarchies of control groups that kubelet and runc need in version 1.
const CONTROLLERS: [&str; 6] = ["cpu", "cpuset", "memory", "devices", "freezer", "pids"];

/// What else the sandbox runs.
const PROGRAMS: [&str; 3] = ["cloudwit", "cloudwit-sim-cloud", "cloudwit-real"];

/// Real Nodes cannot run on this machine, for these reasons.
#[derive(Debug)]
pub struct CannotRun(pub String);

impl std::fmt::Display for CannotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(missing) = self;
        write!(
            f,
            "real Nodes cannot run here; missing: {missing}. `cargo xtask sandbox` without --real runs everywhere"
        )
    }
}

impl std::error::Error for CannotRun {}

/// The exit code that says so.
pub const CANNOT_RUN: u8 = 3;

/// Builds, runs, and gives back whether it went well.
///
/// # Errors
///
/// When it cannot run here (one line says why), something does not build, or a check fails.
pub fn run(args: &SandboxArgs) -> Result<()> {
    require()?;
    tools::require_wasm_target()?;
    let parts = NodeParts::get()?;
    let kubernetes = kubernetes::binary()?;
    let provider = guests::provider("sim")?;
    let (sidecars, snapshots) = (sidecars::programs()?, sidecars::snapshots()?);
    let mut as_pods = Vec::new();
    if args.pods {
        image::require_musl()?;
        as_pods = vec![
            ("--image", image::binary()?),
            ("--upstream", peer::tested()?),
            ("--helm", manifests::helm()?),
        ];
    }
    let programs = programs::build(&PROGRAMS)?;
    // Ctrl-C reaches the whole process group. The sandbox tears everything down then; we wait for it.
    let _ = ctrlc::set_handler(|| {});
    let mut command = Command::new(programs.join("cloudwit-real"));
    command.current_dir(workspace::root()).args(["run", "--with-parent"]);
    command.arg("--provider").arg(provider);
    command.arg("--parts").arg(parts.folder());
    command.arg("--kubernetes").arg(kubernetes);
    for (flag, file) in [
        ("--provisioner", sidecars.provisioner),
        ("--attacher", sidecars.attacher),
        ("--resizer", sidecars.resizer),
        ("--snapshotter", snapshots.snapshotter),
        ("--snapshot-controller", snapshots.controller),
        ("--snapshot-definitions", snapshots.definitions),
    ] {
        command.arg(flag).arg(file);
    }
    for (flag, file) in as_pods {
        command.arg(flag).arg(file);
    }
    command.args(args.once.then_some("--once"));
    let status = command.stdin(Stdio::null()).status().context("starting the sandbox")?;
    if !status.success() {
        bail!("the sandbox failed, see above");
    }
    Ok(())
}

/// Checks that real Nodes can run here.
///
/// # Errors
///
/// [`CannotRun`] when they cannot; one line names everything that is in the way.
pub fn require() -> Result<()> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut missing = Vec::new();
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        missing.push("Linux on x86-64".to_owned());
    }
    let user = tools::output(Command::new("id").arg("-u")).unwrap_or_default();
    if user.trim() != "0" {
        missing.push("root, for namespaces and mounts".to_owned());
    }
    let absent: Vec<&str> = TOOLS.into_iter().filter(|tool| tools::find(tool).is_none()).collect();
    if !absent.is_empty() {
        missing.push(format!("the programs {} (Debian or Ubuntu)", absent.join(", ")));
    }
    let absent = absent_controllers(&mounts);
    if !absent.is_empty() {
        missing.push(format!("control groups of version 1 for {}", absent.join(", ")));
    }
    let namespaces = [
        "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--fork", "true",
    ];
    if missing.is_empty() && tools::output(Command::new("losetup").arg("--find")).is_err() {
        missing.push("loop devices".to_owned());
    }
    if missing.is_empty() && tools::output(Command::new("unshare").args(namespaces)).is_err() {
        missing.push("the right to make namespaces".to_owned());
    }
    if !missing.is_empty() {
        return Err(CannotRun(missing.join("; ")).into());
    }
    Ok(())
}

/// Controllers that no hierarchy of version 1 is mounted for.
fn absent_controllers(mountinfo: &str) -> Vec<&'static str> {
    let lines = mountinfo.lines().filter(|line| line.contains(" - cgroup "));
    let mounted: Vec<&str> = lines
        .filter_map(|line| line.rsplit(' ').next())
        .flat_map(|options| options.split(','))
        .collect();
    CONTROLLERS
        .into_iter()
        .filter(|controller| !mounted.contains(controller))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_of_version_two_do_not_count() {
        let line = |kind: &str, options: &str| format!("32 31 0:29 / /sys/fs/cgroup/x rw - {kind} {kind} {options}\n");
        let one = line("cgroup", "rw,cpu,cpuacct") + &line("cgroup", "rw,memory");
        assert_eq!(absent_controllers(&one), ["cpuset", "devices", "freezer", "pids"]);
        assert_eq!(absent_controllers(&line("cgroup2", "rw")), CONTROLLERS);
    }
}
