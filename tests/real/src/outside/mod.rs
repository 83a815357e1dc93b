//! Starts the hub in namespaces of its own, and checks that it leaves nothing behind.

pub(crate) mod control_groups;
pub(crate) mod sweep;
pub(crate) mod traces;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};

use crate::hub::Options;
use crate::outside::control_groups::{Group, PREFIX};
use crate::outside::sweep::Sweeper;
use crate::outside::traces::Traces;

/// How long the hub may take to end.
const END: Duration = Duration::from_secs(20);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What `traces` is told.
#[derive(Debug, clap::Args)]
pub struct TracesOptions {
    /// The unpacked parts of a Node.
    #[arg(long, value_name = "FOLDER")]
    parts: PathBuf,
}

/// Prints what a cluster could leave behind.
///
/// # Errors
///
/// When it cannot be read.
pub fn traces(options: &TracesOptions) -> Result<()> {
    for line in Traces::take(&options.parts)?.lines() {
        println!("{line}");
    }
    Ok(())
}

/// Runs the hub to its end, or until Ctrl-C or SIGTERM.
///
/// # Errors
///
/// When another sandbox runs, a check fails, or something is left behind.
pub fn run(options: &Options) -> Result<()> {
    if options.with_parent {
        // As if Ctrl-C had been typed.
        set_parent_process_death_signal(Some(Signal::TERM)).context("asking for a signal at our parent's end")?;
    }
    let _lock = xtask::commands::sandbox::lock(&xtask::commands::sandbox::folder())?;
    let before = Traces::take(&options.parts)?;
    let group = Group::own()?.child(&format!("{PREFIX}{}", std::process::id()));
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    let sweeper = Sweeper::start(&group)?;
    let done = runtime.block_on(watch(options, &group));
    let asked = Instant::now();
    let swept = sweeper.end();
    let left = swept.and_then(|()| compare(&before, &options.parts, asked));
    done.and(left)
}

/// Compares, for a while if something is still going.
fn compare(before: &Traces, parts: &Path, asked: Instant) -> Result<()> {
    loop {
        match Traces::take(parts)?.same_as(before) {
            Ok(summary) => {
                println!("          everything is torn down, and the machine is as it was: {summary}");
                return Ok(());
            }
            Err(error) if asked.elapsed() > END => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

async fn watch(options: &Options, group: &Group) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    group.create()?;
    group.limit()?;
    let own = group.child("hub");
    own.create()?;
    let mut command = own.command("unshare")?;
    command
        .args(["--mount", "--mount-proc", "--pid", "--net", "--fork", "--kill-child"])
        .arg(std::env::current_exe().context("looking for our own program")?)
        .arg("hub")
        // It has our options.
        .args(std::env::args_os().skip(2));
    // A group of its own: Ctrl-C reaches us alone. The hub ends when its standard input closes, in whichever way we end.
    let mut hub = command
        .process_group(0)
        .stdin(Stdio::piped())
        .spawn()
        .context("starting the hub")?;
    let status = loop {
        if let Some(status) = hub.try_wait().context("looking after the hub")? {
            break status;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => continue,
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        drop(hub.stdin.take());
        let asked = Instant::now();
        while hub.try_wait().context("looking after the hub")?.is_none() {
            if asked.elapsed() > END {
                hub.kill().context("ending the hub")?;
            }
            tokio::time::sleep(LOOK).await;
        }
        if options.once {
            bail!("interrupted before everything was checked");
        }
        return Ok(());
    };
    if !status.success() {
        bail!("the cluster failed, see above; logs are in target/sandbox");
    }
    Ok(())
}
