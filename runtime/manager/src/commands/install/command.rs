//! `cloudwit install`: prints or applies the manifests with provider, configuration and secrets.
//!
//! ```text
//!   configuration, components, secrets -> install_bundle -> install_check (the sandbox tries them here)
//!                                              |
//!   deploy/manifests, flags -> install_manifests -> printed, or install_apply -> API server
//! ```
//!
//! All mistakes are reported at once; then nothing is printed and nothing written.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use jiff::Timestamp;

use crate::commands::install::apply;
use crate::commands::install::bundle::Bundle;
use crate::commands::install::check;
use crate::commands::install::manifests::{self, Settings};
use crate::commands::install::ready;
use crate::commands::install::webhooks::{self, Pair};
use crate::commands::install::yaml;
use crate::config::mistakes::Mistakes;
use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::whole;

/// Flags of `install`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is installed")]
pub struct InstallArgs {
    /// The configuration (CloudwitConfiguration), with paths as they are here. Components, cloud configs, certificates and secrets that it
    /// names are read here and put into ConfigMaps and a Secret, and the paths in it are changed accordingly.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cloud_provider", "component", "cloud_config", "provider_settings"])]
    pub config: Option<PathBuf>,

    /// Name of a single provider, instead of --config.
    #[arg(long, value_name = "NAME", required_unless_present = "config")]
    pub cloud_provider: Option<String>,

    /// Its component, NAME.wasm or NAME.wasm.zst, or oci://HOST/REPOSITORY@sha256:DIGEST for one in a registry.
    #[arg(long, value_name = "FILE", required_unless_present = "config")]
    pub component: Option<PathBuf>,

    /// Its own configuration.
    #[arg(long, value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,

    /// Its grants, limits and values. Paths in it are as they are here.
    #[arg(long, value_name = "FILE")]
    pub provider_settings: Option<PathBuf>,

    /// Take secrets from this Secret in the namespace of --namespace, which others fill. The configuration then names /etc/cloudwit/secrets/KEY.
    #[arg(long, value_name = "NAME")]
    pub existing_secret: Option<String>,

    /// In which namespace. Another one than kube-system is made, with the label that lets Pods use the Node's network; the Lease stays in kube-system, where
    /// upstream's controllers have theirs.
    #[arg(
        long,
        value_name = "NAME",
        default_value = manifests::KUBE_SYSTEM,
        value_parser = namespace,
        help_heading = "How it runs"
    )]
    pub namespace: String,

    /// Which image runs.
    #[arg(long, value_name = "IMAGE", default_value = manifests::IMAGE, help_heading = "How it runs")]
    pub image: String,

    /// How many replicas. Each needs a control-plane Node of its own; one works, the others wait.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "How it runs", value_parser = whole(1_u8..=9))]
    pub replicas: u8,

    /// On which Nodes: those with this label, or with this value of it. All that are given have to fit. Without it, control-plane Nodes.
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = label, help_heading = "How it runs")]
    pub node_selector: Vec<(String, Option<String>)>,

    /// The cluster's name in the cloud.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "kubernetes",
        help_heading = "How it runs"
    )]
    pub cluster_name: String,

    /// Pod ranges of the cluster. Without them no routes are set in the cloud, which is right for overlay networks.
    #[arg(long, value_name = "CIDRS", default_value = "", help_heading = "How it runs")]
    pub cluster_cidr: String,

    /// Let each controller act as a service account of its own, and grant the process itself no write to Nodes and Services.
    #[arg(long, help_heading = "How it runs")]
    pub controller_accounts: bool,

    /// Admission webhooks to serve and register with the API server, with a certificate of their own: `*` for all, or persistent-volume-label.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "How it runs")]
    pub webhooks: Vec<String>,

    /// Address of the API server, HOST:PORT, for where the Service `kubernetes` leads nowhere before Cloudwit has worked.
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port, help_heading = "How it runs")]
    pub api_server: Option<(String, u16)>,

    /// Apply them, server-side, as field manager `cloudwit`. Without it they are printed.
    #[arg(long, help_heading = "What happens with it")]
    pub apply: bool,

    /// Write them into files of this folder instead: components and secrets have files of their own, the latter for the owner alone.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "apply",
        help_heading = "What happens with it"
    )]
    pub output_dir: Option<PathBuf>,

    /// With --apply: take over fields that another manager has set.
    #[arg(long, requires = "apply", help_heading = "What happens with it")]
    pub force_conflicts: bool,

    /// With --apply: how long to wait until a replica is ready. 0 does not wait.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        requires = "apply",
        help_heading = "What happens with it"
    )]
    pub timeout: GoDuration,

    /// With --apply: kubeconfig of an administrator; without it the service account of the Pod.
    #[arg(long, value_name = "FILE", requires = "apply", help_heading = "What happens with it")]
    pub kubeconfig: Option<PathBuf>,

    /// Further flags of the process, after `--`, such as --v=2.
    #[arg(last = true, value_name = "FLAG")]
    pub flags: Vec<String>,
}

/// What follows the number of mistakes.
const NOT_INSTALLED: &str = ", nothing was installed";

/// Prints the manifests, or applies them.
pub async fn run(args: InstallArgs) -> anyhow::Result<ExitCode> {
    let wrong = |mistakes| Mistakes::of(mistakes, NOT_INSTALLED);
    let bundle = Bundle::read(&args).map_err(wrong)?;
    Mistakes::none_of(check::mistakes(&args, &bundle).await?, NOT_INSTALLED)?;
    let settings = Settings::new(&args);
    let mut objects = manifests::objects(&settings, &bundle).map_err(wrong)?;
    if let Some((selected, port)) = settings.webhooks() {
        let known = match args.apply {
            true => apply::webhook_authorities(args.kubeconfig.as_deref()).await?,
            false => None,
        };
        let pair = Pair::generate(&args.namespace, Timestamp::now())?;
        webhooks::register(&mut objects, &selected, port, &pair, known.as_deref());
    }
    if let Some(folder) = &args.output_dir {
        let folder_shown = folder.display();
        for name in yaml::write(&objects, folder)? {
            println!("{folder_shown}/{name}");
        }
        println!("Next: kubectl apply --server-side -f {folder_shown}");
        return Ok(ExitCode::SUCCESS);
    }
    if !args.apply {
        print!("{}", yaml::stream(&objects).context("writing YAML")?);
        return Ok(ExitCode::SUCCESS);
    }
    apply::apply(&objects, args.kubeconfig.as_deref(), args.force_conflicts).await?;
    if !args.timeout.0.is_zero() {
        ready::wait(args.kubeconfig.as_deref(), &args.namespace, args.timeout.0).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A name that a namespace can have (RFC 1123 label).
fn namespace(text: &str) -> Result<String, String> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = text.len() <= 63
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().last().is_some_and(inner);
    match fits {
        true => Ok(text.to_owned()),
        false => Err("a namespace has at most 63 lower-case letters, digits and '-', such as cloud-system".into()),
    }
}

/// `KEY` or `KEY=VALUE`.
fn label(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (text, None),
    };
    if key.is_empty() {
        return Err(format!(
            "{text:?} names no label; write KEY or KEY=VALUE, such as node-role.kubernetes.io/control-plane"
        ));
    }
    Ok((key.to_owned(), value))
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let parsed = parts.and_then(|(host, port)| Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?)));
    parsed.ok_or_else(|| "it has to be HOST:PORT, such as 192.0.2.10:6443".into())
}
