//! `/configz`: the settings in upstream's shape.

use serde_json::{Value, json};

use crate::election::migration::Migration;
use crate::flags::args::Args;
use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::entries;

/// What is served under upstream's key. Fields that have no meaning here carry the value of their flag.
pub fn of(args: &Args, migration: Option<&Migration>) -> Value {
    json!({ "cloudcontrollermanager.config.k8s.io": {
        "kind": "CloudControllerManagerConfiguration",
        "apiVersion": "cloudcontrollermanager.config.k8s.io/v1alpha1",
        "Generic": generic(args, migration),
        "KubeCloudShared": shared(args),
        "NodeController": {
            "ConcurrentNodeSyncs": args.controllers.concurrent_node_syncs,
            "ConcurrentNodeStatusUpdates": args.controllers.concurrent_node_status_updates,
        },
        "NodeLifecycleController": {
            "NodeMonitorPeriod": go(args.controllers.node_monitor_period),
            "ConcurrentNodeLifecycleSyncs": args.controllers.concurrent_node_lifecycle_syncs,
        },
        "ServiceController": { "ConcurrentServiceSyncs": args.controllers.concurrent_service_syncs },
        "NodeStatusUpdateFrequency": go(args.controllers.node_status_update_frequency),
        "Webhook": { "Webhooks": [] },
    }})
}

fn generic(args: &Args, migration: Option<&Migration>) -> Value {
    let (server, election) = (&args.api_server, &args.leader_election);
    json!({
        "Port": args.secure_serving.secure_port,
        "Address": args.secure_serving.bind_address,
        "MinResyncPeriod": go(args.no_effect.min_resync_period),
        "ClientConnection": {
            "kubeconfig": server.kubeconfig.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
            "acceptContentTypes": "application/json",
            "contentType": server.kube_api_content_type,
            "qps": server.kube_api_qps,
            "burst": server.kube_api_burst,
        },
        "ControllerStartInterval": go(args.controllers.controller_start_interval),
        "LeaderElection": {
            "leaderElect": election.leader_elect,
            "leaseDuration": go(election.leader_elect_lease_duration),
            "renewDeadline": go(election.leader_elect_renew_deadline),
            "retryPeriod": go(election.leader_elect_retry_period),
            "resourceLock": election.leader_elect_resource_lock,
            "resourceName": election.leader_elect_resource_name,
            "resourceNamespace": election.leader_elect_resource_namespace,
        },
        "Controllers": entries(&args.controllers.controllers),
        "Debugging": { "enableProfiling": args.secure_serving.profiling, "enableContentionProfiling": args.no_effect.contention_profiling },
        "LeaderMigrationEnabled": election.enable_leader_migration,
        "LeaderMigration": migration.map_or_else(Migration::none, Migration::configz),
    })
}

fn shared(args: &Args) -> Value {
    let config = args.provider.cloud_config.as_ref();
    json!({
        "CloudProvider": {
            "Name": args.provider.cloud_provider,
            "CloudConfigFile": config.map(|file| file.display().to_string()).unwrap_or_default(),
        },
        "ExternalCloudVolumePlugin": args.no_effect.external_cloud_volume_plugin,
        "UseServiceAccountCredentials": args.api_server.use_service_account_credentials,
        "AllowUntaggedCloud": args.no_effect.allow_untagged_cloud,
        "RouteReconciliationPeriod": go(args.controllers.route_reconciliation_period),
        "ClusterName": args.cluster.cluster_name,
        "ClusterCIDR": args.cluster.cluster_cidr,
        "AllocateNodeCIDRs": args.no_effect.allocate_node_cidrs,
        "CIDRAllocatorType": args.no_effect.cidr_allocator_type,
        "ConfigureCloudRoutes": args.controllers.configure_cloud_routes,
        "NodeSyncPeriod": go(args.no_effect.node_sync_period),
    })
}

fn go(duration: GoDuration) -> String {
    duration.to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn it_has_upstreams_shape() {
        let all = of(&Args::parse_from(["cloudwit", "--cloud-provider=sim"]), None);
        let all = &all["cloudcontrollermanager.config.k8s.io"];
        assert_eq!(all["Generic"]["LeaderElection"]["leaseDuration"], "15s");
        assert_eq!(all["Generic"]["Controllers"], json!(["*"]));
        assert_eq!(all["Generic"]["MinResyncPeriod"], "12h0m0s");
        assert_eq!(all["KubeCloudShared"]["CloudProvider"]["Name"], "sim");
        assert_eq!(all["NodeLifecycleController"]["NodeMonitorPeriod"], "5s");
        let migration = &all["Generic"]["LeaderMigration"];
        assert_eq!(
            migration,
            &json!({ "leaderName": "", "resourceLock": "", "controllerLeaders": null })
        );
    }

    #[test]
    fn leader_migration_that_is_in_force_is_reported() {
        let all = of(
            &Args::parse_from(["cloudwit", "--enable-leader-migration"]),
            Some(&Migration::default()),
        );
        let generic = &all["cloudcontrollermanager.config.k8s.io"]["Generic"];
        assert_eq!(generic["LeaderMigrationEnabled"], true);
        let migration = &generic["LeaderMigration"];
        assert_eq!(migration["leaderName"], "cloud-provider-extraction-migration");
        assert_eq!(migration["resourceLock"], "leases");
        assert_eq!(
            migration["controllerLeaders"][1],
            json!({ "name": "service-controller", "component": "*" })
        );
    }
}
