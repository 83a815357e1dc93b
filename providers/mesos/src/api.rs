//! The leading master: found by redirects; its agents and its registry.

use std::collections::BTreeSet;

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Access;
use crate::config::Masters;

/// Agents, including those that the master only has from its predecessor.
const AGENTS: &str = "/master/slaves";

/// State of the leading master, without its frameworks' tasks.
const SUMMARY: &str = "/master/state-summary";

/// What masters hand on to each other. Only the leading one has it.
const REGISTRY: &str = "/registrar(1)/registry";

/// Redirects that are followed: from a master to the leading one, and once more when that changes meanwhile.
const MOST_REDIRECTS: usize = 3;

/// User agent, for the masters' own logs.
const AGENT: &str = concat!("cloudwit-mesos/", env!("CARGO_PKG_VERSION"));

/// The way to the masters.
pub struct Api {
    http: Http,
    masters: Vec<String>,
    access: Access,
}

/// The leading master's agents.
#[derive(Debug)]
pub struct Agents {
    /// The leading master.
    pub leader: String,
    /// Agents that are registered, each as it was returned.
    pub registered: Vec<Value>,
    /// Those that were registered with its predecessor and have not come back yet.
    pub recovered: Vec<Value>,
}

#[derive(Deserialize)]
struct List {
    slaves: Vec<Value>,
    #[serde(default)]
    recovered_slaves: Vec<Value>,
}

/// A master's state.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The name that its operator gave the cluster (`--cluster`).
    pub cluster: Option<String>,
}

/// Ids of agents by their state in the masters' registry.
#[derive(Debug, Default)]
pub struct Registry {
    /// Admitted.
    pub admitted: BTreeSet<String>,
    /// Unreachable for a while; they may run.
    pub unreachable: BTreeSet<String>,
}

impl Api {
    /// For this configuration. Sends nothing yet.
    ///
    /// # Errors
    /// When a secret is not granted.
    pub fn new(masters: &Masters, context: Context) -> Result<Self, Failure> {
        let http = context.http().timeout(masters.timeout());
        Ok(Self {
            http: http.header("accept", "application/json").header("user-agent", AGENT),
            masters: masters.urls(),
            access: Access::new(masters, context)?,
        })
    }

    /// All agents. Masters are tried in their order until one answers.
    ///
    /// # Errors
    /// The error of the last of them; a refusal counts more than a master that is down.
    pub fn agents(&self) -> Result<Agents, Failure> {
        let (leader, list): (_, List) = self.ask(AGENTS)?;
        Ok(Agents {
            leader,
            registered: list.slaves,
            recovered: list.recovered_slaves,
        })
    }

    /// The leading master, and its state.
    ///
    /// # Errors
    /// As [`agents`](Self::agents).
    pub fn summary(&self) -> Result<(String, Summary), Failure> {
        self.ask(SUMMARY)
    }

    /// What the leading master has at this path, and where it is.
    fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<(String, T), Failure> {
        let mut told: Option<Failure> = None;
        for master in &self.masters {
            match self.get::<T>(format!("{master}{path}")) {
                Ok((url, answer)) => return Ok((url.strip_suffix(path).unwrap_or(master).to_owned(), answer)),
                Err(failure) => match &told {
                    Some(known) if known.kind != FailureKind::Unavailable => {}
                    _ => told = Some(failure),
                },
            }
        }
        Err(told.unwrap_or_else(|| Failure::invalid("there is no master")))
    }

    /// The registry of the leading master.
    ///
    /// # Errors
    /// Its error; when it has no list of agents.
    pub fn registry(&self, leader: &str) -> Result<Registry, Failure> {
        let (_, registry): (_, Value) = self.get(format!("{leader}{REGISTRY}"))?;
        let ids = |list: &Value, path: &str| -> BTreeSet<String> {
            let agents = list["slaves"].as_array().into_iter().flatten();
            let ids = agents.filter_map(|agent| agent.pointer(path)?.as_str());
            ids.map(str::to_owned).collect()
        };
        Ok(Registry {
            admitted: ids(&registry["slaves"], "/info/id/value"),
            unreachable: ids(&registry["unreachable"], "/id/value"),
        })
    }

    /// A GET, and the URL where it was answered.
    fn get<T: DeserializeOwned>(&self, mut url: String) -> Result<(String, T), Failure> {
        for _ in 0..=MOST_REDIRECTS {
            let response = self.access.send(&self.http, origin(&url), |header| {
                let request = self.http.get(&url);
                match header {
                    Some(header) => request.header("authorization", header).send_any(),
                    None => request.send_any(),
                }
            })?;
            if !matches!(response.status, 301 | 302 | 307 | 308) {
                let answer = response.success().map_err(no_master)?.json()?;
                return Ok((url, answer));
            }
            let target = response.header("location").unwrap_or_default();
            url = resolved(&url, target)
                .ok_or_else(|| Failure::unavailable(format!("{url} redirects to {target:?}, which is no master")))?;
        }
        Err(Failure::unavailable(
            "no leading master: the masters redirect to each other",
        ))
    }
}

/// Something that is not there is no agent that was requested.
fn no_master(failure: Failure) -> Failure {
    match failure.is_not_found() {
        true => Failure::unavailable(format!("{}; is this a Mesos master?", failure.message)),
        false => failure,
    }
}

/// Scheme and host of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    &url[..end]
}

/// Where a redirect leads: masters leave the scheme out.
fn resolved(url: &str, target: &str) -> Option<String> {
    let (scheme, _) = url.split_once("://")?;
    match target {
        whole if whole.starts_with("https://") || whole.starts_with("http://") => Some(whole.to_owned()),
        host if host.starts_with("//") => Some(format!("{scheme}:{host}")),
        path if path.starts_with('/') => Some(format!("{}{path}", origin(url))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
