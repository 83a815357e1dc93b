//! The most memory that a process and those that it starts have at the same time.
//!
//! The kernel tells the peak of one process. Cloudwit compiles a component in a process of its own, which is gone a moment later, so somebody has to look
//! meanwhile; a container's limit counts both.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use xtask::run::process::usage;

/// Between two looks: a compiler runs for a hundred milliseconds and more.
const LOOK: Duration = Duration::from_millis(10);

/// Looks at one process and its children.
#[derive(Debug)]
pub struct Family {
    stop: Arc<AtomicBool>,
    watching: Option<JoinHandle<u64>>,
}

impl Family {
    /// Begins to look at this process.
    pub fn watch(pid: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watching = thread::spawn(move || {
            let mut peak = 0;
            while !stopped.load(Ordering::Relaxed) {
                peak = peak.max(memory(pid));
                thread::sleep(LOOK);
            }
            peak
        });
        Self {
            stop,
            watching: Some(watching),
        }
    }

    /// Ends; the most bytes that were resident in all of them at a look.
    ///
    /// # Errors
    ///
    /// When looking failed, which it does not.
    pub fn peak(mut self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let watching = self.watching.take().context("it ended before")?;
        watching.join().map_err(|_| anyhow!("looking at processes panicked"))
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Resident in a process now, and in its children at their peak so far, which the next look may come too late for. A process that is gone has none.
fn memory(pid: u32) -> u64 {
    let own = usage(pid).map_or(0, |usage| usage.memory);
    let of_child = |child: u32| usage(child).map_or(0, |usage| usage.peak_memory);
    own + children(pid).into_iter().map(of_child).sum::<u64>()
}

/// Those of all its threads.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_count_while_they_are_there() {
        let mut shell = Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id();
        while children(pid).is_empty() {
            assert_eq!(shell.try_wait().unwrap(), None, "the shell waits for its child");
            thread::yield_now();
        }
        assert!(memory(pid) > usage(pid).unwrap().peak_memory);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!((children(pid), memory(pid)), (Vec::new(), 0));
    }

    #[test]
    fn what_never_ran_has_no_peak() {
        assert_eq!(Family::watch(u32::MAX).peak().unwrap(), 0);
    }
}
