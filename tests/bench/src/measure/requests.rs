//! What the API server was asked, by verb and resource, from its own metrics.
//!
//! Only what controllers work on is counted: Nodes, Services and Events. Watches are not, since each stands for as long as it likes; the API server's
//! requests to itself are about other resources.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::Client;

/// What is counted.
const RESOURCES: [&str; 3] = ["nodes", "events", "services"];

/// Requests that stand.
const STANDING: [&str; 2] = ["WATCH", "CONNECT"];

/// How many requests there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// All, by words such as `PATCH nodes/status`, whatever came of them: what is tried again is counted again.
    pub counts: BTreeMap<String, u64>,
    /// Those of them that were answered with an error, such as a conflict.
    pub refused: u64,
}

impl Requests {
    /// Since the server's start.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub async fn served(client: &Client) -> Result<Self> {
        let request = kube::core::Request::new("/metrics").list(&Default::default())?;
        let metrics = client
            .request_text(request)
            .await
            .context("reading the API server's metrics")?;
        Ok(Self::read(&metrics))
    }

    /// What came after `earlier`; what did not change is left out.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let new = self.counts.iter().map(|(what, count)| {
            let before = earlier.counts.get(what).copied().unwrap_or_default();
            (what.clone(), count.saturating_sub(before))
        });
        Self {
            counts: new.filter(|(_, count)| *count > 0).collect(),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Without so many of one kind, which were somebody else's.
    #[must_use]
    pub fn without(mut self, what: &str, count: u64) -> Self {
        if let Some(all) = self.counts.get_mut(what) {
            *all = all.saturating_sub(count);
        }
        self
    }

    fn read(metrics: &str) -> Self {
        let mut requests = Self::default();
        for line in metrics
            .lines()
            .filter_map(|line| line.strip_prefix("apiserver_request_total{"))
        {
            let Some((labels, value)) = line.rsplit_once("} ") else {
                continue;
            };
            let label = |name: &str| {
                let found = labels
                    .split(',')
                    .find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'));
                found.filter(|value| !value.is_empty())
            };
            let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else {
                continue;
            };
            if RESOURCES.contains(&resource) && !STANDING.contains(&verb) {
                let part = label("subresource").map(|name| format!("/{name}")).unwrap_or_default();
                let count = value.parse::<f64>().map_or(0, |value| value as u64);
                *requests.counts.entry(format!("{verb} {resource}{part}")).or_default() += count;
                if label("code").is_some_and(|code| code.starts_with(['4', '5'])) {
                    requests.refused += count;
                }
            }
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(counts: &[(&str, u64)]) -> Requests {
        let counts = counts.iter().map(|(what, count)| ((*what).to_owned(), *count));
        Requests {
            counts: counts.collect(),
            refused: 0,
        }
    }

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let metrics = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"status\",verb=\"PATCH\"} 3\n\
            apiserver_request_total{code=\"409\",resource=\"nodes\",subresource=\"status\",verb=\"PATCH\"} 2\n\
            apiserver_request_total{code=\"201\",resource=\"events\",subresource=\"\",verb=\"POST\"} 1.2e+03\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"\",verb=\"WATCH\"} 9\n\
            apiserver_request_total{code=\"200\",resource=\"pods\",subresource=\"\",verb=\"LIST\"} 9\n";
        let read = Requests::read(metrics);
        assert_eq!(
            read.counts,
            requests(&[("PATCH nodes/status", 5), ("POST events", 1200)]).counts
        );
        assert_eq!(read.refused, 2);
        assert_eq!(read.since(&Requests::default()).refused, 2);
        assert_eq!(read.since(&read).refused, 0);
    }

    #[test]
    fn what_came_since_is_a_difference() {
        let before = requests(&[("PUT nodes", 3), ("LIST nodes", 1)]);
        let after = requests(&[("PUT nodes", 10), ("LIST nodes", 1), ("POST events", 2)]);
        let new = after.since(&before);
        assert_eq!(new, requests(&[("PUT nodes", 7), ("POST events", 2)]));
        assert_eq!(new.total(), 9);
        assert_eq!(new.without("PUT nodes", 5).total(), 4);
    }
}
