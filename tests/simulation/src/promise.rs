//! What the controllers promise, and a broken promise.

use std::fmt;
use std::time::Duration;

/// A promise of the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// No Node is deleted whose machine exists.
    LivingNode,
    /// No Node is deleted before the cloud said twice, two minutes apart, that its machine is gone, nor while it is Ready or young.
    Proof,
    /// No more Nodes are deleted in ten minutes than the brake allows.
    Brake,
    /// Nothing is changed by a process whose term is over.
    OneWriter,
    /// A load balancer is made only for a Service that carries the finalizer.
    FinalizerFirst,
    /// The finalizer goes only when the load balancer is gone.
    FinalizerLast,
    /// Taints, finalizers and annotations of others stay.
    ForeignEntries,
    /// The taint of a new Node goes only when its addresses and its provider id are there.
    Initialised,
    /// A provider id is written once.
    ProviderIdOnce,
    /// Only Nodes of stopped machines get the taint for them.
    ShutdownTaint,
    /// Each Service that wants a load balancer has it: with its ports, the right nodes, and its address in the status.
    Balancers,
    /// No load balancer, finalizer or address is left where none is wanted.
    NoBalancerLeft,
    /// Each Node has the routes to its Pods, and the condition says so.
    Routes,
    /// No route is left that nobody wants.
    NoRouteLeft,
    /// Each Node whose machine exists is initialised, with the machine's addresses.
    Nodes,
    /// Nodes of machines that are gone go; taints say which machines are stopped.
    Lifecycle,
    /// Where nothing changes, nothing is written and the cloud is asked only as often as documented.
    NoNeedlessCall,
    /// No loop ends or panics.
    Alive,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// How.
    pub text: String,
    /// When, since the day began.
    pub at: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} broken at {}: {}", self.promise, clock(self.at), self.text)
    }
}

/// A time of the day as `hh:mm:ss.mmm`.
pub(crate) fn clock(at: Duration) -> String {
    let (seconds, millis) = (at.as_secs(), at.subsec_millis());
    format!(
        "{:02}:{:02}:{:02}.{millis:03}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}
