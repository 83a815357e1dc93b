//! What an author implements: one trait for each interface of the contract.
//!
//! The host makes a fresh instance of the component for every call, so a provider is built, called once and dropped:
//! `Provider::new` reads no network and keeps no cache. What must outlive a call goes to [`Context::state`].

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::config::Tree;
use crate::context::RESERVE;
use crate::types::*;
use crate::{Context, Problems};

/// What every provider answers. Export `info` of the contract.
pub trait Provider: Sized {
    /// The cloud config. Unknown keys, missing keys and wrong types are found and reported by themselves, all at once.
    /// Use [`NoConfig`](crate::NoConfig) when there is nothing to configure.
    type Config: DeserializeOwned;

    /// Name, version, provider-id prefixes, and its grant requests. `config` is none when it is wrong or missing;
    /// this must then still answer.
    fn describe(config: Option<&Self::Config>) -> Description;

    /// Mistakes that types cannot express: a URL that is none, a page size of nought. No network.
    fn validate(config: &Self::Config, problems: &mut Problems) {
        let _ = (config, problems);
    }

    /// Makes the provider for one call. The configuration has passed [`validate`](Self::validate).
    ///
    /// # Errors
    /// Whatever makes a call impossible; the call is answered with it.
    fn new(config: Self::Config, context: Context) -> Result<Self, Failure>;

    /// One cheap authenticated call, to check address and credentials.
    ///
    /// # Errors
    /// The cloud's error.
    fn probe(&self) -> Result<(), Failure>;

    /// Reads the text of the cloud config. JSON unless a provider documents another format: it then builds the tree that
    /// [`Config`](Self::Config) is read from. Empty text never gets here and counts as an empty object.
    ///
    /// # Errors
    /// Where the text is malformed.
    fn parse_config(text: &str) -> Result<Tree, Problem> {
        crate::config::parse_json(text)
    }
}

/// Machines behind Nodes. Export `instances` of the contract.
pub trait Instances: Provider {
    /// Looks many machines up, in the order and number of `nodes` (at most 1,000). List pages of machines instead of fetching each.
    ///
    /// An inner failure is for one machine. `Presence::Absent` is only for what the cloud reported as not found; when in doubt, fail. But a
    /// 404 for exactly this machine is no failure, it is `Absent`: as a failure it would keep the Node forever.
    ///
    /// # Errors
    /// What prevents every look-up: the cloud cannot be reached, the token is refused.
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure>;
}

/// Load balancers for Services. Export `load-balancers` of the contract.
///
/// Calls for one Service never overlap. Everything but [`name`](Self::name) and [`get`](Self::get) has to be idempotent: find by
/// owner (the Service's uid) first, adopt by name second, create last.
pub trait LoadBalancers: Provider {
    /// The name of the Service's load balancer: stable for its life, no network. By default the one every upstream provider uses.
    fn name(cluster: &ClusterInfo, service: &Service) -> String {
        let _ = cluster;
        default_balancer_name(service)
    }

    /// Finds the Service's load balancer, half-built ones too. Changes nothing.
    ///
    /// # Errors
    /// The cloud's error. Not finding it is `Ok(None)`.
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure>;

    /// Creates it or brings it to the Service's spec. `token` is the one of the `pending` answer that this call continues.
    ///
    /// It succeeds as soon as there is an address: targets that are not healthy yet are no reason to wait. It is also called from time
    /// to time although nothing changed, to undo changes by hand; where all is right it should only read.
    ///
    /// # Errors
    /// `pending` while the cloud works on it; else the cloud's error.
    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure>;

    /// Brings only the targets up to date.
    ///
    /// # Errors
    /// `not-found` when there is no load balancer, `pending` while the cloud works on it.
    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure>;

    /// The same for several Services (2 to 50), in their order and number. By default [one after the other](one_by_one), as far as the call's
    /// time suffices.
    ///
    /// A Node that comes or goes is a change of all of them: a cloud whose load balancers can be listed in one request should do that here, and write
    /// only what differs. An inner failure is for one Service.
    ///
    /// # Errors
    /// What prevents every update: the cloud cannot be reached, the token is refused.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        Ok(one_by_one(updates, |update| update_one(self, update, targets)))
    }

    /// Deletes it and everything made for it. Success when there is nothing.
    ///
    /// # Errors
    /// `pending` while the cloud works on it; else the cloud's error.
    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure>;
}

/// Routes to Pod ranges. Export `routes` of the contract.
pub trait Routes: Provider {
    /// The routes of this cluster and no others: what is listed and not desired is deleted.
    ///
    /// # Errors
    /// The cloud's error.
    fn list(&self) -> Result<Vec<Route>, Failure>;

    /// Deletes, then creates. One result for each change, in the given order. Creating what exists and deleting what does not is
    /// success.
    ///
    /// # Errors
    /// What prevents every change.
    fn apply(&self, create: &[NewRoute], delete: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure>;
}

/// Tags on the machines of Nodes, as an operator sets them. Export `tagging` of the contract.
///
/// Called with at most 200 Nodes, each with a provider id, and 1 to 50 tags. The answer has the order and the number of `nodes`; make few requests, and let a
/// machine that the cloud refuses cost no other. An inner failure is for one machine: `not-found` when there is none (not for [`untag`](Self::untag)), `invalid` for
/// an id that this cloud cannot have given out, `implemented-elsewhere` for a machine that carries no tags.
pub trait Tagging: Provider {
    /// Gives the machines these tags, in place of other values under the same keys.
    ///
    /// # Errors
    /// What prevents every change.
    fn tag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure>;

    /// Takes these tags off where they have these values. Success for a machine that does not exist.
    ///
    /// # Errors
    /// What prevents every change.
    fn untag(&self, nodes: &[NodeRef], tags: &[Pair]) -> Result<Vec<Result<(), Failure>>, Failure>;
}

pub(crate) fn update_one<P: LoadBalancers>(
    provider: &P,
    update: &TargetUpdate,
    targets: &[Target],
) -> Result<Vec<AnnotationChange>, Failure> {
    provider.update_targets(&update.service, targets, update.token())
}

/// How soon updates that were not begun are requested again.
const NEXT: Duration = Duration::from_millis(100);

/// Makes these updates in order. When less than ten seconds are left of the call, those that are left answer `pending`, but never all: a call
/// that were cut off would be a fault of every one.
pub fn one_by_one<T>(
    updates: &[TargetUpdate],
    mut update: impl FnMut(&TargetUpdate) -> Result<T, Failure>,
) -> Vec<Result<T, Failure>> {
    let (mut results, context) = (Vec::with_capacity(updates.len()), Context::new());
    for (at, one) in updates.iter().enumerate() {
        results.push(if at == 0 || context.time_left() > RESERVE {
            update(one)
        } else {
            let token = one.token.as_deref().unwrap_or_default();
            Err(Failure::pending(NEXT, token, "queued behind other load balancers"))
        });
    }
    results
}

/// The name upstream's providers give, from the Service's uid: [`default_load_balancer_name`](crate::names::default_load_balancer_name).
pub fn default_balancer_name(service: &Service) -> String {
    crate::names::default_load_balancer_name(&service.uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_is_upstreams() {
        let service = Service::new("default", "web", "1bf6e8a3-6f0a-4d3e-9a3c-000000000001");
        assert_eq!(default_balancer_name(&service), "a1bf6e8a36f0a4d3e9a3c00000000000");
    }
}
