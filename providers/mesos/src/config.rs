//! Cloud config: the section and keys of the in-tree provider that Kubernetes had until 1.6, and the credentials.

use std::time::Duration;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_duration;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;

/// The master where the key is left out, as the in-tree provider has it.
const MASTER: &str = "localhost:5050";

/// How long to wait for an answer where the key is left out, likewise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Shortest and longest wait: what the host counts in, and a third of the time that a call has, so that a second master can be tried.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(20));

/// Most masters; a quorum has five.
const MOST_MASTERS: usize = 9;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[mesos-cloud]`.
    #[serde(rename = "mesos-cloud")]
    pub masters: Masters,
}

/// `[mesos-cloud]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Masters {
    mesos_master: Option<String>,
    http_client_timeout: Option<String>,
    state_cache_ttl: Option<String>,
    auth: Option<String>,
    uid: Option<String>,
}

/// User agent of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// Principal and secret in every request.
    Basic,
    /// A token of DC/OS, by a service account's key.
    Dcos,
    /// The same by a user's password.
    DcosPassword,
}

impl Masters {
    /// The masters' URLs, without a slash at the end.
    pub(crate) fn urls(&self) -> Vec<String> {
        let masters = given(&self.mesos_master).unwrap_or(MASTER).split(',');
        let url = |master: &str| match master.trim_ascii().trim_end_matches('/') {
            url if url.contains("://") => url.to_owned(),
            host => format!("http://{host}"),
        };
        masters.map(url).collect()
    }

    pub(crate) fn auth(&self) -> Auth {
        match given(&self.auth) {
            Some("basic") => Auth::Basic,
            Some("dcos") => Auth::Dcos,
            Some("dcos-password") => Auth::DcosPassword,
            _ => Auth::None,
        }
    }

    /// Name of the user or service account.
    pub(crate) fn uid(&self) -> &str {
        given(&self.uid).unwrap_or_default()
    }

    pub(crate) fn timeout(&self) -> Duration {
        let wanted = given(&self.http_client_timeout).and_then(wait);
        wanted.map_or(TIMEOUT, |wanted| wanted.clamp(WAITS.0, WAITS.1))
    }

    /// The grant requests for each master.
    pub(crate) fn wishes(&self) -> Vec<HttpWish> {
        let methods: &[&str] = match self.auth() {
            Auth::None | Auth::Basic => &["GET"],
            Auth::Dcos | Auth::DcosPassword => &["GET", "POST"],
        };
        let urls = self.urls().into_iter();
        urls.filter_map(|url| HttpWish::for_url(&url, methods, "a Mesos master: its agents"))
            .collect()
    }

    pub(crate) fn validate(&self, problems: &mut Problems) {
        let urls = self.urls();
        for url in &urls {
            if url.starts_with("zk://") {
                let text = "ZooKeeper cannot be asked from here; write all masters, such as 10.0.0.1:5050,10.0.0.2:5050: the leading one is found by them";
                problems.add("mesos-cloud.mesos-master", text);
            } else if !is_url(url) {
                let text =
                    format!("\"{url}\" is no master; write it like 10.0.0.1:5050 or https://dcos.example.com/mesos");
                problems.add("mesos-cloud.mesos-master", text);
            }
        }
        if urls.len() > MOST_MASTERS {
            let text = format!("{} masters; write at most {MOST_MASTERS}", urls.len());
            problems.add("mesos-cloud.mesos-master", text);
        }
        let key = "mesos-cloud.http-client-timeout";
        match given(&self.http_client_timeout).map(wait) {
            Some(None) => problems.add(key, "this is no time to wait; write it like 10s"),
            Some(Some(wanted)) if wanted != self.timeout() => {
                let text = format!("counts as {} s: the wait is 1 s to 20 s", self.timeout().as_secs());
                problems.warn(key, text);
            }
            _ => {}
        }
        if given(&self.state_cache_ttl).is_some() {
            let text = "has no effect: one list answers for all Nodes that wait";
            problems.warn("mesos-cloud.state-cache-ttl", text);
        }
        match given(&self.auth) {
            None | Some("none" | "basic" | "dcos" | "dcos-password") => {}
            Some(other) => problems.add(
                "mesos-cloud.auth",
                format!("\"{other}\" is unknown; write none, basic, dcos or dcos-password"),
            ),
        }
        let is_dcos = matches!(self.auth(), Auth::Dcos | Auth::DcosPassword);
        match given(&self.uid) {
            None if is_dcos => problems.add(
                "mesos-cloud.uid",
                "this key is missing; write who asks DC/OS for a token",
            ),
            Some(_) if !is_dcos => {
                problems.add("mesos-cloud.uid", "has no effect without auth = dcos or dcos-password")
            }
            _ => {}
        }
    }
}

/// A time to wait in Go's syntax; one of less than a second in milliseconds alone.
fn wait(text: &str) -> Option<Duration> {
    let short = text.strip_suffix("ms").and_then(|number| number.parse().ok());
    if let Some(number @ 1..1000) = short {
        return Some(Duration::from_millis(number));
    }
    u64::try_from(parse_duration(text)?).ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
