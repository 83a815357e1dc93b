//! `cloudwit cloud location`: who this machine is, for its kubelet.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use cloudwit_model::dns_name::MAX_NAME;
use cloudwit_model::{Location as _, MachineLocation};
use serde_json::json;

use crate::commands::cloud::out::OutArgs;
use crate::commands::cloud::plain::{is_label_value, plain};
use crate::commands::cloud::session::{self, SessionArgs};

/// Where Linux has the host's name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Arguments of `cloud location`.
#[derive(Debug, clap::Args)]
pub struct LocationArgs {
    #[command(flatten)]
    session: SessionArgs,

    /// This machine's host name, which some clouds make the Node's name of; the system's when left out.
    #[arg(id = "location_hostname", long = "hostname", value_name = "NAME", value_parser = host_name)]
    hostname: Option<String>,

    /// In which form.
    #[arg(id = "location_output", long = "output", short = 'o', value_enum, value_name = "FORMAT", default_value_t = Form::Flags)]
    form: Form,

    #[command(flatten)]
    out: OutArgs,
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Flags of the kubelet, in one line.
    Flags,
    /// Variables, for a shell or systemd's EnvironmentFile=: NODE_NAME, PROVIDER_ID, ZONE, REGION, and all flags in KUBELET_EXTRA_ARGS, as kubeadm's unit reads it.
    Environment,
    /// A KubeletConfiguration, for --config-dir; values without a field there are in its comment.
    KubeletConfig,
    /// One JSON object.
    Json,
    /// A table for people.
    Text,
}

/// A host name as the kubelet reads it: without blanks around it, in lower case (`k8s.io/kubernetes/pkg/util/node`, `GetHostname`).
fn host_name(text: &str) -> Result<String, String> {
    let name = text.trim().to_lowercase();
    match (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control) {
        true => Ok(name),
        false => Err(format!(
            "a host name has 1 to {MAX_NAME} bytes and no control characters"
        )),
    }
}

/// Calls, and writes the answer.
pub async fn run(args: LocationArgs) -> anyhow::Result<ExitCode> {
    let hostname = match args.hostname {
        Some(name) => name,
        None => {
            let text =
                std::fs::read_to_string(HOST_NAME).with_context(|| format!("{HOST_NAME}; give --hostname=NAME"))?;
            host_name(&text).map_err(|wrong| anyhow::anyhow!("{HOST_NAME}: {wrong}; give --hostname=NAME"))?
        }
    };
    let session = match session::begin(&args.session, ("location", |has| has.location)).await? {
        Ok(session) => session,
        Err(ended) => return Ok(ended.exit()),
    };
    let asked = session.ask("looking up this machine", |_| session.provider.locate(&hostname));
    let found = match asked.await {
        Ok(found) => found,
        Err(ended) => return Ok(ended.exit()),
    };
    args.out.put(&written(&found, args.form)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Zone and region as labels of the Node, those that can be.
fn labels(found: &MachineLocation) -> Vec<(&'static str, &str)> {
    let labels = [
        ("topology.kubernetes.io/region", &found.instance.region),
        ("topology.kubernetes.io/zone", &found.instance.zone),
    ];
    labels
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_deref()?)))
        .filter(|(_, value)| is_label_value(value))
        .collect()
}

/// The flags, all plain.
fn flags(found: &MachineLocation) -> anyhow::Result<Vec<String>> {
    let mut flags = vec![
        format!("--hostname-override={}", plain("the Node's name", &found.node)?),
        format!(
            "--provider-id={}",
            plain("the provider id", &found.instance.provider_id)?
        ),
    ];
    flags.extend(label_flag(found));
    Ok(flags)
}

fn label_flag(found: &MachineLocation) -> Option<String> {
    let labels: Vec<String> = labels(found)
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!labels.is_empty()).then(|| format!("--node-labels={}", labels.join(",")))
}

fn written(found: &MachineLocation, form: Form) -> anyhow::Result<String> {
    let instance = &found.instance;
    Ok(match form {
        Form::Flags => format!("{}\n", flags(found)?.join(" ")),
        Form::Environment => {
            let flags = flags(found)?.join(" ");
            let zone = plain("the zone", instance.zone.as_deref().unwrap_or_default())?;
            let region = plain("the region", instance.region.as_deref().unwrap_or_default())?;
            let variables = [
                ("NODE_NAME", found.node.as_str()),
                ("PROVIDER_ID", &instance.provider_id),
                ("ZONE", zone),
                ("REGION", region),
                ("KUBELET_EXTRA_ARGS", &flags),
            ];
            let mut text = String::new();
            for (name, value) in variables {
                // Nothing in a plain text ends a quotation.
                let _ = writeln!(text, "{name}='{value}'");
            }
            text
        }
        Form::KubeletConfig => {
            let mut text = String::from("# No fields of this file, and flags of the kubelet:\n");
            let _ = writeln!(text, "#   --hostname-override={}", found.node);
            if let Some(flag) = label_flag(found) {
                let _ = writeln!(text, "#   {flag}");
            }
            let _ = writeln!(
                text,
                "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration"
            );
            // A JSON text is one of YAML too.
            let _ = writeln!(text, "providerID: {}", json!(instance.provider_id));
            text
        }
        Form::Json => {
            let addresses = instance.addresses.iter();
            let addresses: Vec<_> = addresses
                .map(|address| json!({"type": address.kind.as_str(), "address": address.value}))
                .collect();
            let object = json!({
                "nodeName": found.node, "providerID": instance.provider_id, "zone": instance.zone, "region": instance.region,
                "instanceType": instance.instance_type, "addresses": addresses,
            });
            format!("{object:#}\n")
        }
        Form::Text => {
            let rows = [
                ("node", Some(&found.node)),
                ("provider id", Some(&instance.provider_id)),
                ("zone", instance.zone.as_ref()),
                ("region", instance.region.as_ref()),
                ("instance type", instance.instance_type.as_ref()),
            ];
            let mut text = String::new();
            for (name, value) in rows {
                let _ = writeln!(text, "{name:<14} {}", value.map_or("-", String::as_str));
            }
            for address in &instance.addresses {
                let _ = writeln!(text, "{:<14} {}", address.kind.as_str(), address.value);
            }
            text
        }
    })
}

#[cfg(test)]
mod tests;
