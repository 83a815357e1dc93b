//! States of one Service's load balancer as recorded by this process.

mod drift;
mod record;
mod unwritten;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;

pub use crate::service::state::drift::DriftState;
pub use crate::service::state::record::Record;
pub use crate::service::state::unwritten::Unwritten;
use crate::service::targets::DatedSet;

/// A call to the cloud that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `ensure`.
    Ensure,
    /// `update-targets`.
    UpdateTargets,
    /// `delete`.
    Delete,
}

/// What a call in progress continues with.
#[derive(Debug, Clone)]
pub struct Pending {
    token: String,
    message: String,
    /// What the first call of the operation was given; that, and nothing newer, is done when it succeeds.
    service: Arc<Service>,
    targets: DatedSet,
}

/// What the load balancer was brought to last.
#[derive(Debug, Clone)]
pub struct Ensured {
    /// The Service as the provider saw it, plus the annotations that were written for it since.
    pub service: Arc<Service>,
    /// The nodes it was given.
    pub targets: DatedSet,
}

/// A change of an ensured load balancer that was begun and has not succeeded. It may be half done, so it is repeated also where the Service
/// and the nodes are as before again.
#[derive(Debug, Clone)]
pub enum StartedChange {
    /// By `ensure`, which gives the nodes too.
    Ensure(Option<Pending>),
    /// By `update-targets`.
    UpdateTargets(Option<Pending>),
}

/// The load balancer as recorded by this process.
#[derive(Debug, Clone)]
pub enum BalancerState {
    /// This process has not called the cloud for it. There may be one of an earlier process.
    Unknown,
    /// An `ensure` was begun and has not succeeded, or has to be repeated.
    Ensuring(Option<Pending>),
    /// It was ensured.
    Ensured {
        /// What it was brought to.
        last: Ensured,
        /// What was begun since.
        change: Option<StartedChange>,
    },
    /// The provider said that another controller looks after this Service, and is called again when it changes.
    Elsewhere(Arc<Service>),
    /// A `delete` was begun and has not succeeded: it may be half done.
    Deleting {
        /// What the call continues with.
        pending: Option<Pending>,
        /// Whether this process made calls before that may have created something.
        touched: bool,
    },
    /// It was deleted and not ensured since.
    Deleted,
}

impl BalancerState {
    /// The continuation of the call in progress.
    fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Ensuring(pending)
            | Self::Ensured {
                change: Some(StartedChange::Ensure(pending) | StartedChange::UpdateTargets(pending)),
                ..
            }
            | Self::Deleting { pending, .. } => pending.as_ref(),
            _ => None,
        }
    }

    fn pending_mut(&mut self) -> Option<&mut Option<Pending>> {
        match self {
            Self::Ensuring(pending)
            | Self::Ensured {
                change: Some(StartedChange::Ensure(pending) | StartedChange::UpdateTargets(pending)),
                ..
            }
            | Self::Deleting { pending, .. } => Some(pending),
            _ => None,
        }
    }

    fn take_pending(&mut self) -> Option<Pending> {
        self.pending_mut().and_then(Option::take)
    }

    /// The call in progress.
    fn operation(&self) -> Option<Operation> {
        match self {
            Self::Ensuring(_)
            | Self::Ensured {
                change: Some(StartedChange::Ensure(_)),
                ..
            } => Some(Operation::Ensure),
            Self::Ensured {
                change: Some(StartedChange::UpdateTargets(_)),
                ..
            } => Some(Operation::UpdateTargets),
            Self::Deleting { .. } => Some(Operation::Delete),
            _ => None,
        }
    }

    /// The Service as the provider saw it: when all was done last, and at the beginning of the call in progress.
    fn services_mut(&mut self) -> impl Iterator<Item = &mut Arc<Service>> {
        let (last, pending) = match self {
            Self::Ensured { last, change } => (
                Some(&mut last.service),
                match change {
                    Some(StartedChange::Ensure(pending) | StartedChange::UpdateTargets(pending)) => pending.as_mut(),
                    None => None,
                },
            ),
            Self::Elsewhere(service) => (Some(service), None),
            Self::Ensuring(pending) | Self::Deleting { pending, .. } => (None, pending.as_mut()),
            Self::Unknown | Self::Deleted => (None, None),
        };
        last.into_iter().chain(pending.map(|pending| &mut pending.service))
    }
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests;
