//! Upstream's flags that have no effect here; the log names them.
//!
//! A flag that would be harmful to ignore (a log that cannot be found) is refused instead, in
//! `flags::checks`.

use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::boolean;

/// Upstream's flags without an effect.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Accepted as upstream's, without effect")]
pub struct NoEffectArgs {
    /// No effect, as in upstream's own controllers: ranges for Nodes are given out by kube-controller-manager.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub allocate_node_cidrs: bool,

    /// No effect: it belongs to --allocate-node-cidrs.
    #[arg(long, value_name = "NAME", default_value = "RangeAllocator")]
    pub cidr_allocator_type: String,

    /// No effect: caches are not replayed on a period. Periodic checks have flags of their own.
    #[arg(long, value_name = "DURATION", default_value = "12h0m0s")]
    pub min_resync_period: GoDuration,

    /// No effect here nor upstream: it belongs to kube-controller-manager.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub external_cloud_volume_plugin: String,

    /// Deprecated, no effect: a provider checks its own configuration and says what is missing.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub allow_untagged_cloud: bool,

    /// No effect: machines are always tagged many in a call.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub tagging_controller_enable_batching: bool,

    /// Deprecated, no effect here nor upstream.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    pub node_sync_period: GoDuration,

    /// No effect: it measures locks of Go programs.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub contention_profiling: bool,

    /// No effect: SO_REUSEADDR is always set, as Go does for every listener.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub permit_address_sharing: bool,

    /// No effect: log lines are written at once.
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub log_flush_frequency: GoDuration,

    /// No effect: log lines are written at once.
    #[arg(long, value_name = "QUANTITY", default_value = "0")]
    pub log_text_info_buffer_size: String,

    /// No effect: log lines are written at once.
    #[arg(long, value_name = "QUANTITY", default_value = "0")]
    pub log_json_info_buffer_size: String,
}
