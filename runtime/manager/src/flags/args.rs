//! Command line: one group of flags per noun, each in a file of its own.
//!
//! Flags that upstream has keep its names, and its defaults and meaning unless docs/reference/flags.md, which is written from these
//! definitions, says otherwise (kubernetes/cloud-provider 1.37).

use clap::Parser;

use crate::flags::controllers::ControllerArgs;
use crate::flags::controllers::node_deletion::NodeDeletionArgs;
use crate::flags::controllers::ssh_keys::SshKeyArgs;
use crate::flags::controllers::tagging::TaggingArgs;
use crate::flags::controllers::volumes::VolumeArgs;
use crate::flags::groups::cluster::ClusterArgs;
use crate::flags::groups::delegation::{AuthenticationArgs, AuthorizationArgs};
use crate::flags::groups::logging::LoggingArgs;
use crate::flags::groups::no_effect::NoEffectArgs;
use crate::flags::groups::provider::ProviderArgs;
use crate::flags::groups::serving::{AdminArgs, SecureServingArgs};
use crate::flags::groups::tracing::TracingArgs;
use crate::flags::groups::webhooks::WebhookArgs;
use crate::flags::values::feature_gates::FeatureArgs;
use crate::flags::values::version::VersionArgs;

/// A Kubernetes cloud-controller-manager whose cloud providers are WebAssembly components.
///
/// Cloudwit initialises Nodes from the cloud's data about their machines, removes Nodes whose machines are gone (after
/// several confirmations), gives Services of type LoadBalancer their load balancers, and sets routes to Pod ranges. The cloud is one
/// .wasm file in --provider-dir; it reaches nothing but the hosts granted in --provider-settings.
#[derive(Debug, Parser)]
#[command(
    name = "cloudwit",
    disable_version_flag = true,
    args_override_self = true,
    args_conflicts_with_subcommands = true,
    max_term_width = 120,
    after_help = "Example:\n  cloudwit --kubeconfig admin.kubeconfig --provider-dir providers --cloud-provider sim --provider-settings sim-settings.yaml\n\n\
                  All flags, and more about each: cloudwit --help",
    after_long_help = "Example:\n  cloudwit --kubeconfig admin.kubeconfig --provider-dir providers --cloud-provider sim \\\n           \
                  --cloud-config sim.json --provider-settings sim-settings.yaml\n\n\
                  A settings file:\n  grants:\n    http:\n      - {scheme: https, host: api.example.com, methods: [GET, POST]}\n    secrets:\n      \
                  - {name: token, file: /etc/cloudwit/token, hosts: [api.example.com], uses: [placeholder]}\n  limits:\n    wallTime: 30s"
)]
pub struct Args {
    /// What to do instead of running the controllers.
    #[command(subcommand)]
    pub command: Option<crate::commands::explain::Command>,
    /// Flags about the provider.
    #[command(flatten)]
    pub provider: ProviderArgs,
    /// Flags about reaching the API server.
    #[command(flatten)]
    pub api_server: crate::flags::groups::api_server::ApiServerArgs,
    /// Flags about leader election.
    #[command(flatten)]
    pub leader_election: crate::election::candidate::LeaderElectionArgs,
    /// Flags about the cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Flags about the controllers.
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Flags about tags on machines.
    #[command(flatten)]
    pub tagging: TaggingArgs,
    /// Flags about volumes.
    #[command(flatten)]
    pub volumes: VolumeArgs,
    /// Flags about SSH keys.
    #[command(flatten)]
    pub ssh_keys: SshKeyArgs,
    /// Flags about deleting Nodes.
    #[command(flatten)]
    pub deletion: NodeDeletionArgs,
    /// Flags about HTTPS.
    #[command(flatten)]
    pub secure_serving: SecureServingArgs,
    /// Flags about plain HTTP on loopback.
    #[command(flatten)]
    pub admin: AdminArgs,
    /// Flags about authentication.
    #[command(flatten)]
    pub authentication: AuthenticationArgs,
    /// Flags about authorization.
    #[command(flatten)]
    pub authorization: AuthorizationArgs,
    /// Flags about logging.
    #[command(flatten)]
    pub logging: LoggingArgs,
    /// Flags about tracing.
    #[command(flatten)]
    pub tracing: TracingArgs,
    /// Switches for what is new.
    #[command(flatten)]
    pub features: FeatureArgs,
    /// Which version this is.
    #[command(flatten)]
    pub version: VersionArgs,
    /// Flags about webhooks.
    #[command(flatten)]
    pub webhooks: WebhookArgs,
    /// Upstream's flags without effect.
    #[command(flatten)]
    pub no_effect: NoEffectArgs,
    /// Mistakes of single flags; reported together with what is wrong with their values.
    #[arg(skip)]
    pub mistakes: Vec<String>,
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
