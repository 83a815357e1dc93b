//! The only door between the controllers and a cloud.

use std::future::Future;
use std::pin::Pin;

use crate::volume_cloud::Each;
use crate::{
    AnnotationChange, Balancer, CloudError, Failure, FaultKind, NewRoute, NodeRef, Presence, ProviderFault, Route,
    RouteOutcome, RouteTokens, Service, TagChange, Tags, Target, TargetUpdate,
};

/// The answer to a call: what the cloud says, or why there is no answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, CloudError>> + Send + 'a>>;

/// Interfaces of a provider. Read from the interfaces that its component exports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// `instances`: machines behind Nodes.
    pub instances: bool,
    /// `load-balancers`: Services of type `LoadBalancer`.
    pub load_balancers: bool,
    /// `routes`: routes to Pod ranges.
    pub routes: bool,
    /// `volumes`, and what counts beside it.
    pub volumes: VolumeAbilities,
    /// `volume-labels`: labels of disks that PersistentVolumes name themselves. Needs no `volumes`.
    pub volume_labels: bool,
    /// `tagging`: tags on the machines behind Nodes.
    pub tagging: bool,
    /// `clusters`: clusters that the cloud itself manages.
    pub clusters: bool,
    /// `dns`: which name servers and search domains Pods should use.
    pub dns: bool,
    /// `location`: the calling machine.
    pub location: bool,
    /// `ssh-keys`: public keys for all machines.
    pub ssh_keys: bool,
}

/// Interfaces of a provider for volumes. The others count only beside `basic`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VolumeAbilities {
    /// `volumes`: created, attached, deleted.
    pub basic: bool,
    /// `volume-expansion`: they grow.
    pub expansion: bool,
    /// `volume-listing`: a list of all.
    pub listing: bool,
    /// `volume-snapshots`: snapshots, and volumes that begin with one.
    pub snapshots: bool,
    /// `volume-modification`: their kind changes.
    pub modification: bool,
    /// `volume-capacity`: how much room there is.
    pub capacity: bool,
}

/// The flag of one interface.
type Flag = fn(&mut Abilities) -> &mut bool;

impl Abilities {
    /// Each interface that is exported or not, under its name in the contract.
    const INTERFACES: [(&str, Flag); 15] = [
        ("instances", |all| &mut all.instances),
        ("load-balancers", |all| &mut all.load_balancers),
        ("routes", |all| &mut all.routes),
        ("volumes", |all| &mut all.volumes.basic),
        ("volume-expansion", |all| &mut all.volumes.expansion),
        ("volume-listing", |all| &mut all.volumes.listing),
        ("volume-snapshots", |all| &mut all.volumes.snapshots),
        ("volume-modification", |all| &mut all.volumes.modification),
        ("volume-capacity", |all| &mut all.volumes.capacity),
        ("volume-labels", |all| &mut all.volume_labels),
        ("clusters", |all| &mut all.clusters),
        ("dns", |all| &mut all.dns),
        ("location", |all| &mut all.location),
        ("ssh-keys", |all| &mut all.ssh_keys),
        ("tagging", |all| &mut all.tagging),
    ];

    /// Of a component that exports these interfaces of the contract.
    pub fn of(exports: impl Fn(&str) -> bool) -> Self {
        let mut all = Self::default();
        for (name, field) in Self::INTERFACES {
            *field(&mut all) = exports(name);
        }
        if !all.volumes.basic {
            all.volumes = VolumeAbilities::default();
        }
        all
    }

    /// What is left when these interfaces are off; names of none count for nothing.
    pub fn without(self, off: &[String]) -> Self {
        let left = self.names();
        Self::of(|name| left.contains(&name) && !off.iter().any(|one| one == name))
    }

    /// The interfaces, by their names in the contract.
    pub fn names(mut self) -> Vec<&'static str> {
        let has = |(name, field): (&'static str, Flag)| field(&mut self).then_some(name);
        Self::INTERFACES.into_iter().filter_map(has).collect()
    }
}

/// Which provider this is. Changes when the component is swapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderIdentity {
    /// Short name, as `info.describe` gives it.
    pub name: String,
    /// The provider's own version.
    pub version: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
    /// Prefixes of the provider ids it gives out.
    pub provider_id_prefixes: Vec<String>,
    /// Finalizers that another controller of this cloud leaves on Services; they go with the load balancer.
    pub service_finalizers: Vec<String>,
    /// The label by which another controller of this cloud notes on Nodes which tags their machines have.
    pub tagging_label: Option<String>,
}

/// A cloud, as a provider sees it.
///
/// Calling what [`abilities`](Cloud::abilities) does not list is a fault of kind
/// [`NotExported`](crate::FaultKind::NotExported). Every call ends: it waits at most the provider's wall-clock limit for room
/// to run, and runs at most as long. Dropping the future cancels the call.
pub trait Cloud: Send + Sync {
    /// Which provider answers. The digest changes with its settings, too.
    fn identity(&self) -> ProviderIdentity;

    /// Its interfaces.
    fn abilities(&self) -> Abilities;

    /// The largest number of Nodes that [`lookup`](Cloud::lookup) takes at once.
    fn lookup_limit(&self) -> usize {
        1000
    }

    /// Looks machines up. On success the answer has the order and the length of `nodes`; an implementation guarantees that.
    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>>;

    /// The Service's load balancer, if there is one.
    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>>;

    /// Creates or corrects the load balancer. `token` continues a [`Failure::Pending`].
    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer>;

    /// Gives the load balancers of these Services these targets, and changes nothing else. At most [`MAX_TARGET_UPDATES`](crate::MAX_TARGET_UPDATES)
    /// Services, none twice. On success the answer has the order and the length of `updates`; an implementation guarantees that.
    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>>;

    /// The same for one Service.
    fn update_targets<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let update = [TargetUpdate { service, token }];
            let mut results = self.update_targets_of(&update, targets).await?;
            let missing = || Err(Failure::InvalidResponse("no result for the Service".to_owned()));
            Ok(results.pop().unwrap_or_else(missing)?)
        })
    }

    /// Deletes the load balancer and all that belongs to it. Success when there is none.
    fn delete_balancer<'a>(&'a self, service: &'a Service, token: Option<&'a str>)
    -> Answer<'a, Vec<AnnotationChange>>;

    /// The routes that belong to this cluster.
    fn list_routes(&self) -> Answer<'_, Vec<Route>>;

    /// Deletes and creates routes, one result for each, in their order. Continues changes that were [`Failure::Pending`].
    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome>;

    /// Gives the machines of these Nodes these tags, or takes them off. At most [`MAX_TAGGED_NODES`](crate::MAX_TAGGED_NODES) Nodes, each with a provider id. On
    /// success the answer has the order and the length of `nodes`; an implementation guarantees that.
    fn change_tags<'a>(&'a self, change: TagChange, nodes: &'a [NodeRef], tags: &'a Tags) -> Answer<'a, Each<()>> {
        let _ = (change, nodes, tags);
        let fault = ProviderFault {
            provider: self.identity().name,
            kind: FaultKind::NotExported,
            message: "it does not export tagging".to_owned(),
            output: String::new(),
        };
        Box::pin(async move { Err(fault.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abilities_are_named_as_they_are_exported() {
        let exports = ["info", "routes", "volumes", "volume-listing"];
        let abilities = Abilities::of(|name| exports.contains(&name));
        assert_eq!(abilities.names(), exports[1..]);
        let all = Abilities::of(|_| true).names();
        assert_eq!(all.len(), Abilities::INTERFACES.len());
    }

    #[test]
    fn what_counts_beside_volumes_needs_them() {
        let abilities = Abilities::of(|name| name.starts_with("volume-"));
        assert_eq!(abilities.names(), ["volume-labels"], "labels need none");
    }

    #[test]
    fn interfaces_that_are_off_are_not_among_the_abilities() {
        let exports = ["instances", "load-balancers", "routes", "volumes", "volume-listing"];
        let all = Abilities::of(|name| exports.contains(&name));
        let off = ["routes", "volumes", "nonsense"].map(str::to_owned);
        assert_eq!(all.without(&off).names(), ["instances", "load-balancers"]);
        assert_eq!(all.without(&[]), all);
    }
}
