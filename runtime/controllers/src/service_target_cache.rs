//! The nodes of now as load balancers get them, worked out only when somebody asks.
//!
//! `service_lb` tells of each change of a Node, which costs a comparison at most. The pass over all load balancers asks for the set
//! ([`look`](TargetCache::look)), steps that call the cloud for the list as well ([`now`](TargetCache::now)): both walk all Nodes,
//! once after a change, however many load balancers there are. The list is as large as the cluster, so it is
//! [forgotten](TargetCache::forget_list) when no Service has anything left to do.

use std::sync::{Arc, Mutex};

use cloudwit_model::Target;

use crate::node::Node;
use crate::service_targets::{TargetSet, same_target, targets};
use crate::sync::lock;
use crate::watch::{Cache, Change};

/// The nodes of one moment.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// To remember and to compare.
    pub set: TargetSet,
    /// For the provider, by name.
    pub list: Arc<[Target]>,
}

/// See the file's head. Nothing is known at first.
#[derive(Debug, Default)]
pub struct TargetCache {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// As of the last question.
    known: TargetSet,
    /// None after a change. Goes with `known`.
    list: Option<Arc<[Target]>>,
    /// Nodes that were walked over, all walks together.
    #[cfg(test)]
    walked: usize,
}

impl TargetCache {
    /// A Node has changed; the cache of Nodes has it already.
    pub fn changed(&self, change: &Change<'_, Node>) {
        let mut state = lock(&self.state);
        let same = |change: &Change<'_, Node>| matches!(change, Change::Updated { old, new } if same_target(old, new));
        if state.list.is_some() && !same(change) {
            state.list = None;
        }
    }

    /// The set as of the last question, without another look at the Nodes.
    pub fn known(&self) -> TargetSet {
        lock(&self.state).known
    }

    /// The set of now.
    pub fn look(&self, nodes: &Cache<Node>) -> TargetSet {
        let mut state = lock(&self.state);
        if state.list.is_none() {
            state.walk(nodes);
        }
        state.known
    }

    /// The set and the list of now.
    pub fn now(&self, nodes: &Cache<Node>) -> Targets {
        // Under the lock: who wants the same waits for it, and a change that comes meanwhile is told after it and undoes it.
        let mut state = lock(&self.state);
        let list = match &state.list {
            Some(list) => list.clone(),
            None => {
                let nodes = state.walk(nodes);
                let list: Arc<[Target]> = targets(nodes.iter().map(|node| &**node)).into();
                state.list = Some(list.clone());
                list
            }
        };
        Targets { set: state.known, list }
    }

    /// Gives the list's memory back.
    pub fn forget_list(&self) {
        lock(&self.state).list = None;
    }

    /// Nodes that were walked over so far.
    #[cfg(test)]
    pub fn walked(&self) -> usize {
        lock(&self.state).walked
    }
}

impl State {
    fn walk(&mut self, nodes: &Cache<Node>) -> Vec<Arc<Node>> {
        let nodes = nodes.all();
        #[cfg(test)]
        {
            self.walked += nodes.len();
        }
        self.known = TargetSet::of(nodes.iter().map(|node| &**node));
        nodes
    }
}

#[cfg(test)]
#[path = "service_target_cache_tests.rs"]
mod tests;
