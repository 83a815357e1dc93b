//! A mount namespace of the program's own: a small volume for the compile cache, and a resolver configuration that leads to loopback.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use crate::faults::dns;

/// Set in the process that runs inside.
const INSIDE: &str = "CLOUDWIT_SOAK_INSIDE";

/// Size of the cache's volume: some dozens of compiled components.
const VOLUME: &str = "size=64m";

/// Whether this process runs in a mount namespace of its own.
pub fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again in a mount namespace, which goes with it. None where the system does not allow one.
///
/// # Errors
///
/// When the program cannot be started.
pub fn reenter() -> Result<Option<ExitStatus>> {
    let flags = ["--mount", "--propagation=private", "--"];
    let allowed = Command::new("unshare")
        .args(flags)
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !allowed {
        return Ok(None);
    }
    let program = std::env::current_exe().context("looking for our own program")?;
    let mut command = Command::new("unshare");
    command.args(flags).arg(program).args(std::env::args_os().skip(1));
    Ok(Some(command.env(INSIDE, "1").status().context("starting unshare")?))
}

/// Mounts a small volume here.
///
/// # Errors
///
/// When the system refuses.
pub fn mount_volume(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    mount(&["-t", "tmpfs", "-o", &format!("{VOLUME},mode=0700"), "tmpfs"], folder)
}

/// From now on names are looked up at [`dns::ADDRESS`].
///
/// # Errors
///
/// When the system refuses.
pub fn use_name_server(file: &Path) -> Result<()> {
    let text = format!("nameserver {}\noptions timeout:20 attempts:2\n", dns::ADDRESS);
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    let from = file.display().to_string();
    mount(&["--bind", &from], Path::new("/etc/resolv.conf"))
}

fn mount(arguments: &[&str], at: &Path) -> Result<()> {
    let mounted = Command::new("mount").args(arguments).arg(at).output();
    let mounted = mounted.context("starting mount")?;
    if !mounted.status.success() {
        bail!(
            "mount {}: {}",
            at.display(),
            String::from_utf8_lossy(&mounted.stderr).trim()
        );
    }
    Ok(())
}
