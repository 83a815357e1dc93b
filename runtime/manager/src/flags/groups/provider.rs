//! Flags of the provider and its files.

use std::path::PathBuf;

/// Flags about the provider.
/// Where components are, unless --provider-dir says otherwise.
pub const PROVIDER_DIR: &str = "/etc/cloudwit/providers";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Provider")]
pub struct ProviderArgs {
    /// Name of the provider: NAME.wasm in --provider-dir. An unknown name lists the known ones.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub cloud_provider: String,

    /// Folder with the provider components, such as a ConfigMap mount.
    #[arg(long, value_name = "DIR", default_value = PROVIDER_DIR)]
    pub provider_dir: PathBuf,

    /// The provider's own configuration, handed to it as it is.
    #[arg(long, value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,

    /// What the provider may reach (`grants`), how much it may use (`limits`) and single `values` for it, as YAML. Without it
    /// the provider reaches nothing.
    #[arg(long, value_name = "FILE")]
    pub provider_settings: Option<PathBuf>,

    /// Several providers with their grants, and the assignment of Nodes and Services to them: a CloudwitConfiguration, as YAML. Stands in
    /// place of --cloud-provider, --cloud-config and --provider-settings.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where compiled components are kept between starts; must belong to this process alone. Without it each start compiles.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
}
