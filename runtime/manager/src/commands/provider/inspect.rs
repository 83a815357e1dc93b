//! `cloudwit inspect`: exports of a component, and the grants it requests.
//!
//! The component is loaded in the same sandbox as in the cluster, with no grants and no cluster, and described. A file that cannot be
//! loaded, and a cloud config that the provider does not accept, are refused in the words of the start.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use cloudwit_host::{COMPRESSION, ComponentFile, Grants, Host, Limits, MissingGrant, Provider, ProviderSettings};
use cloudwit_model::Cloud as _;
use prometheus_client::registry::Registry;
use serde::Serialize;

use crate::commands::cluster::Cluster;
use crate::commands::explain::Output;
use crate::providers::host;
use crate::providers::load::insist_on_sound_config;

/// What all files of a ConfigMap may have together, in bytes (`MaxSecretSize` in k8s.io/kubernetes pkg/apis/core/types.go).
const CONFIG_MAP: u64 = 1 << 20;

/// What `kubectl apply` without `--server-side` may note of an object in an annotation, in bytes (`TotalAnnotationSizeLimitB` in
/// k8s.io/apimachinery pkg/api/validation/objectmeta.go). A file is in it as base64.
const APPLY_NOTE: u64 = 256 << 10;

/// Room for the rest of the ConfigMap in that note, in bytes.
const APPLY_REST: u64 = 1 << 10;

/// Arguments of `inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// The component, NAME.wasm or NAME.wasm.zst.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The provider's own configuration. The grants a provider requests often follow from it.
    // A name of its own: the process has a flag of this name too.
    #[arg(id = "inspect_cloud_config", long = "cloud-config", value_name = "FILE")]
    pub cloud_config: Option<PathBuf>,

    /// Text, or JSON for programs.
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    pub output: Output,
}

/// The JSON output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    file: String,
    name: String,
    version: String,
    /// Version of the contract, such as `0.1`.
    contract: String,
    abilities: Vec<&'static str>,
    provider_id_prefixes: Vec<String>,
    exports: Vec<String>,
    imports: Vec<String>,
    grant_requests: Vec<GrantRequest>,
    size: Size,
    /// Of the component, unpacked.
    sha256: String,
    config_map: Fit,
}

#[derive(Debug, Serialize)]
struct GrantRequest {
    /// `grants.http`, `grants.secrets` or `grants.cluster`.
    list: &'static str,
    /// The list's entry, one line of YAML.
    entry: String,
    reason: String,
    /// Whether the provider works without it.
    optional: bool,
}

/// In bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Size {
    file: u64,
    component: u64,
    /// As [`COMPRESSION`] makes it, or the file's where that is smaller.
    compressed: u64,
    is_compressed: bool,
}

/// Whether the file fits into a ConfigMap that holds nothing else.
#[derive(Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Fit {
    /// As it is.
    fits: bool,
    /// When it is compressed with [`COMPRESSION`].
    compressed_fits: bool,
    /// As it is, with `kubectl apply` and no `--server-side`.
    client_side_apply: bool,
}

impl Fit {
    fn of(file: u64, compressed: u64) -> Self {
        Self {
            fits: file <= CONFIG_MAP,
            compressed_fits: compressed <= CONFIG_MAP,
            client_side_apply: file.div_ceil(3) * 4 + APPLY_REST <= APPLY_NOTE,
        }
    }

    fn text(&self) -> String {
        let text = match self {
            Self {
                client_side_apply: true,
                ..
            } => "fits, also with plain kubectl apply",
            Self { fits: true, .. } => "fits, with kubectl apply --server-side",
            Self {
                compressed_fits: true, ..
            } => return format!("too large as it is; fits when compressed with {COMPRESSION}"),
            _ => "too large, also when compressed; ship it in an image or a registry",
        };
        text.to_owned()
    }
}

/// Loads the component and prints what it is.
pub async fn run(args: InspectArgs) -> anyhow::Result<ExitCode> {
    // What an operator allows is not known here.
    let limits = Limits {
        component_bytes: Limits::MOST_COMPONENT_BYTES,
        ..Limits::default()
    };
    let file = Arc::new(ComponentFile::read(&args.file, &limits)?);
    // Takes seconds for a large one, and so does compiling it.
    let compressed = tokio::task::spawn_blocking({
        let file = Arc::clone(&file);
        move || file.compressed_bytes()
    });
    let config_text = match &args.cloud_config {
        Some(file) => std::fs::read_to_string(file)
            .with_context(|| format!("--cloud-config={}: cannot be read as text", file.display()))?,
        None => String::new(),
    };
    let settings = ProviderSettings {
        name: "inspected".into(),
        config_text,
        values: Vec::new(),
        cluster_name: "kubernetes".into(),
        cluster_cidrs: Vec::new(),
        grants: Grants::default(),
        limits,
    };
    let host = Host::new(host::on_this_system(None), &mut Registry::default())?;
    let no_cluster = Arc::new(Cluster::default()).outside();
    let provider = host.load(&args.file, settings, no_cluster).await?;
    if let Some(file) = &args.cloud_config {
        for warning in insist_on_sound_config(&provider, &format!("--cloud-config={}", file.display())).await? {
            eprintln!("Warning: {warning}");
        }
    }
    let compressed = compressed.await?.context("compressing the component")?;
    let inspection = Inspection::of(args.file.display().to_string(), &file, compressed, &provider);
    match args.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&inspection)?),
        Output::Text => print!("{}", inspection.text(args.cloud_config.is_some())),
    }
    Ok(ExitCode::SUCCESS)
}

impl Inspection {
    fn of(path: String, file: &ComponentFile, compressed: u64, provider: &Provider) -> Self {
        let description = provider.description();
        let (exports, imports) = provider.interfaces();
        let request = |lack: MissingGrant| GrantRequest {
            list: lack.list,
            entry: lack.entry,
            reason: lack.reason,
            optional: lack.optional,
        };
        Self {
            file: path,
            name: description.name.clone(),
            version: description.version.clone(),
            contract: provider.contract(),
            abilities: provider.abilities().names(),
            provider_id_prefixes: description.provider_id_prefixes.clone(),
            exports,
            imports,
            // Nothing is granted, so everything it requests is missing.
            grant_requests: provider.missing_grants().into_iter().map(request).collect(),
            size: Size {
                file: file.file_bytes,
                component: file.bytes,
                compressed,
                is_compressed: file.compressed,
            },
            sha256: file.digest.clone(),
            config_map: Fit::of(file.file_bytes, compressed),
        }
    }

    fn text(&self, configured: bool) -> String {
        let Size {
            file,
            component,
            compressed,
            is_compressed,
        } = &self.size;
        let size = match is_compressed {
            true if compressed == file => format!("{component} bytes, compressed to {file}"),
            true => format!("{component} bytes, compressed to {file}, {compressed} with {COMPRESSION}"),
            false => format!("{component} bytes, {compressed} when compressed ({COMPRESSION})"),
        };
        let mut text = String::new();
        for (name, value) in [
            ("provider", format!("{} {}", self.name, self.version)),
            ("contract", format!("cloudwit:provider {}", self.contract)),
            ("interfaces", self.abilities.join(", ")),
            ("provider ids", self.provider_id_prefixes.join(", ")),
            ("size", size),
            ("ConfigMap", self.config_map.text()),
            ("sha256", self.sha256.clone()),
            ("exports", self.exports.join(", ")),
            ("imports", self.imports.join(", ")),
        ] {
            let _ = writeln!(text, "{name:13} {value}");
        }
        text.push_str(&self.grants(configured));
        text
    }

    /// What to paste under the provider, and into `--provider-settings`.
    fn grants(&self, configured: bool) -> String {
        let hint = match configured {
            true => "",
            false => " without a configuration (--cloud-config=FILE takes yours into account)",
        };
        if self.grant_requests.is_empty() {
            return format!("\nIt requests no grants{hint}.\n");
        }
        let mut text = format!("\nMissing grants{hint}; add:\n\ngrants:\n");
        for list in ["http", "secrets", "cluster"] {
            let mut grant_requests = self
                .grant_requests
                .iter()
                .filter(|request| request.list.ends_with(list))
                .peekable();
            if grant_requests.peek().is_some() {
                let _ = writeln!(text, "  {list}:");
            }
            for request in grant_requests {
                let optional = request.optional.then_some("optional:");
                let reason: Vec<&str> = optional.into_iter().chain(request.reason.split_whitespace()).collect();
                if !reason.is_empty() {
                    let _ = writeln!(text, "    # {}", reason.join(" "));
                }
                let _ = writeln!(text, "    {}", request.entry);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_where_is_decided_to_the_byte() {
        let fit = |file, compressed| Fit::of(file, compressed).text();
        let plain = "fits, also with plain kubectl apply";
        // 195840 bytes are 261120 in base64, which with 1024 for the rest are 262144.
        assert_eq!(fit(195_840, 1), plain);
        assert_eq!(fit(195_841, 1), "fits, with kubectl apply --server-side");
        assert_eq!(fit(1_048_576, 1), "fits, with kubectl apply --server-side");
        assert_eq!(
            fit(1_048_577, 1_048_576),
            "too large as it is; fits when compressed with zstd -19 --long=27"
        );
        assert_eq!(
            fit(1_048_577, 1_048_577),
            "too large, also when compressed; ship it in an image or a registry"
        );
    }
}
