//! Cache of the target list and its digest, computed on demand.
//!
//! `service` reports each change of a Node, which costs a comparison at most. The pass over all load balancers reads the set
//! ([`pass`](TargetCache::pass)), steps that call the cloud for the list as well ([`now`](TargetCache::now)): both walk all Nodes,
//! once after a change, however many load balancers there are. The list is as large as the cluster, so it is
//! [forgotten](TargetCache::forget_list) when no Service has anything left to do.

use std::sync::{Arc, Mutex};

use cloudwit_model::Target;

use crate::kube::cache::{Cache, Change};
use crate::kube::node::Node;
use crate::scope::Scope;
use crate::service::targets::{DatedSet, TargetSet, same_target, targets};
use crate::sync::lock;

/// The nodes of one moment.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// To remember and to compare.
    pub set: DatedSet,
    /// For the provider, by name.
    pub list: Arc<[Target]>,
}

/// See the file's head. Nothing is known at first.
#[derive(Debug)]
pub struct TargetCache {
    scope: Scope,
    state: Mutex<CachedTargets>,
}

#[derive(Debug, Default)]
struct CachedTargets {
    last_pass: DatedSet,
    /// None after a change.
    now: Option<(TargetSet, Arc<[Target]>)>,
    /// Nodes that were walked over, all walks together.
    #[cfg(test)]
    walked: usize,
}

impl TargetCache {
    /// The Nodes of this provider alone: those of another cloud are no targets for its load balancers.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            state: Mutex::default(),
        }
    }

    /// A Node has changed; the cache of Nodes has it already.
    pub fn changed(&self, change: &Change<'_, Node>) {
        let mut state = lock(&self.state);
        let same = |change: &Change<'_, Node>| matches!(change, Change::Updated { old, new } if same_target(old, new));
        if state.now.is_some() && !same(change) {
            state.now = None;
        }
    }

    /// The set of the last pass, without another look at the Nodes.
    pub fn last_pass(&self) -> DatedSet {
        lock(&self.state).last_pass
    }

    /// Begins a pass. The set of now.
    pub fn pass(&self, nodes: &Cache<Node>) -> TargetSet {
        let mut state = lock(&self.state);
        let set = match &state.now {
            Some((set, _)) => *set,
            None => set_of(&state.walk(nodes, &self.scope)),
        };
        let pass = state.last_pass.pass + 1;
        state.last_pass = DatedSet { nodes: set, pass };
        set
    }

    /// The set and the list of now.
    pub fn now(&self, nodes: &Cache<Node>) -> Targets {
        // Under the lock: others that need the same wait for it, and a change that comes meanwhile is applied after it.
        let mut state = lock(&self.state);
        let (set, list) = match &state.now {
            Some(now) => now.clone(),
            None => {
                let nodes = state.walk(nodes, &self.scope);
                let list: Arc<[Target]> = targets(nodes.iter().map(|node| &**node)).into();
                state.now.insert((set_of(&nodes), list)).clone()
            }
        };
        let pass = state.last_pass.pass;
        Targets {
            set: DatedSet { nodes: set, pass },
            list,
        }
    }

    /// Gives the list's memory back.
    pub fn forget_list(&self) {
        lock(&self.state).now = None;
    }

    /// Nodes that were walked over so far.
    #[cfg(test)]
    pub fn walked(&self) -> usize {
        lock(&self.state).walked
    }
}

impl CachedTargets {
    fn walk(&mut self, nodes: &Cache<Node>, scope: &Scope) -> Vec<Arc<Node>> {
        let nodes = if scope.are_several() {
            let owns = scope.owns_node();
            nodes.matching(|node| owns(node))
        } else {
            nodes.all()
        };
        #[cfg(test)]
        {
            self.walked += nodes.len();
        }
        nodes
    }
}

fn set_of(nodes: &[Arc<Node>]) -> TargetSet {
    TargetSet::of(nodes.iter().map(|node| &**node))
}

#[cfg(test)]
mod tests;
