//! Flags of the HTTPS server and of the plain one on loopback.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::flags::values::go::{address, boolean, whole};

/// Where HTTPS is served unless a flag says otherwise (upstream's `CloudControllerManagerPort`).
pub const DEFAULT_SECURE_PORT: u16 = 10258;

/// Flags about HTTPS.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Secure serving")]
pub struct SecureServingArgs {
    /// The address to serve on; 0.0.0.0 and :: stand for all.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", value_parser = address)]
    pub bind_address: IpAddr,

    /// The port of /healthz, /livez, /readyz, /metrics, /configz and /explain. 0 serves nothing.
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_SECURE_PORT, value_parser = whole(0..=u16::MAX))]
    pub secure_port: u16,

    /// Where the generated pair is kept when there is no --tls-cert-file, so that it outlives a restart; empty keeps it in memory.
    #[arg(long, value_name = "DIR", default_value = "")]
    pub cert_dir: String,

    /// Certificate to serve with, followed by those of its authorities, as PEM; read again when it changes. Without it a pair is
    /// generated and signed by itself.
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,

    /// The private key of --tls-cert-file, as PEM.
    #[arg(long, value_name = "FILE")]
    pub tls_private_key_file: Option<PathBuf>,

    /// A further pair, for clients that request a name it is made for, or one of NAMES (`*.example.com` too). May be repeated.
    #[arg(long, value_name = "CERT,KEY[:NAMES]")]
    pub tls_sni_cert_key: Vec<String>,

    /// VersionTLS12 (also when empty) or VersionTLS13. Older ones are refused: they are broken and no client needs them.
    #[arg(long, value_name = "VERSION", default_value = "")]
    pub tls_min_version: String,

    /// Cipher suites by their IANA names, for TLS 1.2; those of TLS 1.3 are always on. Empty: all that are considered safe.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tls_cipher_suites: Vec<String>,

    /// Key exchange groups by number: 29 (X25519), 23 (P-256), 24 (P-384), the preferred first. Empty: all of them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole(i32::MIN..=i32::MAX))]
    pub tls_curve_preferences: Vec<i32>,

    /// Serve HTTP/1.1 only.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub disable_http2_serving: bool,

    /// How many requests one HTTP/2 connection may have open; 0 takes the library's limit.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0..=u32::MAX))]
    pub http2_max_streams_per_connection: u32,

    /// Listen with SO_REUSEPORT, which allows several processes on one port.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub permit_port_sharing: bool,

    /// Serve /debug/flags/v, which changes the verbosity while the process runs. There is no /debug/pprof.
    #[arg(long, value_name = "BOOL", default_value = "true", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub profiling: bool,

    /// What the names of these flags begin with in messages: nothing, or `webhook-` for those of webhooks.
    #[arg(skip)]
    pub prefix: &'static str,
}

impl SecureServingArgs {
    /// What is wrong with them, files aside.
    pub fn mistakes(&self) -> Vec<String> {
        let prefix = self.prefix;
        let mut mistakes = crate::serving::tls::options::TlsOptions::new(self)
            .err()
            .unwrap_or_default();
        let pair = (&self.tls_cert_file, &self.tls_private_key_file);
        if pair.0.is_some() != pair.1.is_some() {
            mistakes.push(format!(
                "--{prefix}tls-cert-file and --{prefix}tls-private-key-file belong together; give both or none"
            ));
        }
        for pair in &self.tls_sni_cert_key {
            if !pair.contains(',') {
                mistakes.push(format!(
                    "--{prefix}tls-sni-cert-key={pair}: expected CERT,KEY or CERT,KEY:NAME,NAME"
                ));
            }
        }
        mistakes
    }
}

/// Flags about plain HTTP.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Serving on loopback")]
pub struct AdminArgs {
    /// Where the same pages are served over plain HTTP to this machine alone, for `cloudwit explain`; all programs of this machine
    /// can read them. Only loopback is accepted. Port 0 takes a free one; `off` serves nothing.
    #[arg(long, value_name = "IP:PORT", default_value = DEFAULT_ADMIN_ADDRESS, value_parser = AdminAddress::parse)]
    pub admin_address: AdminAddress,
}

/// Beside the secure port, and not among the ports that other parts of a control plane take (10248 to 10260).
pub const DEFAULT_ADMIN_ADDRESS: &str = "127.0.0.1:10268";

/// The value of `--admin-address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminAddress(pub Option<SocketAddr>);

impl AdminAddress {
    fn parse(text: &str) -> Result<Self, String> {
        if matches!(text, "" | "off") {
            return Ok(Self(None));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Self(Some(address))),
            Ok(_) => Err("it is not on loopback, and these pages need no authentication; give 127.0.0.1:PORT, or use --secure-port".into()),
            Err(_) => Err("it has to be IP:PORT on loopback, such as 127.0.0.1:10268, or off".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_served_on_loopback_only() {
        for good in ["127.0.0.1:0", "[::1]:80", "127.9.9.9:1"] {
            assert!(AdminAddress::parse(good).unwrap().0.is_some(), "{good}");
        }
        assert_eq!(AdminAddress::parse("off"), Ok(AdminAddress(None)));
        assert!(
            AdminAddress::parse("0.0.0.0:1")
                .unwrap_err()
                .contains("not on loopback")
        );
        assert!(AdminAddress::parse("nonsense").unwrap_err().contains("IP:PORT"));
    }
}
