//! Flags of delegated authentication and authorization.

use std::path::PathBuf;

use crate::flags::values::duration::GoDuration;
use crate::flags::values::go::{boolean, entries};

/// Flags about authentication.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationArgs {
    /// Kubeconfig for TokenReviews. Without it the service account of the Pod; where there is none either, tokens are not accepted.
    #[arg(long, value_name = "FILE")]
    pub authentication_kubeconfig: Option<PathBuf>,

    /// Do not read the cluster's client authorities from kube-system/extension-apiserver-authentication.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub authentication_skip_lookup: bool,

    /// Start even if they cannot be read; client certificates are not accepted until they can.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub authentication_tolerate_lookup_failure: bool,

    /// How long the answer to a token is cached.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub authentication_token_webhook_cache_ttl: GoDuration,

    /// Authorities of client certificates, as PEM; read again when it changes. Without it the cluster's.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,

    /// Authorities of the front proxy that authenticates users, as PEM; read again when it changes. Without it the cluster's.
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// Common names of the front proxy; empty: any that its authority signed.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub requestheader_allowed_names: Vec<String>,

    /// Headers with the user's name.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-user")]
    pub requestheader_username_headers: Vec<String>,

    /// Headers with the user's groups.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-group")]
    pub requestheader_group_headers: Vec<String>,

    /// Headers with the user's id.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub requestheader_uid_headers: Vec<String>,

    /// Beginnings of headers with further facts about the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "x-remote-extra-")]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

/// Flags about authorization.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Authorization")]
pub struct AuthorizationArgs {
    /// Kubeconfig for SubjectAccessReviews. Without it the service account of the Pod; where there is none either, only the paths
    /// that are always allowed are served, and all to members of system:masters.
    #[arg(long, value_name = "FILE")]
    pub authorization_kubeconfig: Option<PathBuf>,

    /// Paths served without authentication; one that ends in * stands for all that begin so.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "/healthz,/readyz,/livez"
    )]
    pub authorization_always_allow_paths: Vec<String>,

    /// How long an allowed answer is cached.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub authorization_webhook_cache_authorized_ttl: GoDuration,

    /// How long a denied answer is cached.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub authorization_webhook_cache_unauthorized_ttl: GoDuration,
}

impl AuthorizationArgs {
    /// What is wrong with them.
    pub fn mistakes(&self) -> Vec<String> {
        entries(&self.authorization_always_allow_paths)
            .iter()
            .filter(|path| path.trim_end_matches('*').contains('*') || path.ends_with("**"))
            .map(|path| {
                format!("--authorization-always-allow-paths: {path:?} has a * that is not its end; write for example /healthz*")
            })
            .collect()
    }
}
