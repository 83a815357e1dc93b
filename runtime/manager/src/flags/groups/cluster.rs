//! Flags of the cluster.

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
