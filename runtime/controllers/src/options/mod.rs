//! Options of the controllers.
//!
//! Defaults are upstream's (`spec/flags-and-process.md`) except where a comment says why not.

pub(crate) mod classes;
pub(crate) mod tagging;

use std::collections::BTreeSet;
use std::time::Duration;

use ipnet::IpNet;

use crate::options::classes::Classes;
use crate::options::tagging::TaggingOptions;

/// The controllers. Their names are IDs in flags, metrics, Events and RBAC (`cloud-provider
/// names/controller_names.go`; `tagging` of `cloud-provider-aws pkg/controllers/tagging`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// Initialises Nodes and keeps their addresses current.
    CloudNode,
    /// Taints Nodes whose machine is stopped, deletes Nodes whose machine is gone.
    CloudNodeLifecycle,
    /// Load balancers for Services.
    ServiceLb,
    /// Routes to the Pod ranges of Nodes.
    NodeRoute,
    /// An operator's tags on the machines of Nodes.
    Tagging,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::CloudNode,
        Self::CloudNodeLifecycle,
        Self::ServiceLb,
        Self::NodeRoute,
        Self::Tagging,
    ];

    /// Whether it runs unless an operator says otherwise (upstream's `ControllersDisabledByDefault`).
    pub fn is_on_by_default(self) -> bool {
        self != Self::Tagging
    }

    /// The canonical name, as in `--controllers`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node-controller",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle-controller",
            Self::ServiceLb => "service-lb-controller",
            Self::NodeRoute => "node-route-controller",
            Self::Tagging => "tagging-controller",
        }
    }

    /// The short name, accepted in `--controllers` and used as the label of `running_managed_controllers`.
    pub fn alias(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle",
            Self::ServiceLb => "service",
            Self::NodeRoute => "route",
            Self::Tagging => "tagging",
        }
    }

    /// The name of its client: the end of its user agent and, with service accounts, the name of its account, for which the API server
    /// brings a role `system:controller:NAME` along.
    pub fn client_name(self) -> &'static str {
        match self {
            Self::CloudNode | Self::CloudNodeLifecycle => "node-controller",
            Self::ServiceLb => "service-controller",
            Self::NodeRoute => "route-controller",
            Self::Tagging => "tagging-controller",
        }
    }

    /// `source.component` of its Events. The underscore in the last one is upstream's.
    pub fn event_component(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node-controller",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle-controller",
            Self::ServiceLb => "service-controller",
            Self::NodeRoute => "route_controller",
            Self::Tagging => "tagging-controller",
        }
    }
}

/// Initialisation and address refresh.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Nodes that are written at the same time. Upstream's default is 1, because there a worker also means a cloud
    /// call in flight; here one look-up serves all waiting Nodes and the number only bounds requests to the API
    /// server.
    pub concurrent_syncs: usize,
    /// The same for the address refresh. None takes `concurrent_syncs`.
    pub concurrent_status_updates: Option<usize>,
    /// Pause between two address refreshes.
    pub status_update_frequency: Duration,
    /// After the first waiting Node the loop waits this long for others, so that Nodes that join together share a
    /// look-up.
    pub gather: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            concurrent_syncs: 32,
            concurrent_status_updates: None,
            status_update_frequency: Duration::from_secs(300),
            gather: Duration::from_millis(20),
        }
    }
}

/// What happens to a Node whose machine is gone for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeDeletion {
    /// Nothing but an Event.
    Off,
    /// It gets the taint `cloudwit.dev/absent:NoSchedule` until it is Ready again.
    Taint,
    /// It is deleted.
    #[default]
    Delete,
}

/// A share of the cluster: `percent` of the Nodes, but at least `at_least`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Percent of all Nodes of this provider, rounded down.
    pub percent: u8,
    /// Allowed even where the percentage comes to less.
    pub at_least: usize,
}

impl Share {
    /// How many of `nodes` that is.
    pub fn of(self, nodes: usize) -> usize {
        (nodes * usize::from(self.percent) / 100).max(self.at_least)
    }
}

/// Node lifecycle and its brake. The rules are explained in [`lifecycle::brake`](crate::lifecycle::brake).
#[derive(Debug, Clone)]
pub struct LifecycleOptions {
    /// Pause between two passes over the Nodes that are not Ready.
    pub monitor_period: Duration,
    /// Nodes that are written at the same time. One look-up serves all Nodes, so upstream's default of 1 worker
    /// would only slow taints down.
    pub concurrent_syncs: usize,
    /// What happens to Nodes whose machine is gone.
    pub node_deletion: NodeDeletion,
    /// How far apart the two absences must be that confirm each other.
    pub confirm_after: Duration,
    /// For how long the cloud must find no machine by the name of a Node that never got a provider id; none: such a Node stays.
    pub by_name_after: Option<Duration>,
    /// A Node younger than this is never deleted.
    pub registration_grace: Duration,
    /// More Nodes than this absent at once, or deleted within `window`, engage the brake.
    pub share: Share,
    /// The window of the brake.
    pub window: Duration,
}

impl Default for LifecycleOptions {
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            concurrent_syncs: 8,
            node_deletion: NodeDeletion::Delete,
            confirm_after: Duration::from_secs(120),
            by_name_after: Some(Duration::from_secs(3600)),
            registration_grace: Duration::from_secs(300),
            share: Share {
                percent: 10,
                at_least: 1,
            },
            window: Duration::from_secs(600),
        }
    }
}

/// Load balancers for Services.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Services that are worked on at the same time.
    pub concurrent_syncs: usize,
    /// Period of the drift check: whether a finished load balancer is still in the cloud, with the address it had; none:
    /// never, as upstream (`spec/service-controller.md`, S3).
    pub drift_period: Option<Duration>,
    /// At most so many of these looks in a minute, for all Services together. Where there are more Services than that, the
    /// period becomes longer.
    pub drift_per_minute: u16,
    /// Classes (`spec.loadBalancerClass`) whose Services are ours as well.
    pub classes: Classes,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            concurrent_syncs: 1,
            drift_period: Some(Duration::from_secs(600)),
            drift_per_minute: 120,
            classes: Classes::default(),
        }
    }
}

/// Routes to Pod ranges.
#[derive(Debug, Clone)]
pub struct RouteOptions {
    /// Whether routes are configured at all (`--configure-cloud-routes`).
    pub configure: bool,
    /// `--cluster-cidr`: at most one range of each family.
    pub cluster_cidrs: Vec<IpNet>,
    /// Pause between two reconciliations.
    pub reconciliation_period: Duration,
}

impl Default for RouteOptions {
    fn default() -> Self {
        Self {
            configure: true,
            cluster_cidrs: Vec::new(),
            reconciliation_period: Duration::from_secs(10),
        }
    }
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Options {
    /// Node controller.
    pub node: NodeOptions,
    /// Node lifecycle controller.
    pub lifecycle: LifecycleOptions,
    /// Service controller.
    pub service: ServiceOptions,
    /// Route controller.
    pub route: RouteOptions,
    /// Tagging controller.
    pub tagging: TaggingOptions,
    /// `--cluster-name`.
    pub cluster_name: String,
    /// Which controllers run.
    pub controllers: BTreeSet<Controller>,
    /// How long after a controller the next one starts; each time up to as much again is added, as upstream does.
    pub start_interval: Duration,
    /// How often the provider's identity is compared, since a swap lets failed work be tried again at once.
    pub swap_check_period: Duration,
    /// No pause of an object that failed is longer than this, but for those that the cloud sets; none: as upstream, 1000 s for Nodes and
    /// 300 s for Services and routes.
    pub max_retry_pause: Option<Duration>,
    /// Decide everything and write nothing: what would be written is logged and counted.
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node: NodeOptions::default(),
            lifecycle: LifecycleOptions::default(),
            service: ServiceOptions::default(),
            route: RouteOptions::default(),
            tagging: TaggingOptions::default(),
            cluster_name: "kubernetes".into(),
            controllers: Controller::ALL
                .into_iter()
                .filter(|one| one.is_on_by_default())
                .collect(),
            start_interval: Duration::ZERO,
            // The comparison costs a copy of a few strings.
            swap_check_period: Duration::from_secs(1),
            max_retry_pause: None,
            dry_run: false,
        }
    }
}

impl Options {
    /// All mistakes, each a sentence that names the flag, the value and the fix; empty when there is none.
    ///
    /// Upstream never runs its check of the node workers, where 0 silently switches initialisation off
    /// (`spec/node-controller.md`, N4).
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let mut count = |flag: &str, value: usize| {
            if value == 0 {
                mistakes.push(format!("{flag} must be at least 1, but got 0"));
            }
        };
        count("concurrent-node-syncs", self.node.concurrent_syncs);
        count(
            "concurrent-node-status-updates",
            self.node.concurrent_status_updates.unwrap_or(1),
        );
        count("concurrent-node-lifecycle-syncs", self.lifecycle.concurrent_syncs);
        count("concurrent-service-syncs", self.service.concurrent_syncs);
        count("service-drift-per-minute", self.service.drift_per_minute.into());
        count(
            "tagging-controller-concurrent-node-syncs",
            self.tagging.concurrent_syncs,
        );
        let mut period = |flag: &str, value: Duration| {
            if value.is_zero() {
                mistakes.push(format!("{flag} must be longer than 0s"));
            }
        };
        period("node-status-update-frequency", self.node.status_update_frequency);
        period("node-monitor-period", self.lifecycle.monitor_period);
        period("route-reconciliation-period", self.route.reconciliation_period);
        if self.lifecycle.share.percent > 100 {
            let percent = self.lifecycle.share.percent;
            mistakes.push(format!(
                "the share of Nodes that may be deleted must be at most 100 percent, but got {percent}"
            ));
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_without_mistakes() {
        assert_eq!(Options::default().mistakes(), Vec::<String>::new());
    }

    /// `TestNewCloudNodeLifecycleController` and `TestNodeControllerValidation`; negative counts do not fit the type.
    #[test]
    fn no_workers_is_a_mistake_and_all_mistakes_come_at_once() {
        let mut options = Options::default();
        options.lifecycle.concurrent_syncs = 5;
        assert_eq!(options.mistakes(), Vec::<String>::new());
        options.lifecycle.concurrent_syncs = 0;
        options.node.concurrent_syncs = 0;
        options.node.concurrent_status_updates = Some(0);
        options.lifecycle.monitor_period = Duration::ZERO;
        assert_eq!(
            options.mistakes(),
            [
                "concurrent-node-syncs must be at least 1, but got 0",
                "concurrent-node-status-updates must be at least 1, but got 0",
                "concurrent-node-lifecycle-syncs must be at least 1, but got 0",
                "node-monitor-period must be longer than 0s",
            ]
        );
    }

    #[test]
    fn a_share_is_rounded_down_but_never_below_its_minimum() {
        let share = Share {
            percent: 10,
            at_least: 1,
        };
        assert_eq!(
            [0, 9, 10, 19, 20, 5000].map(|nodes| share.of(nodes)),
            [1, 1, 1, 1, 2, 500]
        );
    }
}
