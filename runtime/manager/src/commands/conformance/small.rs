//! Interfaces with one function that change nothing: `clusters` and `dns`.
//!
//! `location` needs a machine, and a key that `ssh-keys` has spread cannot be taken away again: neither is tried.

use std::collections::BTreeSet;

use cloudwit_model::{Cloud as _, CloudError, DnsScrubber as _, Failure, KnownClusters as _, Resolver};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

/// Tries what the component exports.
pub async fn run(trial: &Trial, report: &mut Report) {
    let (provider, abilities) = (&trial.provider, trial.provider.abilities());
    if abilities.clusters {
        let mut promise = Promise::of("clusters", "clusters are listed, each name once");
        let listed = match provider.known_clusters().await {
            // Another service of the cloud, which need not be granted.
            Err(CloudError::Failure(Failure::Denied(_))) => None,
            listed => promise.answered(listed),
        };
        if let Some(clusters) = listed {
            let names: BTreeSet<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
            promise.holds(names.len() == clusters.len(), || {
                format!("{} clusters have {} names", clusters.len(), names.len())
            });
        }
        report.add(promise);
    }
    if abilities.dns {
        let mut promise = Promise::of("dns", "what is unknown stays, and what is left is left again");
        let found = Resolver {
            nameservers: vec!["192.0.2.53".to_owned(), "2001:db8::53".to_owned()],
            searches: vec!["conformance.example.".to_owned()],
        };
        if let Some(left) = promise.answered(provider.scrub_dns(&found).await) {
            promise.holds(left.searches == found.searches, || {
                format!("of {:?} it leaves {:?}", found.searches, left.searches)
            });
            promise.holds(!left.nameservers.is_empty(), || "it leaves no name server".to_owned());
            if let Some(again) = promise.answered(provider.scrub_dns(&left).await) {
                promise.holds(again == left, || {
                    format!("it makes {again:?} of its own answer {left:?}")
                });
            }
        }
        report.add(promise);
    }
}
