//! Clients of the API server, one for each part of the process.
//!
//! Each has its own user agent, request budget, leadership and, where the process uses service accounts, its own rights.

use kube::Client;

use crate::options::Controller;

/// The clients of the controllers.
#[derive(Clone)]
pub struct Clients {
    /// Watches Nodes and Services; upstream's `shared-informers`.
    pub caches: Client,
    /// Writes Events.
    pub events: Client,
    /// Writes Nodes that join.
    pub cloud_node: Client,
    /// Taints and deletes Nodes.
    pub cloud_node_lifecycle: Client,
    /// Writes Services.
    pub service_lb: Client,
    /// Writes the condition of Nodes about routes.
    pub node_route: Client,
    /// Writes the label of Nodes about tags.
    pub tagging: Client,
}

impl Clients {
    /// The client that a controller writes with.
    pub fn of(&self, controller: Controller) -> &Client {
        match controller {
            Controller::CloudNode => &self.cloud_node,
            Controller::CloudNodeLifecycle => &self.cloud_node_lifecycle,
            Controller::ServiceLb => &self.service_lb,
            Controller::NodeRoute => &self.node_route,
            Controller::Tagging => &self.tagging,
        }
    }
}

impl From<Client> for Clients {
    /// The same client for everything.
    fn from(client: Client) -> Self {
        Self {
            caches: client.clone(),
            events: client.clone(),
            cloud_node: client.clone(),
            cloud_node_lifecycle: client.clone(),
            service_lb: client.clone(),
            node_route: client.clone(),
            tagging: client,
        }
    }
}
