//! The client outside of the cloud: a process with a network of its own that sends requests at a steady rate and reports each of them.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::cloud::request;

/// Time between two requests of a stream: 20 a second.
const PERIOD: Duration = Duration::from_millis(50);

/// How long a request may take. Then it counts as failed.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// The line that says that the process is there.
pub const READY: &str = "READY";

/// A stream of requests that is wanted: one line of standard input.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stream {
    /// Its name in samples.
    pub name: String,
    /// `IP:PORT`.
    pub address: String,
    /// What is asked for.
    pub path: String,
}

/// What became of a request: one line of standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Of which stream.
    pub stream: String,
    /// Counted from 0 without gaps, in the order of sending.
    pub number: u64,
    /// When it was sent, in milliseconds since 1970.
    pub sent: u64,
    /// The body, or why there is none.
    pub outcome: Result<String, String>,
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Runs until standard input closes.
///
/// # Errors
///
/// When a line of standard input is no stream.
pub fn run() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    println!("{READY}");
    for line in stdin().lock().lines() {
        let line = line.context("reading standard input")?;
        let stream = serde_json::from_str(&line).with_context(|| format!("{line:?} is no stream"))?;
        runtime.spawn(send(stream));
    }
    Ok(())
}

async fn send(stream: Stream) {
    let mut ticks = tokio::time::interval(PERIOD);
    // Late ones are sent at once, so that a busy machine hides no failure.
    for number in 0.. {
        ticks.tick().await;
        let (name, address, path) = (stream.name.clone(), stream.address.clone(), stream.path.clone());
        tokio::spawn(async move {
            let sent = now();
            let outcome = request::get(&address, &path, TIMEOUT).await;
            let sample = Sample {
                stream: name,
                number,
                sent,
                outcome,
            };
            if let Ok(line) = serde_json::to_string(&sample) {
                // Whoever reads may have ended.
                let _ = writeln!(stdout().lock(), "{line}");
            }
        });
    }
}
