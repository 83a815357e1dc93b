//! Upstream's flags of webhooks, which have no effect or are refused.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::flags::values::go::{address, boolean, entries, whole};

/// Flags about webhooks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Webhooks (there are none; accepted as upstream's)")]
pub struct WebhookArgs {
    /// Has to be empty: there are no webhooks here.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub webhooks: Vec<String>,

    /// No effect without a webhook.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", value_parser = address)]
    pub webhook_bind_address: IpAddr,

    /// No effect without a webhook.
    #[arg(long, value_name = "PORT", default_value_t = 10260, value_parser = whole(0..=u16::MAX))]
    pub webhook_secure_port: u16,

    /// No effect without a webhook.
    #[arg(long, value_name = "DIR", default_value = "")]
    pub webhook_cert_dir: String,

    /// No effect without a webhook.
    #[arg(long, value_name = "FILE")]
    pub webhook_tls_cert_file: Option<PathBuf>,

    /// No effect without a webhook.
    #[arg(long, value_name = "FILE")]
    pub webhook_tls_private_key_file: Option<PathBuf>,

    /// No effect without a webhook.
    #[arg(long, value_name = "CERT,KEY[:NAMES]")]
    pub webhook_tls_sni_cert_key: Vec<String>,

    /// No effect without a webhook.
    #[arg(long, value_name = "VERSION", default_value = "")]
    pub webhook_tls_min_version: String,

    /// No effect without a webhook.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub webhook_tls_cipher_suites: Vec<String>,

    /// No effect without a webhook.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole(i32::MIN..=i32::MAX))]
    pub webhook_tls_curve_preferences: Vec<i32>,

    /// No effect without a webhook.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub webhook_disable_http2_serving: bool,
}

impl WebhookArgs {
    /// What is wrong with them, in the words of upstream where it has any.
    pub fn mistakes(&self) -> Vec<String> {
        entries(&self.webhooks)
            .iter()
            .map(|name| {
                format!(
                    "--webhooks: {name:?} is not in the list of known webhooks; there are none here, leave it empty"
                )
            })
            .collect()
    }
}
