//! Settings from the command line and the files it names; all mistakes at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_controllers::Controller;
use cloudwit_host::{Grants, Limits, ProviderSettings};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::document::Document;
use crate::config::file::{self, Common, Configured, Routing};
use crate::config::mistakes::Mistakes;
use crate::election::candidate::Election;
use crate::flags::args::Args;
use crate::flags::checks;
use crate::flags::values::selection;
use crate::providers::swap::Source;
use crate::providers::{csi, dir};

/// What follows the number of mistakes at start.
const NOT_STARTED: &str = " in the configuration, nothing was started";

/// What the process works with.
#[derive(Debug)]
pub struct Settings {
    /// What each provider is loaded from.
    pub providers: Vec<Source>,
    /// Memory of all calls together, in bytes; none for the host's default.
    pub guest_memory_bytes: Option<u64>,
    /// Which Nodes and Services are whose.
    pub routing: Routing,
    /// The controllers that run.
    pub controllers: Vec<Controller>,
    /// Pod ranges of the cluster.
    pub cluster_cidrs: Vec<IpNet>,
    /// How replicas find out who works; none for a process that is alone, and for a dry run, which changes nothing.
    pub election: Option<Election>,
}

/// The file of `--provider-settings`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct SettingsFile {
    /// What it may reach.
    pub grants: Grants,
    /// What it may use.
    pub limits: Limits,
    /// Single values for the provider.
    pub values: BTreeMap<String, String>,
    /// Name of the CSI driver that serves its volumes, in place of the one that the provider gives; see --csi-socket-dir.
    pub csi_driver_name: Option<String>,
}

/// Checks all flags and reads the files they name.
pub fn resolve(args: &Args) -> Result<Settings, Mistakes> {
    let mut problems = checks::mistakes(args);
    let controllers = selection::select(&args.controllers.controllers).unwrap_or_else(|wrong| {
        problems.extend(wrong);
        Vec::new()
    });
    problems.extend(args.tagging.mistakes(&controllers));
    let cluster_cidrs = cluster_cidrs(&args.cluster.cluster_cidr, &mut problems);
    let configured = configured(args, &cluster_cidrs, &mut problems);
    check_periods(args, &mut problems);
    problems.extend(args.api_server.mistakes());
    let election = args.leader_election.election().unwrap_or_else(|wrong| {
        problems.extend(wrong);
        None
    });
    Mistakes::none_of(problems, NOT_STARTED)?;
    Ok(Settings {
        providers: configured.providers,
        guest_memory_bytes: configured.guest_memory_bytes,
        routing: configured.routing,
        controllers,
        cluster_cidrs,
        // A dry run beside the process that works must neither wait for its Lease nor take it when that process is replaced.
        election: election.filter(|_| !args.controllers.dry_run),
    })
}

/// The providers, from `--config` or from the flags about one.
fn configured(args: &Args, cluster_cidrs: &[IpNet], problems: &mut Vec<String>) -> Configured {
    let cluster_cidrs: Vec<String> = cluster_cidrs.iter().map(IpNet::to_string).collect();
    let Some(file) = &args.provider.config else {
        return from_flags(args, cluster_cidrs, problems);
    };
    let given = [
        ("--cloud-provider", !args.provider.cloud_provider.is_empty()),
        ("--cloud-config", args.provider.cloud_config.is_some()),
        ("--provider-settings", args.provider.provider_settings.is_some()),
    ];
    for (flag, _) in given.iter().filter(|(_, given)| *given) {
        problems.push(format!(
            "{flag} and --config={} both say what the providers are, and neither goes before the other; move it into the file",
            file.display()
        ));
    }
    let common = Common {
        provider_dir: &args.provider.provider_dir,
        cluster_name: &args.cluster.cluster_name,
        cluster_cidrs: &cluster_cidrs,
    };
    file::read(file, common).unwrap_or_else(|wrong| {
        problems.extend(wrong);
        Configured::default()
    })
}

fn from_flags(args: &Args, cluster_cidrs: Vec<String>, problems: &mut Vec<String>) -> Configured {
    let flags = &args.provider;
    let files = ProviderFiles {
        name: flags.cloud_provider.clone(),
        component: component(args, problems),
        cloud_config: flags.cloud_config.as_deref(),
        settings: flags.provider_settings.as_deref(),
        settings_flag: "--provider-settings",
    };
    let source = files.read(&args.cluster.cluster_name, cluster_cidrs, problems);
    Configured {
        routing: Routing {
            default: flags.cloud_provider.clone(),
            ..Routing::default()
        },
        providers: vec![source],
        guest_memory_bytes: None,
    }
}

fn component(args: &Args, problems: &mut Vec<String>) -> PathBuf {
    if args.provider.cloud_provider.is_empty() {
        problems.push("--cloud-provider cannot be empty; name a provider of --provider-dir".into());
        return PathBuf::new();
    }
    dir::find(&args.provider.provider_dir, &args.provider.cloud_provider).unwrap_or_else(|error| {
        problems.push(error.to_string());
        PathBuf::new()
    })
}

/// The files that flags name for one provider.
#[derive(Debug)]
pub struct ProviderFiles<'a> {
    /// Name of the provider.
    pub name: String,
    /// The component.
    pub component: PathBuf,
    /// `--cloud-config`.
    pub cloud_config: Option<&'a Path>,
    /// A [`SettingsFile`].
    pub settings: Option<&'a Path>,
    /// The flag that named it.
    pub settings_flag: &'static str,
}

impl ProviderFiles<'_> {
    /// Reads them.
    pub fn read(self, cluster_name: &str, cluster_cidrs: Vec<String>, problems: &mut Vec<String>) -> Source {
        let config_text = cloud_config(self.cloud_config, problems);
        let file = settings_file(self.settings, self.settings_flag, problems);
        let origin = self
            .cloud_config
            .map_or("(none)".into(), |file| file.display().to_string());
        let files = self.cloud_config.into_iter().chain(self.settings);
        Source {
            component: self.component.into(),
            settings: ProviderSettings {
                name: self.name,
                config_text,
                values: file.values.into_iter().collect(),
                cluster_name: cluster_name.to_owned(),
                cluster_cidrs,
                grants: file.grants,
                limits: file.limits,
            },
            csi_driver_name: file.csi_driver_name,
            config_origin: format!("--cloud-config={origin}"),
            files: files.map(Path::to_path_buf).collect(),
        }
    }
}

/// The text of `--cloud-config`.
fn cloud_config(file: Option<&Path>, problems: &mut Vec<String>) -> String {
    let Some(file) = file else { return String::new() };
    std::fs::read_to_string(file).unwrap_or_else(|error| {
        problems.push(format!(
            "--cloud-config={}: cannot be read as text: {error}; it has to be the provider's configuration file",
            file.display()
        ));
        String::new()
    })
}

/// The file of the flag with this name.
fn settings_file(file: Option<&Path>, flag: &str, problems: &mut Vec<String>) -> SettingsFile {
    let Some(file) = file else {
        return SettingsFile::default();
    };
    let flag = format!("{flag}={}", file.display());
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            problems.push(format!("{flag}: cannot be read as text: {error}"));
            return SettingsFile::default();
        }
    };
    match Document::read::<SettingsFile>(flag, &text) {
        Ok((settings, document)) => {
            problems.extend(document.grants("grants", &settings.grants));
            let wrong_name = settings.csi_driver_name.as_deref().and_then(csi::wrong_name);
            problems.extend(wrong_name.map(|wrong| document.mistake("csiDriverName", wrong)));
            settings
        }
        Err(wrong) => {
            problems.extend(wrong);
            SettingsFile::default()
        }
    }
}

/// `--cluster-cidr`: at most one range of each family. Blanks around a comma are forgiven, unlike upstream.
fn cluster_cidrs(text: &str, problems: &mut Vec<String>) -> Vec<IpNet> {
    let mut cidrs: Vec<IpNet> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.parse::<IpNet>() {
            Ok(cidr) => cidrs.push(cidr.trunc()),
            Err(_) => problems.push(format!(
                "--cluster-cidr: {part:?} is not a CIDR; write for example 10.244.0.0/16"
            )),
        }
    }
    let v4 = cidrs.iter().filter(|cidr| matches!(cidr, IpNet::V4(_))).count();
    if v4 > 1 || cidrs.len() - v4 > 1 {
        problems.push(format!(
            "--cluster-cidr: {text:?} has two ranges of one family; give one IPv4 and one IPv6 range"
        ));
    }
    cidrs
}

/// Shorter periods would only keep the API server and the cloud busy.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

fn check_periods(args: &Args, problems: &mut Vec<String>) {
    let (controllers, deletion) = (&args.controllers, &args.deletion);
    for (flag, period) in [
        (
            "--node-status-update-frequency",
            controllers.node_status_update_frequency,
        ),
        ("--node-monitor-period", controllers.node_monitor_period),
        ("--route-reconciliation-period", controllers.route_reconciliation_period),
        ("--node-deletion-window", deletion.node_deletion_window),
    ] {
        if period.0 < SHORTEST_PERIOD {
            problems.push(format!("{flag}={period}: too short; give at least 100ms"));
        }
    }
    let pause = controllers.max_retry_pause;
    if !pause.0.is_zero() && pause.0 < SHORTEST_PERIOD {
        problems.push(format!(
            "--max-retry-pause={pause}: too short; give at least 100ms, or 0 for none"
        ));
    }
}

#[cfg(test)]
mod tests;
