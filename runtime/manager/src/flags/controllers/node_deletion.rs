//! Flags of Node deletion; upstream has none of these.

use clap::ValueEnum;

use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::whole;

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

    /// A Node that waits for its initialisation, never got a provider id and is not Ready is deleted when the cloud finds no machine of its
    /// name in every check for so long. 0 leaves it alone.
    #[arg(long, value_name = "DURATION", default_value = "1h0m0s")]
    pub node_deletion_by_name_after: GoDuration,

    /// For how long after its registration a Node is never deleted.
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    pub node_deletion_grace_period: GoDuration,

    /// The largest share of all Nodes, in percent, that is deleted within --node-deletion-window. When more are gone, nothing is
    /// deleted until an operator acts.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = whole(1_u8..=100))]
    pub node_deletion_max_percent: u8,

    /// So many Nodes may be deleted within the window even where the percentage comes to fewer.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u16::MAX))]
    pub node_deletion_min_count: u16,

    /// The window of --node-deletion-max-percent.
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    pub node_deletion_window: GoDuration,
}
