//! The component that is meant, and the settings it shall have.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use cloudwit_host::wire::Wire;
use cloudwit_host::{Host, Outside, Provider, ProviderSettings, http_client::HttpClients};
use prometheus_client::registry::Registry;

use crate::config::file::{self, Common};
use crate::config::settings;
use crate::providers::host;
use crate::providers::load::insist_on_sound_config;
use crate::providers::swap::Source;

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
            _ => Err(told(&problems)),
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
        let name = component.file_name().map_or_else(String::new, |name| {
            let name = name.to_string_lossy();
            let name = name.strip_suffix(".zst").unwrap_or(&name);
            name.strip_suffix(".wasm").unwrap_or(name).to_owned()
        });
        let file = settings::settings_file(self.settings.as_deref(), "--settings", problems);
        let origin = self.cloud_config.as_ref();
        let origin = origin.map_or("(none)".into(), |file| file.display().to_string());
        Source {
            component,
            settings: ProviderSettings {
                name,
                config_text: settings::cloud_config(self.cloud_config.as_deref(), problems),
                values: file.values.into_iter().collect(),
                cluster_name: self.cluster_name.clone(),
                cluster_cidrs: Vec::new(),
                grants: file.grants,
                limits: file.limits,
            },
            config_origin: format!("--cloud-config={origin}"),
            files: Vec::new(),
        }
    }
}

/// Loads it in a host of its own, whose requests and responses `wire` sees.
pub async fn load(source: &Source, outside: Outside, wire: Arc<dyn Wire>) -> anyhow::Result<Provider> {
    let host = Host::new(host::on_this_system(None), &mut Registry::default())?;
    let host = host.with_http_clients(HttpClients::seen_by(wire));
    Ok(host.load(&source.component, source.settings.clone(), outside).await?)
}

/// Fails with all that the provider finds wrong with its configuration, and prints its warnings.
pub async fn insist_on_soundness(provider: &Provider, source: &Source) -> anyhow::Result<()> {
    for warning in insist_on_sound_config(provider, &source.config_origin).await? {
        eprintln!("Warning: {}: {warning}", source.config_origin);
    }
    Ok(())
}

/// All mistakes in one error.
pub fn told(mistakes: &[String]) -> anyhow::Error {
    match mistakes {
        [one] => anyhow!("{one}"),
        many => anyhow!("{} mistakes:\n  - {}", many.len(), many.join("\n  - ")),
    }
}

/// Fails when there are mistakes.
pub fn none_of(mistakes: &[String]) -> anyhow::Result<()> {
    if !mistakes.is_empty() {
        bail!(told(mistakes));
    }
    Ok(())
}
