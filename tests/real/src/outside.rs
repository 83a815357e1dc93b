//! Starts the hub in namespaces of its own, and leaves nothing behind when it ends.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::control_groups;
use crate::hub::Options;

/// How long the hub may take to end all machines.
const END: Duration = Duration::from_secs(20);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the hub to its end, or until Ctrl-C or SIGTERM.
pub fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    let done = runtime.block_on(watch(options));
    let left = clean();
    done.and(left)
}

async fn watch(options: &Options) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--mount-proc", "--pid", "--net", "--fork", "--kill-child"])
        .arg(std::env::current_exe().context("looking for our own program")?)
        .arg("hub");
    command.arg("--provider").arg(&options.provider);
    command.arg("--parts").arg(&options.parts);
    command.arg("--kubernetes").arg(&options.kubernetes);
    command.args(["--nodes", &options.nodes.to_string()]);
    command.args(options.once.then_some("--once"));
    // A group of its own: Ctrl-C reaches us alone. The hub ends when its standard input closes, in whichever way we end.
    let mut hub = command
        .process_group(0)
        .stdin(Stdio::piped())
        .spawn()
        .context("starting unshare")?;
    let interrupted = loop {
        if let Some(status) = hub.try_wait().context("looking after the hub")? {
            if !status.success() {
                bail!("the cluster failed, see above; logs are in target/sandbox");
            }
            println!("          everything is torn down");
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => break true,
            _ = terminate.recv() => break true,
        }
    };
    drop(hub.stdin.take());
    let asked = Instant::now();
    while hub.try_wait().context("looking after the hub")?.is_none() {
        if asked.elapsed() > END {
            hub.kill().context("ending the hub")?;
        }
        tokio::time::sleep(LOOK).await;
    }
    if interrupted && options.once {
        bail!("interrupted before everything was checked");
    }
    println!("          everything is torn down");
    Ok(())
}

/// Removes control groups, which the processes in them may be leaving just now.
fn clean() -> Result<()> {
    let started = Instant::now();
    loop {
        let left = control_groups::remove(None)?;
        let Some(one) = left.first() else { return Ok(()) };
        if started.elapsed() > END {
            bail!(
                "control groups are still in use, such as {}: end the processes in them",
                one.display()
            );
        }
        std::thread::sleep(LOOK);
    }
}
