//! A cluster for providers that are called without one.

use std::sync::Arc;

use cloudwit_host::Outside;
use cloudwit_model::{ClusterNode, ClusterView, EventSink, ObjectEvent, Service};
use parking_lot::Mutex;

/// The objects that calls are given, and the Events they write. Empty where there is no cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    /// The Nodes.
    pub nodes: Vec<ClusterNode>,
    /// The Services.
    pub services: Vec<Service>,
    /// Events that the provider wrote.
    pub events: Mutex<Vec<ObjectEvent>>,
}

impl Cluster {
    /// What a provider gets to see of it.
    pub fn outside(self: &Arc<Self>) -> Outside {
        Outside {
            events: self.clone(),
            cluster: self.clone(),
        }
    }
}

impl EventSink for Cluster {
    fn emit(&self, event: ObjectEvent) {
        self.events.lock().push(event);
    }
}

impl ClusterView for Cluster {
    fn nodes(&self) -> Vec<ClusterNode> {
        self.nodes.clone()
    }

    fn services(&self) -> Vec<Service> {
        self.services.clone()
    }
}
