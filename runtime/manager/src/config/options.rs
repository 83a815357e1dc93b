//! The controllers' options from the command line.

use cloudwit_controllers::{
    Classes, LifecycleOptions, NodeDeletion, NodeOptions, Options, RouteOptions, ServiceOptions, Share,
};

use crate::config::settings::Settings;
use crate::flags::args::Args;
use crate::flags::controllers::node_deletion::NodeDeletionChoice;

/// What the controllers work with.
pub fn controllers(args: &Args, settings: &Settings) -> Options {
    let (controllers, deletion) = (&args.controllers, &args.deletion);
    Options {
        node: NodeOptions {
            concurrent_syncs: controllers.concurrent_node_syncs.into(),
            concurrent_status_updates: Some(controllers.concurrent_node_status_updates)
                .filter(|workers| *workers > 0)
                .map(usize::from),
            status_update_frequency: controllers.node_status_update_frequency.0,
            ..NodeOptions::default()
        },
        lifecycle: LifecycleOptions {
            monitor_period: controllers.node_monitor_period.0,
            concurrent_syncs: controllers.concurrent_node_lifecycle_syncs.into(),
            node_deletion: match deletion.node_deletion {
                NodeDeletionChoice::Off => NodeDeletion::Off,
                NodeDeletionChoice::Taint => NodeDeletion::Taint,
                NodeDeletionChoice::Delete => NodeDeletion::Delete,
            },
            confirm_after: deletion.node_deletion_confirm_after.0,
            by_name_after: Some(deletion.node_deletion_by_name_after.0).filter(|grace| !grace.is_zero()),
            registration_grace: deletion.node_deletion_grace_period.0,
            share: Share {
                percent: deletion.node_deletion_max_percent,
                at_least: deletion.node_deletion_min_count.into(),
            },
            window: deletion.node_deletion_window.0,
        },
        service: ServiceOptions {
            concurrent_syncs: controllers.concurrent_service_syncs.into(),
            drift_period: Some(controllers.service_drift_period.0).filter(|period| !period.is_zero()),
            drift_per_minute: controllers.service_drift_per_minute,
            classes: Classes::new(settings.routing.services.classes.keys().cloned()),
        },
        route: RouteOptions {
            configure: controllers.configure_cloud_routes,
            cluster_cidrs: settings.cluster_cidrs.clone(),
            reconciliation_period: controllers.route_reconciliation_period.0,
        },
        tagging: args.tagging.options(),
        cluster_name: args.cluster.cluster_name.clone(),
        controllers: settings.controllers.iter().copied().collect(),
        start_interval: controllers.controller_start_interval.0,
        max_retry_pause: Some(controllers.max_retry_pause.0).filter(|pause| !pause.is_zero()),
        dry_run: controllers.dry_run,
        swap_check_period: Options::default().swap_check_period,
    }
}
