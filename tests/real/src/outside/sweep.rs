//! Removes the control groups of a cluster after its end, in whichever way that came: a process of its own, which outlives a killed starter.

use std::io::{Read, stdin};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::outside::control_groups::Group;

/// After how long processes that are still in a group are killed. Those of the hub end with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it may take until all are gone.
const END: Duration = Duration::from_secs(20);

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// What the process is told.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A folder of the group, one for each hierarchy.
    #[arg(long)]
    group: Vec<PathBuf>,
}

/// The process, from its starter's side.
pub struct Sweeper(Child);

impl Sweeper {
    /// Starts it for the group of a cluster.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(group: &Group) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("looking for our own program")?);
        command.arg("sweep");
        for folder in &group.0 {
            command.arg("--group").arg(folder);
        }
        // A group of its own, so that Ctrl-C does not reach it.
        let child = command.process_group(0).stdin(Stdio::piped()).spawn();
        child.map(Self).context("starting our own program")
    }

    /// Lets it sweep, and waits for it.
    ///
    /// # Errors
    ///
    /// When something is left.
    pub fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait().context("waiting for our own program")?;
        if !status.success() {
            bail!("control groups are left, see above");
        }
        Ok(())
    }
}

/// The process itself: waits for the end of its standard input.
///
/// # Errors
///
/// When groups are still in use after a while.
pub fn run(options: &Options) -> Result<()> {
    let group = Group(options.group.clone()).clusters()?;
    // Whatever is read, only the end counts.
    let _ = stdin().read_to_end(&mut Vec::new());
    let started = Instant::now();
    loop {
        let left = group.remove();
        let Some(one) = left.first() else { return Ok(()) };
        if started.elapsed() > END {
            bail!("control groups are still in use, such as {}", one.display());
        }
        if started.elapsed() > PATIENCE {
            for pid in group.processes().into_iter().filter_map(Pid::from_raw) {
                // It may have ended since.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(LOOK);
    }
}
