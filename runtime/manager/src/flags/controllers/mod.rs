//! Flags of the controllers.

pub mod node_deletion;
pub mod ssh_keys;
pub mod tagging;
pub mod volumes;

use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::whole;

/// Flags about the controllers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Controllers")]
pub struct ControllerArgs {
    /// Which run: `*` for all, NAME for one, -NAME for all but one. Names: cloud-node-controller,
    /// cloud-node-lifecycle-controller, service-lb-controller, node-route-controller, and tagging-controller, which `*` does not stand for;
    /// upstream's short names work too.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,

    /// How long after a controller the next one starts; each time up to as much again is added.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub controller_start_interval: GoDuration,

    /// How often addresses of initialised Nodes are refreshed.
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    pub node_status_update_frequency: GoDuration,

    /// How often Nodes that are not Ready are looked up.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub node_monitor_period: GoDuration,

    /// How many Nodes are written at a time; one look-up in the cloud serves all that wait, so this does not bound calls.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = whole(1..=u16::MAX))]
    pub concurrent_node_syncs: u16,

    /// The same for the refresh of addresses; 0 takes --concurrent-node-syncs.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0..=u16::MAX))]
    pub concurrent_node_status_updates: u16,

    /// How many Nodes that are not Ready are written at a time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = whole(1..=u16::MAX))]
    pub concurrent_node_lifecycle_syncs: u16,

    /// How many Services are worked on at a time.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole(1..=u16::MAX))]
    pub concurrent_service_syncs: u16,

    /// How often a finished load balancer is checked in the cloud, with its address (drift check); one that was deleted
    /// or changed outside is ensured again. 0 never checks.
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    pub service_drift_period: GoDuration,

    /// Most of these checks in a minute, for all Services together.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = whole(1..=u16::MAX))]
    pub service_drift_per_minute: u16,

    /// Set routes in the cloud, where the provider can.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = crate::flags::values::go::boolean)]
    pub configure_cloud_routes: bool,

    /// How often all routes are compared with the cloud's, beside the changes that are acted on at once.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub route_reconciliation_period: GoDuration,

    /// After a failure an object is tried again after pauses that double: for Nodes up to 1000s, for Services and routes up to 5m. No pause
    /// will be longer than this, except pauses set by the cloud. 0 leaves them as they are. Where an operator has to fix something
    /// (missing rights, an impossible annotation) the pause is 1m for Nodes and 5m for Services.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub max_retry_pause: GoDuration,

    /// Run all loops and call the provider's read functions, but write nothing: log what would be written. Takes no part in leader
    /// election.
    #[arg(long)]
    pub dry_run: bool,
}
