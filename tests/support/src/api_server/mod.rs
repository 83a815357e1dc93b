//! A real kube-apiserver with etcd, for the time of a test.
//!
//! It runs as a child process with its data under `target/tmp`. Its standard input is a pipe that we hold: whichever way the
//! test ends, the pipe closes, the server ends and removes its folder.

pub mod kubebuilder;
pub mod pool;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::OnceCell;

use crate::programs::child::log_end;
use crate::programs::port;

/// Looks at readiness before giving up, and the pause after each: 60 s.
const READY_LOOKS: u32 = 600;
const READY_PAUSE: Duration = Duration::from_millis(100);

/// The audit log in the folder of the data.
const AUDIT_LOG: &str = "audit.log";

/// A kube-apiserver on loopback with RBAC, empty but for what every cluster has. No controllers and no scheduler run on it.
///
/// Dropping it ends the server and removes its data.
#[derive(Debug)]
pub struct ApiServer {
    dir: PathBuf,
    log: PathBuf,
    kubeconfig: PathBuf,
    config: Config,
    port: u16,
    audited: bool,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    process: Child,
    /// Closing it ends the server and removes the data.
    leash: Option<ChildStdin>,
}

impl ApiServer {
    /// The server that all tests of this file (this process) share; the first one who asks starts it. Tests on it use names of
    /// their own.
    ///
    /// # Panics
    ///
    /// When it cannot be started, with the reason and the end of its log.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ApiServer> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async { Self::start().await.unwrap_or_else(|error| panic!("{error:#}")) })
            .await
    }

    /// Starts a server of its own, in about 3 s, and returns when it is ready. Builds the program first when that has not been
    /// done yet (minutes, with progress), unless `KUBEBUILDER_ASSETS` names a folder with `etcd` and `kube-apiserver`.
    ///
    /// # Errors
    ///
    /// When a tool is missing (one line says which and how to get it), or the server does not start (with the end of its log).
    pub async fn start() -> Result<Self> {
        let dir = new_dir().await?;
        let log = dir.join("controlplane.log");
        Self::start_with(dir, log, false).await
    }

    /// The same, with an audit log ([`audit_log`](Self::audit_log)).
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn start_audited() -> Result<Self> {
        let dir = new_dir().await?;
        let log = dir.join("controlplane.log");
        Self::start_with(dir, log, true).await
    }

    /// As [`start`](Self::start), with the data in a folder of the caller's choice, which is removed at the end, and the log in a
    /// file that stays when it is elsewhere.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn start_in(dir: PathBuf, log: PathBuf) -> Result<Self> {
        Self::start_with(dir, log, false).await
    }

    async fn start_with(dir: PathBuf, log: PathBuf, audited: bool) -> Result<Self> {
        let place = (dir.clone(), log.clone());
        let (kubeconfig, running) = blocking(move || {
            let (dir, log) = place;
            fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
            spawn(&dir, &log, port::reserve()?, audited).inspect_err(|_| remove(&dir))
        })
        .await?;
        let content = Kubeconfig::read_from(&kubeconfig).context("reading the kubeconfig of the API server")?;
        let config = Config::from_custom_kubeconfig(content, &KubeConfigOptions::default()).await?;
        let port = config
            .cluster_url
            .port_u16()
            .ok_or_else(|| anyhow!("no port in {}", config.cluster_url))?;
        let server = Self {
            dir,
            log,
            kubeconfig,
            config,
            port,
            audited,
            running: Mutex::new(Some(running)),
        };
        server.ready().await?;
        Ok(server)
    }

    /// A new client with all rights. A client belongs to the tokio runtime in which it is made, so each test makes its own.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("the kubeconfig of the API server makes a client")
    }

    /// How to connect, for clients with other settings (another user through `auth_info.impersonate`, for example).
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What the server wrote to its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// A JSON object a line for each stage of each request: who, what, when; no bodies. There for a server that was started
    /// [audited](Self::start_audited).
    pub fn audit_log(&self) -> PathBuf {
        self.dir.join(AUDIT_LOG)
    }

    /// CPU seconds and the peak resident memory in bytes of the server, since its (last) start. `None` when it is not running, and
    /// for the binaries of `KUBEBUILDER_ASSETS`, which are two processes behind a shell.
    pub fn usage(&self) -> Option<xtask::run::process::Usage> {
        if kubebuilder::assets().is_some() {
            return None;
        }
        let pid = self.running().as_ref()?.process.id();
        xtask::run::process::usage(pid)
    }

    /// Ends the server in good order. Its data stay for [`restart`](Self::restart).
    ///
    /// # Errors
    ///
    /// When the process cannot be reached.
    pub async fn stop(&self) -> Result<()> {
        let Some(mut running) = self.running().take() else {
            return Ok(());
        };
        blocking(move || {
            let pid = running.process.id().to_string();
            // A signal, since closing the pipe would remove the data. The standard library can only kill.
            let sent = Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .context("starting kill")?;
            if !sent.success() {
                bail!("the API server (process {pid}) could not be told to end");
            }
            running.process.wait().context("waiting for the API server")?;
            Ok(())
        })
        .await
    }

    /// Ends the server if it runs and starts it again with the same data, at the same address, under the same kubeconfig.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        let (dir, log, port, audited) = (self.dir.clone(), self.log.clone(), self.port, self.audited);
        let (_, running) = blocking(move || spawn(&dir, &log, port, audited)).await?;
        *self.running() = Some(running);
        self.ready().await
    }

    /// Waits until the server is ready. Our own control plane is when it says so, the binaries of others may not be yet.
    async fn ready(&self) -> Result<()> {
        let client = self.client();
        let mut last = None;
        for _ in 0..READY_LOOKS {
            match client
                .request_text(http::Request::get("/readyz").body(Vec::new())?)
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
        let log = log_end(&self.log);
        Err(anyhow!(last.expect("it was looked at least once"))
            .context(format!("the API server is not ready; the end of its log:\n{log}")))
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let Some(mut running) = self.running().take() {
            drop(running.leash.take());
            // It ends at once; a process that cannot be awaited is beyond our help.
            let _ = running.process.wait();
        }
        remove(&self.dir);
    }
}

async fn new_dir() -> Result<PathBuf> {
    blocking(|| {
        let tmp = xtask::workspace::target().join("tmp");
        fs::create_dir_all(&tmp).with_context(|| format!("making {}", tmp.display()))?;
        // The server removes it, since this process may be killed.
        Ok(tempfile::Builder::new()
            .prefix("api-server-")
            .tempdir_in(&tmp)
            .context("making a folder")?
            .keep())
    })
    .await
}

/// Starts the server on `port` and returns when it is ready.
fn spawn(dir: &Path, log: &Path, port: u16, audited: bool) -> Result<(PathBuf, Running)> {
    let audit = audited.then(|| dir.join(AUDIT_LOG));
    let mut command = match kubebuilder::assets() {
        Some(assets) => kubebuilder::command(&assets, dir, port, audit.as_deref())?,
        None => {
            let mut command = Command::new(xtask::kubernetes::controlplane::binary()?);
            command
                .arg("--throwaway")
                .arg("--dir")
                .arg(dir)
                .arg("--port")
                .arg(port.to_string());
            if let Some(audit) = &audit {
                command.arg("--audit-log").arg(audit);
            }
            command
        }
    };
    let output = File::options()
        .create(true)
        .append(true)
        .open(log)
        .context("opening the API server's log")?;
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(output)
        // A group of its own: Ctrl-C reaches us, and we end it.
        .process_group(0)
        .spawn()
        .context("starting the API server")?;
    let leash = process.stdin.take();
    let mut kubeconfig = None;
    let said = BufReader::new(process.stdout.take().expect("standard output is piped"));
    for line in said.lines() {
        let line = line.context("reading what the API server says")?;
        match (line.strip_prefix("KUBECONFIG="), &kubeconfig) {
            (Some(file), _) => kubeconfig = Some(PathBuf::from(file)),
            (None, Some(file)) if line == "READY" => return Ok((file.clone(), Running { process, leash })),
            _ => bail!("the API server said {line:?} where KUBECONFIG=FILE and READY were expected"),
        }
    }
    let status = process.wait().context("waiting for the API server")?;
    bail!(
        "the API server ended before it was ready ({status}); the end of its log:\n{}",
        log_end(log)
    )
}

fn remove(dir: &Path) {
    // Usually gone already: the server does it too.
    let _ = fs::remove_dir_all(dir);
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("a thread that handles the API server panicked")?
}
