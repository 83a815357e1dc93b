//! OCI registry by a third party (go-containerregistry's), in memory, for the time of a test.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::programs::child::Child;
use crate::programs::port;

const START: Duration = Duration::from_secs(60);

/// Between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(20);

/// A running registry, empty at first, without lists of referrers. Dropping it ends it.
#[derive(Debug)]
pub struct OciRegistry {
    _process: Child,
    address: String,
    _folder: TempDir,
}

impl OciRegistry {
    /// Starts one. Builds the program first when that has not been done yet (seconds).
    ///
    /// # Errors
    ///
    /// When Go is missing, or it does not start.
    pub async fn start() -> Result<Self> {
        tokio::task::spawn_blocking(Self::spawn).await?
    }

    fn spawn() -> Result<Self> {
        let (program, port) = (xtask::servers::oci_registry::program()?, port::reserve()?);
        let folder = tempfile::tempdir().context("making a folder")?;
        let log = folder.path().join("registry.log");
        let process = Child::start(&program, &["-port".to_owned(), port.to_string()], &log)?;
        let (address, begun) = (format!("127.0.0.1:{port}"), Instant::now());
        while TcpStream::connect(&address).is_err() {
            if begun.elapsed() > START || !process.runs() {
                bail!(
                    "the registry does not listen; the end of its log:\n{}",
                    process.log_end()
                );
            }
            std::thread::sleep(LOOK);
        }
        Ok(Self {
            _process: process,
            address,
            _folder: folder,
        })
    }

    /// Where it listens, as `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }
}
