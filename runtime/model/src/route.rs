//! Routes to the Pod ranges of Nodes.

use crate::{Address, Failure, NodeRef};

/// A route that exists in the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The cloud's id.
    pub id: String,
    /// Pod range as a CIDR that parses.
    pub destination: String,
    /// Node it leads to, when known.
    pub node: Option<String>,
    /// Next-hop addresses, in clouds that route to addresses.
    pub next_hops: Vec<Address>,
    /// Whether it leads nowhere.
    pub blackhole: bool,
}

/// A route to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRoute {
    /// Unique for the Node, shared by its routes: the Node's uid.
    pub name_hint: String,
    /// Pod range as a CIDR.
    pub destination: String,
    /// Node it leads to.
    pub node: NodeRef,
}

/// Tokens of pending route changes that a call continues, in the order of its changes; none where nothing is pending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteTokens {
    /// For each desired route.
    pub created: Vec<Option<String>>,
    /// For each route to delete.
    pub deleted: Vec<Option<String>>,
}

impl RouteTokens {
    /// Nothing is pending.
    pub const NONE: &'static Self = &Self {
        created: Vec::new(),
        deleted: Vec::new(),
    };
}

/// One result for each change, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteOutcome {
    /// For each desired route.
    pub created: Vec<Result<(), Failure>>,
    /// For each route to delete.
    pub deleted: Vec<Result<(), Failure>>,
}
