//! The command line. Flags that upstream has keep its names, defaults and meaning (`spec` of kubernetes/cloud-provider 1.37).

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::duration::GoDuration;
use crate::telemetry::LoggingArgs;

/// A Kubernetes cloud-controller-manager whose cloud providers are WebAssembly components.
///
/// Cloudwit initialises Nodes from what the cloud knows about their machines, removes Nodes whose machines are gone (after
/// several confirmations), gives Services of type LoadBalancer their load balancers, and sets routes to Pod ranges. The cloud is one
/// .wasm file in --provider-dir; it reaches nothing but the hosts granted in --provider-settings.
#[derive(Debug, Parser)]
#[command(
    name = "cloudwit",
    version,
    args_conflicts_with_subcommands = true,
    max_term_width = 120,
    after_help = "Example:\n  cloudwit --kubeconfig admin.kubeconfig --provider-dir providers --cloud-provider sim \\\n           \
                  --cloud-config sim.json --provider-settings sim-settings.yaml\n\n\
                  A settings file:\n  grants:\n    http:\n      - {scheme: https, host: api.example.com, methods: [GET, POST]}\n    secrets:\n      \
                  - {name: token, file: /etc/cloudwit/token, hosts: [api.example.com], uses: [placeholder]}\n  limits:\n    wallTime: 30s"
)]
pub struct Args {
    /// What to do instead of running the controllers.
    #[command(subcommand)]
    pub command: Option<crate::explain::Command>,
    /// Flags about the provider.
    #[command(flatten)]
    pub provider: ProviderArgs,
    /// Flags about reaching the API server.
    #[command(flatten)]
    pub api_server: crate::api_server::ApiServerArgs,
    /// Flags about leader election.
    #[command(flatten)]
    pub leader_election: crate::leadership::LeaderElectionArgs,
    /// Flags about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Flags about the controllers.
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Flags about deleting Nodes.
    #[command(flatten)]
    pub deletion: NodeDeletionArgs,
    /// Flags about serving metrics and health.
    #[command(flatten)]
    pub serving: ServingArgs,
    /// Flags about logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
}

/// Flags about the provider.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Provider")]
pub struct ProviderArgs {
    /// Name of the provider: NAME.wasm in --provider-dir. An unknown name lists the known ones.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub cloud_provider: String,

    /// Folder with the provider components, such as a ConfigMap mount.
    #[arg(long, value_name = "DIR", default_value = "/etc/cloudwit/providers")]
    pub provider_dir: PathBuf,

    /// The provider's own configuration, handed to it as it is.
    #[arg(long, value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,

    /// What the provider may reach (`grants`), how much it may use (`limits`) and single `values` for it, as YAML. Without it
    /// the provider reaches nothing.
    #[arg(long, value_name = "FILE")]
    pub provider_settings: Option<PathBuf>,

    /// Where compiled components are kept between starts; must belong to this process alone. Without it each start compiles.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
}

/// Flags about the cluster.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Marks in the cloud what belongs to this cluster.
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    pub cluster_name: String,

    /// Pod ranges: one CIDR, or two of different families joined by a comma. Needed for routes.
    #[arg(long, value_name = "CIDRS", default_value = "")]
    pub cluster_cidr: String,
}

/// Flags about the controllers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Controllers")]
pub struct ControllerArgs {
    /// Which run: `*` for all, NAME for one, -NAME for all but one. Names: cloud-node-controller,
    /// cloud-node-lifecycle-controller, service-lb-controller, node-route-controller; upstream's short names work too.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,

    /// How often addresses of initialised Nodes are refreshed.
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    pub node_status_update_frequency: GoDuration,

    /// How often Nodes that are not Ready are looked up.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub node_monitor_period: GoDuration,

    /// How many Nodes are written at a time; one look-up in the cloud serves all that wait, so this does not bound calls.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_node_syncs: u16,

    /// The same for the refresh of addresses; 0 takes --concurrent-node-syncs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub concurrent_node_status_updates: u16,

    /// How many Nodes that are not Ready are written at a time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_node_lifecycle_syncs: u16,

    /// How many Services are worked on at a time.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_service_syncs: u16,

    /// How often the cloud is asked whether a finished load balancer is still there, with its address; one that was deleted
    /// or changed outside is made right again. 0 never asks.
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    pub service_drift_period: GoDuration,

    /// How many of these questions are asked in a minute at most, for all Services together.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..))]
    pub service_drift_per_minute: u16,

    /// Set routes in the cloud, where the provider can.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub configure_cloud_routes: bool,

    /// How often all routes are compared with the cloud's, beside the changes that are acted on at once.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub route_reconciliation_period: GoDuration,

    /// Run all loops and call the provider's read functions, but write nothing: log what would be written.
    #[arg(long)]
    pub dry_run: bool,
}

/// What happens to a Node whose machine is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodeDeletionChoice {
    /// Nothing but an Event.
    Off,
    /// It gets the taint cloudwit.dev/absent until it is Ready again.
    Taint,
    /// It is deleted.
    Delete,
}

/// Flags about deleting Nodes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Deleting Nodes whose machines are gone")]
pub struct NodeDeletionArgs {
    /// What happens to a Node whose machine is gone.
    #[arg(long, value_enum, default_value_t = NodeDeletionChoice::Delete)]
    pub node_deletion: NodeDeletionChoice,

    /// For how long the cloud has to say that a machine is gone, at least twice, before its Node is deleted.
    #[arg(long, value_name = "DURATION", default_value = "2m0s")]
    pub node_deletion_confirm_after: GoDuration,

    /// For how long after its registration a Node is never deleted.
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    pub node_deletion_grace_period: GoDuration,

    /// The largest share of all Nodes, in percent, that is deleted within --node-deletion-window. When more are gone, nothing is
    /// deleted until somebody looks.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub node_deletion_max_percent: u8,

    /// So many Nodes may be deleted within the window even where the percentage comes to fewer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub node_deletion_min_count: u16,

    /// The window of --node-deletion-max-percent.
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    pub node_deletion_window: GoDuration,
}

/// Flags about serving metrics and health.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Metrics and health")]
pub struct ServingArgs {
    /// Where /metrics, /healthz and /readyz are served, over plain HTTP, so keep it on loopback. Port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:10258")]
    pub admin_address: SocketAddr,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn upstream_defaults_are_kept() {
        let args = Args::parse_from(["cloudwit"]);
        assert_eq!(args.cluster.cluster_name, "kubernetes");
        assert_eq!(args.controllers.node_monitor_period.to_string(), "5s");
        assert_eq!(args.controllers.node_status_update_frequency.to_string(), "5m0s");
        assert_eq!(args.controllers.route_reconciliation_period.to_string(), "10s");
        assert!(args.controllers.configure_cloud_routes);
        assert_eq!(args.controllers.controllers, ["*"]);
    }

    #[test]
    fn upstream_ways_of_writing_are_accepted() {
        let args = Args::parse_from([
            "cloudwit",
            "--leader-elect=false",
            "--configure-cloud-routes=false",
            "--controllers=*,-service",
            "-v=2",
        ]);
        assert!(!args.controllers.configure_cloud_routes && !args.leader_election.leader_elect);
        assert_eq!(args.controllers.controllers, ["*", "-service"]);
        assert_eq!(args.logging.verbosity, 2);
    }
}
