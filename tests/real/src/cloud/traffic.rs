//! Requests of the client outside of the cloud, and what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};

use crate::cloud::client::{READY, Sample, Stream};
use crate::hub::network;

/// How many requests of a stream are remembered: a quarter of an hour.
const KEPT: usize = 20_000;

/// The client, from the hub's side. Dropping it ends the client.
pub struct Traffic {
    _process: Child,
    input: Mutex<ChildStdin>,
    samples: Arc<Mutex<Samples>>,
}

/// By stream and number.
type Samples = BTreeMap<String, BTreeMap<u64, Sample>>;

/// What became of the requests of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many were sent.
    pub sent: usize,
    /// How many of them failed.
    pub failed: usize,
    /// Milliseconds from the first that failed to the last.
    pub span: u64,
    /// When those that failed were sent, in milliseconds after the first request of all.
    pub failed_at: Vec<u64>,
    /// Requests by the machine that answered.
    pub machines: BTreeMap<String, usize>,
    /// The client's address as Pods saw it.
    pub clients: BTreeSet<String>,
    /// Why requests failed.
    pub reasons: BTreeSet<String>,
    /// How many in a row were answered in the end.
    pub answered_since: usize,
}

impl Traffic {
    /// Starts the client, which sends nothing yet.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn start(folder: &Path) -> Result<Self> {
        let log = File::create(folder.join("client.log")).context("making the log of the client")?;
        let mut process = Command::new("unshare")
            .arg("--net")
            .arg(std::env::current_exe().context("looking for our own program")?)
            .arg("client")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("starting the client")?;
        let input = process.stdin.take().context("the client has no standard input")?;
        let output = process.stdout.take().context("the client has no standard output")?;
        let mut lines = BufReader::new(output).lines().map_while(|line| line.ok());
        if lines.next().as_deref() != Some(READY) {
            bail!("the client did not start; see client.log");
        }
        network::attach_client(process.id())?;
        let samples = Arc::new(Mutex::new(Samples::new()));
        let shared = Arc::clone(&samples);
        std::thread::spawn(move || {
            for sample in lines.filter_map(|line| serde_json::from_str::<Sample>(&line).ok()) {
                let mut all = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let stream = all.entry(sample.stream.clone()).or_default();
                stream.insert(sample.number, sample);
                if stream.len() > KEPT {
                    stream.pop_first();
                }
            }
        });
        Ok(Self {
            _process: process,
            input: Mutex::new(input),
            samples,
        })
    }

    /// From now on sends requests to this address (`IP:PORT`).
    ///
    /// # Errors
    ///
    /// When the client has ended.
    pub fn send(&self, name: &str, address: &str, path: &str) -> Result<()> {
        let stream = Stream {
            name: name.to_owned(),
            address: address.to_owned(),
            path: path.to_owned(),
        };
        let line = serde_json::to_string(&stream).context("writing a stream")?;
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(input, "{line}").context("the client has ended; see client.log")
    }

    /// What became of the requests that were sent between these times (see [`now`](crate::cloud::client::now)); `None` while one is still under way.
    pub fn between(&self, stream: &str, from: u64, to: u64) -> Option<Summary> {
        let samples = self.samples();
        let mut expected = None;
        let mut complete = false;
        let mut chosen = Vec::new();
        for (number, sample) in samples.get(stream)? {
            if expected.is_some_and(|expected| expected != *number) {
                return None;
            }
            expected = Some(number + 1);
            if sample.sent > to {
                complete = true;
                break;
            }
            if sample.sent >= from {
                chosen.push(sample);
            }
        }
        complete.then(|| summary(&chosen))
    }

    /// What is known up to now of the requests that were sent since then.
    pub fn since(&self, stream: &str, from: u64) -> Summary {
        let samples = self.samples();
        let all = samples.get(stream).into_iter().flat_map(|stream| stream.values());
        summary(&all.filter(|sample| sample.sent >= from).collect::<Vec<_>>())
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bodies are `POD MACHINE CLIENT`.
fn summary(samples: &[&Sample]) -> Summary {
    let mut all = Summary {
        sent: samples.len(),
        ..Summary::default()
    };
    let mut first_failed = None;
    for sample in samples {
        match &sample.outcome {
            Ok(body) => {
                let mut words = body.split(' ').skip(1).map(str::to_owned);
                *all.machines.entry(words.next().unwrap_or_default()).or_default() += 1;
                let client = words.next().unwrap_or_default();
                all.clients
                    .insert(client.trim_start_matches("[::ffff:").trim_end_matches(']').to_owned());
                all.answered_since += 1;
            }
            Err(reason) => {
                all.failed += 1;
                all.reasons.insert(reason.clone());
                all.failed_at.push(sample.sent - samples[0].sent);
                all.span = sample.sent - *first_failed.get_or_insert(sample.sent);
                all.answered_since = 0;
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: u64, outcome: Result<&str, &str>) -> Sample {
        Sample {
            stream: "s".to_owned(),
            number,
            sent: 1000 + number * 50,
            outcome: outcome.map(str::to_owned).map_err(str::to_owned),
        }
    }

    #[test]
    fn answers_and_failures_are_counted() {
        let samples = [
            sample(0, Ok("web-a machine-1 192.0.2.10")),
            sample(1, Err("no response")),
            sample(2, Ok("web-b machine-2 [::ffff:192.0.2.10]")),
            sample(3, Err("no response")),
            sample(4, Ok("web-b machine-2 192.0.2.10")),
        ];
        let found = summary(&samples.iter().collect::<Vec<_>>());
        assert_eq!(
            (found.sent, found.failed, found.span, found.answered_since),
            (5, 2, 100, 1)
        );
        assert_eq!(found.failed_at, [50, 150]);
        assert_eq!(
            found.machines,
            BTreeMap::from([("machine-1".to_owned(), 1), ("machine-2".to_owned(), 2)])
        );
        assert_eq!(found.clients, BTreeSet::from(["192.0.2.10".to_owned()]));
    }
}
