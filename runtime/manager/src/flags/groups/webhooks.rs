//! Flags of admission webhooks and of the HTTPS server of their own.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::flags::groups::serving::SecureServingArgs;
use crate::flags::values::go::{address, boolean, whole};
use crate::webhook::{self, Webhook};

/// Flags about webhooks.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Admission webhooks")]
pub struct WebhookArgs {
    /// Admission webhooks to serve, by every replica: `*` for all, NAME for one, `-NAME` for all but one; none when empty. There is
    /// `persistent-volume-label` (docs/guide/volumes.md). No feature gate is needed.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub webhooks: Vec<String>,

    /// The address to serve webhooks on; 0.0.0.0 and :: stand for all.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", value_parser = address)]
    pub webhook_bind_address: IpAddr,

    /// The port of webhooks. Served without authentication; answers contain nothing but labels of volumes.
    #[arg(long, value_name = "PORT", default_value_t = 10260, value_parser = whole(0..=u16::MAX))]
    pub webhook_secure_port: u16,

    /// As --cert-dir, for webhooks.
    #[arg(long, value_name = "DIR", default_value = "")]
    pub webhook_cert_dir: String,

    /// As --tls-cert-file, for webhooks. The API server has to trust it under the name it calls (`caBundle` of the configuration).
    #[arg(long, value_name = "FILE")]
    pub webhook_tls_cert_file: Option<PathBuf>,

    /// As --tls-private-key-file, for webhooks.
    #[arg(long, value_name = "FILE")]
    pub webhook_tls_private_key_file: Option<PathBuf>,

    /// As --tls-sni-cert-key, for webhooks. May be repeated.
    #[arg(long, value_name = "CERT,KEY[:NAMES]")]
    pub webhook_tls_sni_cert_key: Vec<String>,

    /// As --tls-min-version, for webhooks.
    #[arg(long, value_name = "VERSION", default_value = "")]
    pub webhook_tls_min_version: String,

    /// As --tls-cipher-suites, for webhooks.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub webhook_tls_cipher_suites: Vec<String>,

    /// As --tls-curve-preferences, for webhooks.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole(i32::MIN..=i32::MAX))]
    pub webhook_tls_curve_preferences: Vec<i32>,

    /// As --disable-http2-serving, for webhooks.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub webhook_disable_http2_serving: bool,
}

/// What these flags have before the names of those of the secure port.
const PREFIX: &str = "webhook-";

impl WebhookArgs {
    /// The webhooks to serve; mistakes were reported before.
    pub fn selected(&self) -> Vec<Webhook> {
        webhook::select(&self.webhooks).unwrap_or_default()
    }

    /// The server of its own, with these flags in place of those of the secure port.
    pub fn serving(&self) -> SecureServingArgs {
        SecureServingArgs {
            bind_address: self.webhook_bind_address,
            secure_port: self.webhook_secure_port,
            cert_dir: self.webhook_cert_dir.clone(),
            tls_cert_file: self.webhook_tls_cert_file.clone(),
            tls_private_key_file: self.webhook_tls_private_key_file.clone(),
            tls_sni_cert_key: self.webhook_tls_sni_cert_key.clone(),
            tls_min_version: self.webhook_tls_min_version.clone(),
            tls_cipher_suites: self.webhook_tls_cipher_suites.clone(),
            tls_curve_preferences: self.webhook_tls_curve_preferences.clone(),
            disable_http2_serving: self.webhook_disable_http2_serving,
            http2_max_streams_per_connection: 0,
            permit_port_sharing: false,
            profiling: false,
            prefix: PREFIX,
        }
    }

    /// What is wrong with them, in the words of upstream where it has any.
    pub fn mistakes(&self, secure: &SecureServingArgs) -> Vec<String> {
        let mut mistakes = webhook::select(&self.webhooks).err().unwrap_or_default();
        mistakes.extend(self.serving().mistakes());
        if self.webhook_secure_port == 0 && !self.selected().is_empty() {
            mistakes.push("--webhook-secure-port=0 serves no webhook; give a port, or leave --webhooks empty".into());
        }
        if self.webhook_secure_port != 0 && self.webhook_secure_port == secure.secure_port {
            mistakes.push("--webhook-secure-port cannot be the same value as --secure-port".into());
        }
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::flags::args::Args;

    fn mistakes(flags: &[&str]) -> Vec<String> {
        let args = Args::parse_from([&["cloudwit"], flags].concat());
        args.webhooks.mistakes(&args.secure_serving)
    }

    #[test]
    fn mistakes_name_the_flags_of_webhooks() {
        assert_eq!(mistakes(&["--webhooks=*"]), Vec::<String>::new());
        for (flags, part) in [
            (&["--webhooks=pvl"][..], "\"pvl\" is not in the list of known webhooks"),
            (
                &["--webhooks=*", "--webhook-secure-port=0"],
                "--webhook-secure-port=0 serves no webhook",
            ),
            (
                &["--webhook-secure-port=10258"],
                "--webhook-secure-port cannot be the same value as --secure-port",
            ),
            (&["--webhook-tls-min-version=1.0"], "--webhook-tls-min-version=1.0"),
            (
                &["--webhook-tls-cipher-suites=RC4"],
                "--webhook-tls-cipher-suites: \"RC4\"",
            ),
            (
                &["--webhook-tls-curve-preferences=25"],
                "--webhook-tls-curve-preferences: 25",
            ),
            (
                &["--webhook-tls-cert-file=a.pem"],
                "--webhook-tls-cert-file and --webhook-tls-private-key-file belong together",
            ),
            (&["--webhook-tls-sni-cert-key=a"], "--webhook-tls-sni-cert-key=a"),
        ] {
            let found = mistakes(flags);
            assert_eq!(found.len(), 1, "{flags:?}: {found:?}");
            assert!(found[0].contains(part), "{flags:?}: {found:?}");
        }
    }
}
