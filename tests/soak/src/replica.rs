//! Two replicas of the process, started again when they end, as kubelet does.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::port;

use crate::canary::Tail;
use crate::files::{CLUSTER, CLUSTER_CIDR, Files};

/// For how long a process that has just started is not asked for its health.
pub const GRACE: Duration = Duration::from_secs(20);

/// Lease times, so that a leader that is stopped has a successor within a short fault.
const LEASE: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=7s",
    "--leader-elect-retry-period=1s",
];

/// Periods that make the loops look often. A deletion is confirmed quickly and not bound by the age of a Node; the brake is the default.
const PERIODS: [&str; 6] = [
    "--node-monitor-period=2s",
    "--node-status-update-frequency=30s",
    "--route-reconciliation-period=5s",
    "--node-deletion-confirm-after=4s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-window=1m",
];

/// How a replica is started.
pub struct Start {
    /// The binary.
    pub program: PathBuf,
    /// To the API server.
    pub kubeconfig: PathBuf,
    /// Folder of the compile cache; each replica has one in it.
    pub cache: PathBuf,
}

/// One of the two replicas.
pub struct Replica {
    /// 0 or 1.
    pub number: usize,
    /// Plain HTTP on loopback: `http://127.0.0.1:PORT`.
    pub admin: String,
    /// The port of HTTPS.
    pub https: String,
    arguments: Vec<String>,
    program: PathBuf,
    logs: PathBuf,
    state: Mutex<Run>,
}

/// The process at the moment.
pub struct Run {
    /// None while it cannot be started.
    pub process: Option<Child>,
    /// When it was started.
    pub since: Instant,
    /// Stopped on purpose.
    pub paused: bool,
    /// That it has ended was judged already.
    pub reported: bool,
    /// How often it was started.
    pub starts: u32,
    /// Its logs, all that there were.
    pub tails: Vec<Tail>,
}

impl Replica {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When no port is left or the program cannot be started.
    pub fn start(number: usize, start: &Start, files: &Files) -> Result<Self> {
        let [admin, https] = [port::address()?, port::address()?];
        let port = https.rsplit(':').next().context("an address has a port")?.to_owned();
        let mut arguments = vec![
            format!("--config={}", files.path("cloudwit.yaml").display()),
            format!("--kubeconfig={}", start.kubeconfig.display()),
            format!("--cache-dir={}", start.cache.join(number.to_string()).display()),
            format!("--cluster-cidr={CLUSTER_CIDR}"),
            format!("--cluster-name={CLUSTER}"),
            format!("--admin-address={admin}"),
            format!("--tls-cert-file={}", files.path("tls.crt").display()),
            format!("--tls-private-key-file={}", files.path("tls.key").display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            // One of each, so that canaries are searched in both.
            format!("--logging-format={}", ["text", "json"][number % 2]),
            "-v=2".to_owned(),
        ];
        arguments.extend(LEASE.into_iter().chain(PERIODS).map(str::to_owned));
        let replica = Self {
            number,
            admin: format!("http://{admin}"),
            https: format!("https://{https}"),
            arguments,
            program: start.program.clone(),
            logs: files.path("."),
            state: Mutex::new(Run {
                process: None,
                since: Instant::now(),
                paused: false,
                reported: false,
                starts: 0,
                tails: Vec::new(),
            }),
        };
        replica.run()?;
        Ok(replica)
    }

    /// The process at the moment.
    pub fn state(&self) -> MutexGuard<'_, Run> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the process.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn run(&self) -> Result<()> {
        let mut state = self.state();
        state.starts += 1;
        let log = self.logs.join(format!("cloudwit-{}.{}.log", self.number, state.starts));
        state.tails.push(Tail::new(log.clone()));
        state.process = None;
        state.process = Some(Child::start(&self.program, &self.arguments, &log)?);
        state.since = Instant::now();
        state.paused = false;
        state.reported = false;
        Ok(())
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.state().process.as_ref().map(Child::pid)
    }

    /// Sends a signal; whether there was a process to get it.
    pub fn signal(&self, name: &str) -> bool {
        let mut state = self.state();
        let sent = state
            .process
            .as_ref()
            .is_some_and(|process| process.signal(name).is_ok());
        state.paused = sent && name == "STOP";
        sent
    }

    /// Whether it has to answer now: it runs, is not stopped on purpose, and has had time to start.
    pub fn is_expected_to_answer(&self) -> bool {
        let state = self.state();
        state.process.is_some() && !state.paused && state.since.elapsed() > GRACE
    }
}
