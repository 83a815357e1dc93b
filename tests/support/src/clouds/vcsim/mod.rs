//! vSphere by a third party: govmomi's vcsim, for the time of a test, behind a certificate of an authority of the test's own.
//!
//! Tests make what an administrator of vCenter would have made (guests with names and addresses, tags) and look at the outcome with
//! [`Vcsim::govc`], VMware's own client. Machines and their ids are the same at each start; a server starts within half a second, so each
//! test has its own.

pub mod inventory;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::authority::Authority;
use crate::clouds::moto::log_file;
use crate::gate::Gate;
use crate::programs::child::Child;
use crate::programs::port;

/// Who may log in. (A name with a domain is refused by vcsim.)
pub const USERNAME: &str = "ccm";

/// With this password. XML and URLs have to escape it.
pub const PASSWORD: &str = "s3<&\"'cret";

const START: Duration = Duration::from_secs(180);

/// What vCenter manages from the start.
#[derive(Debug, Clone, Copy)]
pub struct VcsimOptions {
    /// Datacenters, `DC0` and so on.
    pub datacenters: u16,
    /// Clusters in each datacenter, `DC0_C0` and so on.
    pub clusters: u16,
    /// Hosts in each cluster, `DC0_C0_H0` and so on. Each datacenter has one host without a cluster besides, `DC0_H0`.
    pub hosts: u16,
    /// Machines on each host without a cluster (`DC0_H0_VM0`), and as many in the resource pool of each cluster (`DC0_C0_RP0_VM0`).
    pub machines: u16,
    /// Each call takes that long.
    pub delay: Duration,
    /// Volumes, by the server of `tests/vcsim`; none for vcsim as it is released.
    pub volumes: Option<VolumeOptions>,
}

/// What Cloud Native Storage does from the start.
#[derive(Debug, Clone, Copy)]
pub struct VolumeOptions {
    /// Volumes that fit a machine.
    pub disks: u16,
    /// Each task takes that long.
    pub task_delay: Duration,
    /// Datastores in each datacenter, `LocalDS_0` and so on, each on all of its hosts.
    pub datastores: u16,
}

impl Default for VolumeOptions {
    /// As vCenter has it, but with tasks that are done at once.
    fn default() -> Self {
        Self {
            disks: 59,
            task_delay: Duration::ZERO,
            datastores: 1,
        }
    }
}

impl Default for VcsimOptions {
    /// Two datacenters with four machines each.
    fn default() -> Self {
        Self {
            datacenters: 2,
            clusters: 1,
            hosts: 2,
            machines: 2,
            delay: Duration::ZERO,
            volumes: None,
        }
    }
}

/// A running vcsim. Dropping it ends it.
#[derive(Debug)]
pub struct Vcsim {
    process: Child,
    programs: xtask::servers::vcsim::Programs,
    address: String,
    authority: PathBuf,
    certificate: Vec<u8>,
    folder: TempDir,
    options: VcsimOptions,
}

impl Vcsim {
    /// Starts a server. Builds the programs first when that has not been done yet (two minutes, with progress).
    ///
    /// # Errors
    ///
    /// When Go is missing, or the server does not start (with the end of its log).
    pub async fn start(options: VcsimOptions) -> Result<Self> {
        blocking(move || {
            let folder = tempfile::tempdir().context("making a folder")?;
            let certificate = certify(folder.path())?;
            let mut programs = xtask::servers::vcsim::programs()?;
            if options.volumes.is_some() {
                programs.vcsim = xtask::servers::vcsim::with_volumes()?;
            }
            let address = port::address()?;
            Ok(Self {
                process: spawn(&programs.vcsim, folder.path(), &address, &options)?,
                programs,
                address,
                authority: folder.path().join("ca.pem"),
                certificate,
                folder,
                options,
            })
        })
        .await
    }

    /// Ends the server and starts it again at the same address with what it had at first: sessions, tags, guests and tasks are gone, machines and
    /// their ids are the same.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn restart(self) -> Result<Self> {
        blocking(move || {
            let Self {
                process,
                programs,
                address,
                authority,
                certificate,
                folder,
                options,
            } = self;
            process.kill()?;
            let process = spawn(&programs.vcsim, folder.path(), &address, &options)?;
            Ok(Self {
                process,
                programs,
                address,
                authority,
                certificate,
                folder,
                options,
            })
        })
        .await
    }

    /// Where it listens, as `127.0.0.1:PORT`: `https://ADDRESS/sdk` for SOAP, `https://ADDRESS/rest` for tags. Its certificate holds for
    /// `127.0.0.1` and `localhost`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The port of that address.
    pub fn port(&self) -> u16 {
        let port = self.address.rsplit(':').next().and_then(|port| port.parse().ok());
        port.expect("the address ends in a port")
    }

    /// The certificate, in PEM, of the authority that has signed the server's.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The server's certificate in DER, of which tests make thumbprints.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// A proxy in front of the server, with the server's own certificate, which can make faults.
    ///
    /// # Errors
    ///
    /// When it cannot listen.
    pub async fn gate(&self) -> Result<Gate> {
        let file = |name: &str| self.folder.path().join(name);
        Gate::to_tls(&self.address, &self.authority, &file("server.pem"), &file("server.key")).await
    }

    /// A proxy with the server's own certificate in front of another server, at this plain URL: an NSX manager beside the vCenter.
    ///
    /// # Errors
    ///
    /// When it cannot listen.
    pub async fn gate_to(&self, url: &str) -> Result<Gate> {
        let file = |name: &str| self.folder.path().join(name);
        Gate::tls_to_url(url, &file("server.pem"), &file("server.key")).await
    }

    /// What the server has written.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.process.runs()
    }

    /// Runs govc and gives what it prints.
    ///
    /// # Errors
    ///
    /// When it fails; with what it says.
    pub async fn govc(&self, arguments: &[&str]) -> Result<String> {
        let mut govc = Command::new(&self.programs.govc);
        govc.args(arguments)
            .env("GOVC_URL", format!("https://{}/sdk", self.address))
            .env("GOVC_USERNAME", USERNAME)
            .env("GOVC_PASSWORD", PASSWORD)
            .env("GOVC_TLS_CA_CERTS", &self.authority)
            .env("GOVC_INSECURE", "0")
            .env("GOVMOMI_HOME", self.folder.path());
        let what = arguments.join(" ");
        blocking(move || xtask::tools::output(&mut govc).with_context(|| format!("govc {what}"))).await
    }

    /// Ends all sessions but the one of govc, as vCenter does with idle ones. Gives how many there were.
    ///
    /// # Errors
    ///
    /// When vcsim does not answer.
    pub async fn end_sessions(&self) -> Result<usize> {
        let listed: Value = serde_json::from_str(&self.govc(&["session.ls", "-json"]).await?)?;
        let own = &listed["currentSession"]["key"];
        let sessions = listed["sessionList"].as_array().context("govc lists no sessions")?;
        let others: Vec<&str> = sessions
            .iter()
            .filter(|session| session["key"] != *own)
            .filter_map(|session| session["key"].as_str())
            .collect();
        for session in &others {
            self.govc(&["session.rm", session]).await?;
        }
        Ok(others.len())
    }
}

/// Makes an authority and a certificate of the server's; gives the latter in DER.
fn certify(folder: &Path) -> Result<Vec<u8>> {
    let authority = Authority::new()?;
    let server = authority.server()?;
    for (name, text) in [
        ("ca.pem", authority.pem()),
        ("server.pem", server.certificate),
        ("server.key", server.key),
    ] {
        fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(server.der)
}

/// Starts the server; its log is in a folder that outlives it.
fn spawn(program: &Path, folder: &Path, address: &str, options: &VcsimOptions) -> Result<Child> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut arguments = vec!["-l".to_owned(), address.to_owned()];
    for (flag, value) in [
        ("-username", USERNAME.to_owned()),
        ("-password", PASSWORD.to_owned()),
        ("-tlscert", file("server.pem")),
        ("-tlskey", file("server.key")),
        ("-dc", options.datacenters.to_string()),
        ("-cluster", options.clusters.to_string()),
        ("-host", options.hosts.to_string()),
        ("-vm", options.machines.to_string()),
        ("-delay", options.delay.as_millis().to_string()),
    ] {
        arguments.extend([flag.to_owned(), value]);
    }
    if let Some(volumes) = &options.volumes {
        for (flag, value) in [
            ("-disks", volumes.disks.to_string()),
            ("-task-delay", volumes.task_delay.as_millis().to_string()),
            ("-ds", volumes.datastores.to_string()),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
    }
    let process = Child::start(program, &arguments, &log_file("vcsim")?)?;
    // It says where it listens, and with which password, once it does.
    process.said("export GOVC_URL=", START)?;
    Ok(process)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("a thread that handles vcsim panicked")?
}

#[cfg(test)]
mod tests;
