//! The component that is meant, and the settings it shall have.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use cloudwit_host::wire::Wire;
use cloudwit_host::{Host, HostOptions, Outside, Provider, http_client::HttpClients};
use prometheus_client::registry::Registry;

use crate::commands::recordings::cassette::Cassette;
use crate::config::file::{self, Common};
use crate::config::mistakes::Mistakes;
use crate::config::settings::ProviderFiles;
use crate::providers::load::insist_on_sound_config;
use crate::providers::swap::Source;
use crate::providers::{dir, host};

/// Which component, with which settings.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// The component, NAME.wasm or NAME.wasm.zst; with --config the name of a provider in it.
    #[arg(value_name = "PROVIDER")]
    pub provider: String,

    /// A configuration (CloudwitConfiguration) with the provider in it, such as that of a running Cloudwit.
    // Names of their own: the process has flags of these names too.
    #[arg(id = "provider_config", long = "config", value_name = "FILE", conflicts_with_all = ["provider_cloud_config", "provider_settings"])]
    pub config: Option<PathBuf>,

    /// Where components are looked for that are not beside the file of --config.
    #[arg(id = "provider_provider_dir", long = "provider-dir", value_name = "DIR", default_value = crate::flags::groups::provider::PROVIDER_DIR)]
    pub provider_dir: PathBuf,

    /// The provider's own configuration.
    #[arg(id = "provider_cloud_config", long = "cloud-config", value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,

    /// Grants, limits and values, as --provider-settings takes them.
    #[arg(
        id = "provider_settings",
        long = "settings",
        alias = "provider-settings",
        value_name = "FILE"
    )]
    pub settings: Option<PathBuf>,

    /// The name that the cluster has in the cloud.
    #[arg(
        id = "provider_cluster_name",
        long = "cluster-name",
        value_name = "NAME",
        default_value = "kubernetes"
    )]
    pub cluster_name: String,
}

impl SourceArgs {
    /// Reads the files. The error names all mistakes.
    pub fn read(&self) -> anyhow::Result<Source> {
        let mut problems = Vec::new();
        let source = match &self.config {
            Some(config) => self.installed(config, &mut problems),
            None => Some(self.of_files(&mut problems)),
        };
        match source {
            Some(source) if problems.is_empty() => Ok(source),
            _ => Err(Mistakes::of(problems, "").into()),
        }
    }

    fn installed(&self, config: &std::path::Path, problems: &mut Vec<String>) -> Option<Source> {
        let common = Common {
            provider_dir: &self.provider_dir,
            cluster_name: &self.cluster_name,
            cluster_cidrs: &[],
        };
        let configured = file::read(config, common)
            .map_err(|wrong| problems.extend(wrong))
            .ok()?;
        let names: Vec<String> = configured
            .providers
            .iter()
            .map(|source| source.settings.name.clone())
            .collect();
        let mut sources = configured.providers.into_iter();
        let found = sources.find(|source| source.settings.name == self.provider);
        if found.is_none() {
            problems.push(format!(
                "there is no provider {:?} in {}; known: {}",
                self.provider,
                config.display(),
                names.join(", ")
            ));
        }
        found
    }

    fn of_files(&self, problems: &mut Vec<String>) -> Source {
        let component = PathBuf::from(&self.provider);
        let file = component.file_name().unwrap_or_default().to_string_lossy();
        let files = ProviderFiles {
            name: dir::name_of(&file).unwrap_or(&file).to_owned(),
            cloud_config: self.cloud_config.as_deref(),
            settings: self.settings.as_deref(),
            settings_flag: "--settings",
            component: component.clone(),
        };
        files.read(&self.cluster_name, Vec::new(), problems)
    }
}

/// The component with the settings of a recording; files that these need are written to the folder.
pub fn of_recording(
    component: PathBuf,
    file: &std::path::Path,
    cassette: &Cassette,
    folder: &std::path::Path,
) -> anyhow::Result<Source> {
    Ok(Source {
        component: component.into(),
        settings: cassette.settings.for_replay(folder)?,
        csi_driver_name: None,
        config_origin: file.display().to_string(),
        files: Vec::new(),
    })
}

/// A host whose requests and responses `wire` sees. With a folder for compiled code, a component that is loaded again is not compiled again. With a
/// time, that is the clock of guests.
pub fn host(wire: Arc<dyn Wire>, cache_dir: Option<PathBuf>, guest_time: Option<SystemTime>) -> anyhow::Result<Host> {
    let options = HostOptions {
        guest_time,
        ..host::on_this_system(cache_dir)
    };
    let host = Host::new(options, &mut Registry::default())?;
    Ok(host.with_http_clients(HttpClients::seen_by(wire)))
}

/// Loads it in a host of its own.
pub async fn load(source: &Source, outside: Outside, wire: Arc<dyn Wire>) -> anyhow::Result<Provider> {
    let host = host(wire, None, None)?;
    let file = source.component.file(None).await?;
    Ok(host.load(&file, source.settings.clone(), outside).await?)
}

/// Fails with all that the provider finds wrong with its configuration, and prints its warnings.
pub async fn insist_on_soundness(provider: &Provider, source: &Source) -> anyhow::Result<()> {
    for warning in insist_on_sound_config(provider, &source.config_origin).await? {
        eprintln!("Warning: {}: {warning}", source.config_origin);
    }
    Ok(())
}
