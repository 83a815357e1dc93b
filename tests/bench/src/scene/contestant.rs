//! The two controllers that are compared, how each is started, and what each has used.
//!
//! Both are processes of their own on the same kubeconfig and the same simulated cloud, built as they are released, with the same list of flags: those of
//! ours are upstream's. Where a flag is left out, each side has its own default, as an operator gets it.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::{peer, port};
use cloudwit_test_support::scenes::deployment::Deployment;
use xtask::run::process::{self, Usage};

use crate::scene::binary::Binary;

/// How long a side may take to end after SIGTERM.
const END: Duration = Duration::from_secs(30);

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Cloudwit with the provider `sim`.
    Ours,
    /// Upstream's controllers, in Go, with the provider of `tests/peer`.
    Peer,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Ours, Self::Peer];

    /// For tables, files and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "cloudwit",
            Self::Peer => "upstream",
        }
    }
}

impl Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How both sides are run. What is `None` is left to each side's own default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// Requests a second of each client of the API server: 20 for the peer by default, no limit for ours.
    pub qps: Option<u32>,
    /// Requests that such a client may make at once after a rest.
    pub burst: Option<u32>,
    /// Nodes that are worked on at a time, by each of the loops that work on Nodes.
    pub node_workers: Option<u32>,
    /// Services that are worked on at a time.
    pub service_workers: Option<u32>,
    /// Pause between two refreshes of the addresses of all Nodes.
    pub node_status_update_frequency: Option<Duration>,
    /// Pause between two looks at Nodes that are not Ready.
    pub node_monitor_period: Option<Duration>,
    /// Whether routes are set.
    pub routes: bool,
    /// Whether a Lease is taken first. A killed process leaves it behind, so that the next on the same API server waits for 15 seconds.
    pub leader_election: bool,
    /// Whether health and metrics are served over HTTPS, with a certificate that is made at the start.
    pub https: bool,
    /// Where ours keeps compiled components from one run to the next; without it each run starts with none. The peer has nothing to keep.
    pub cache: Option<PathBuf>,
}

impl Tuning {
    /// Each side's own defaults, but no routes, no election and no HTTPS.
    pub fn defaults() -> Self {
        Self {
            qps: None,
            burst: None,
            node_workers: None,
            service_workers: None,
            node_status_update_frequency: None,
            node_monitor_period: None,
            routes: false,
            leader_election: false,
            https: false,
            cache: None,
        }
    }

    /// Limits lifted, and so many workers for Nodes and for Services on both sides.
    pub fn lifted(workers: u32) -> Self {
        Self {
            qps: Some(5000),
            burst: Some(5000),
            node_workers: Some(workers),
            service_workers: Some(workers),
            ..Self::defaults()
        }
    }

    /// The flags of both sides.
    fn flags(&self) -> Vec<String> {
        let number = |name: &str, value: Option<u32>| value.map(|value| format!("--{name}={value}"));
        let pause =
            |name: &str, value: Option<Duration>| value.map(|value| format!("--{name}={}ms", value.as_millis()));
        let mut flags = vec![
            format!("--configure-cloud-routes={}", self.routes),
            format!("--leader-elect={}", self.leader_election),
        ];
        flags.extend(number("kube-api-qps", self.qps));
        flags.extend(number("kube-api-burst", self.burst));
        flags.extend(number("concurrent-node-syncs", self.node_workers));
        flags.extend(number("concurrent-node-status-updates", self.node_workers));
        flags.extend(number("concurrent-node-lifecycle-syncs", self.node_workers));
        flags.extend(number("concurrent-service-syncs", self.service_workers));
        flags.extend(pause("node-status-update-frequency", self.node_status_update_frequency));
        flags.extend(pause("node-monitor-period", self.node_monitor_period));
        flags
    }
}

/// The programs of both sides.
#[derive(Debug)]
pub struct Contestants {
    /// Cloudwit.
    pub binary: Binary,
    /// The folder with the simulated cloud's program, such as `target/release`.
    pub programs: PathBuf,
    /// The component of the provider `sim`.
    pub provider: PathBuf,
    /// The peer's program.
    pub peer: PathBuf,
}

/// Where a side is run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its files and its log go into a folder in this one, which is named after it.
    pub folder: &'a Path,
    /// The cluster.
    pub kubeconfig: &'a Path,
    /// The URL of the simulated cloud, whose token is [`TOKEN`](cloudwit_test_support::scenes::deployment::TOKEN).
    pub cloud: &'a str,
}

impl Contestants {
    /// Starts a side.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or the program cannot be started.
    pub fn start(&self, side: Side, place: &Place<'_>, tuning: &Tuning) -> Result<Running> {
        let (kubeconfig, cloud) = (place.kubeconfig, place.cloud);
        let mut flags = tuning.flags();
        if tuning.https {
            flags.extend(serving(kubeconfig)?);
        }
        let run = place.folder.join(side.name());
        let (started, process) = match side {
            Side::Ours => {
                flags.extend(
                    tuning
                        .cache
                        .iter()
                        .map(|cache| format!("--cache-dir={}", cache.display())),
                );
                let deployment = Deployment::new(&run, self.binary.folder(), &self.provider)?;
                let started = Instant::now();
                let (process, _) = deployment.start_cloudwit(kubeconfig, cloud, &borrowed(&flags))?;
                (started, process)
            }
            Side::Peer => {
                let started = Instant::now();
                let process = peer::start(&self.peer, &run, kubeconfig, cloud, &borrowed(&flags))?;
                (started, process)
            }
        };
        Ok(Running { side, started, process })
    }
}

/// What both sides need to serve over HTTPS beside each other and others on this machine.
fn serving(kubeconfig: &Path) -> Result<[String; 4]> {
    Ok([
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", port::reserve()?),
        format!("--authentication-kubeconfig={}", kubeconfig.display()),
        format!("--authorization-kubeconfig={}", kubeconfig.display()),
    ])
}

fn borrowed(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// A side at work. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    side: Side,
    started: Instant,
    process: Child,
}

impl Running {
    /// Who it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// When it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether it is there.
    pub fn runs(&self) -> bool {
        self.process.runs()
    }

    /// What it has used since it was started.
    ///
    /// # Errors
    ///
    /// When it has ended; with the end of its log.
    pub fn usage(&self) -> Result<Usage> {
        process::usage(self.pid()).with_context(|| format!("{} has ended:\n{}", self.side, self.log_end()))
    }

    /// The last lines of its log.
    pub fn log_end(&self) -> String {
        self.process.log_end()
    }

    /// Ends it with SIGTERM, as kubelet does.
    ///
    /// # Errors
    ///
    /// When it is gone already, or does not end.
    pub fn stop(mut self) -> Result<()> {
        self.process.signal("TERM")?;
        let begin = Instant::now();
        while self.process.ended()?.is_none() {
            if begin.elapsed() > END {
                bail!("{} goes on {END:?} after SIGTERM:\n{}", self.side, self.log_end());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_left_to_each_sides_own_default() {
        let flags = Tuning::defaults().flags();
        assert_eq!(flags, ["--configure-cloud-routes=false", "--leader-elect=false"]);
    }

    #[test]
    fn lifted_limits_hold_for_every_loop() {
        let tuning = Tuning {
            node_monitor_period: Some(Duration::from_millis(1500)),
            ..Tuning::lifted(50)
        };
        let flags = tuning.flags();
        for flag in [
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
            "--concurrent-node-syncs=50",
            "--concurrent-node-status-updates=50",
            "--concurrent-node-lifecycle-syncs=50",
            "--concurrent-service-syncs=50",
            "--node-monitor-period=1500ms",
        ] {
            assert!(flags.iter().any(|other| other == flag), "{flag} is not in {flags:?}");
        }
    }
}
