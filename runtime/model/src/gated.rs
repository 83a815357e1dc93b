//! A cloud whose changes have to pass a gate.
//!
//! ```text
//!   loops --- all calls ---> Gated --- lookup, get, name, list ---> the cloud
//!                              \------ ensure, update, delete, apply ---> Gate: lets the call through, or answers itself
//! ```
//!
//! The one place that says which calls of [`Cloud`] change something (of volumes: [`gated_volumes`](crate::gated_volumes)), and that passes all others on. Dry runs and leadership are gates,
//! so no loop has to think of them before it calls, and none can omit it.

use std::fmt;
use std::sync::Arc;

use crate::volume_cloud::Each;
use crate::{
    Abilities, AnnotationChange, Answer, Balancer, Cloud, Failure, NewRoute, NodeRef, Presence, ProviderIdentity,
    Route, RouteOutcome, RouteTokens, Service, TagChange, Tags, Target, TargetUpdate, VolumeWrite,
};

/// A call that would change the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedWrite<'a> {
    /// [`Cloud::ensure_balancer`].
    EnsureBalancer {
        /// For which Service.
        service: &'a Service,
        /// Where traffic would go.
        targets: &'a [Target],
    },
    /// [`Cloud::update_targets_of`].
    UpdateTargets {
        /// Of which Services.
        updates: &'a [TargetUpdate<'a>],
        /// Where traffic would go from then on.
        targets: &'a [Target],
    },
    /// [`Cloud::delete_balancer`].
    DeleteBalancer {
        /// Of which Service.
        service: &'a Service,
    },
    /// [`Cloud::apply_routes`].
    ApplyRoutes {
        /// Routes that would be made.
        create: &'a [NewRoute],
        /// Routes that would go.
        delete: &'a [Route],
    },
    /// [`Cloud::change_tags`].
    ChangeTags {
        /// Whether the machines get them.
        change: TagChange,
        /// Whose machines.
        nodes: &'a [NodeRef],
        /// Which tags.
        tags: &'a Tags,
    },
    /// A change of volumes or snapshots, behind [`GatedVolumes`](crate::GatedVolumes).
    Volumes(VolumeWrite<'a>),
    /// [`SshKeys::ensure_ssh_key`](crate::SshKeys::ensure_ssh_key), behind [`GatedSshKeys`](crate::GatedSshKeys).
    EnsureSshKey(&'a crate::SshKey),
}

/// Decides about calls that change the cloud.
pub trait Gate: Send + Sync {
    /// Answers the call `write`: with what `call` answers, or without ever making it.
    fn change<'a, T: Send + 'a>(
        &'a self,
        write: PlannedWrite<'a>,
        call: impl FnOnce() -> Answer<'a, T> + Send + 'a,
    ) -> Answer<'a, T>;
}

/// A cloud behind a [`Gate`].
pub struct Gated<G> {
    cloud: Arc<dyn Cloud>,
    gate: G,
}

impl<G> Gated<G> {
    /// This cloud behind this gate.
    pub fn over(cloud: Arc<dyn Cloud>, gate: G) -> Self {
        Self { cloud, gate }
    }
}

impl<G> fmt::Debug for Gated<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gated").finish_non_exhaustive()
    }
}

impl<G: Gate> Cloud for Gated<G> {
    fn identity(&self) -> ProviderIdentity {
        self.cloud.identity()
    }

    fn abilities(&self) -> Abilities {
        self.cloud.abilities()
    }

    fn lookup_limit(&self) -> usize {
        self.cloud.lookup_limit()
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        self.cloud.lookup(nodes)
    }

    fn get_balancer<'a>(&'a self, service: &'a Service) -> Answer<'a, Option<Balancer>> {
        self.cloud.get_balancer(service)
    }

    fn ensure_balancer<'a>(
        &'a self,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Answer<'a, Balancer> {
        let write = PlannedWrite::EnsureBalancer { service, targets };
        self.gate
            .change(write, move || self.cloud.ensure_balancer(service, targets, token))
    }

    fn update_targets_of<'a>(
        &'a self,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        let write = PlannedWrite::UpdateTargets { updates, targets };
        self.gate
            .change(write, move || self.cloud.update_targets_of(updates, targets))
    }

    fn delete_balancer<'a>(
        &'a self,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Answer<'a, Vec<AnnotationChange>> {
        let write = PlannedWrite::DeleteBalancer { service };
        self.gate
            .change(write, move || self.cloud.delete_balancer(service, token))
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        self.cloud.list_routes()
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        let write = PlannedWrite::ApplyRoutes { create, delete };
        self.gate
            .change(write, move || self.cloud.apply_routes(create, delete, tokens))
    }

    fn change_tags<'a>(&'a self, change: TagChange, nodes: &'a [NodeRef], tags: &'a Tags) -> Answer<'a, Each<()>> {
        let write = PlannedWrite::ChangeTags { change, nodes, tags };
        self.gate
            .change(write, move || self.cloud.change_tags(change, nodes, tags))
    }
}
