//! `[Credentials]` of the cloud config: where credentials come from.
//!
//! Upstream tries several places one after the other and takes the first that has something. That would need grants for all of them, so
//! here the operator names the one. Nothing secret is in the configuration: the names of the secrets are below.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;

use crate::api::endpoints::{Endpoints, Service};
use crate::config::{account_of, quoted};

/// Secret: the id of a static access key.
pub const ACCESS_KEY_ID: &str = "access-key-id";

/// Secret: the key that requests are signed with.
pub const SECRET_ACCESS_KEY: &str = "secret-access-key";

/// Secret: the session token that belongs to temporary static keys.
pub const SESSION_TOKEN: &str = "session-token";

/// Secret: the token of a service account that STS gives credentials for.
pub const WEB_IDENTITY_TOKEN: &str = "web-identity-token";

/// The instance metadata service (IMDS).
pub const METADATA_URL: &str = "http://169.254.169.254";

/// `[Credentials]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CredentialSettings {
    /// `Source`: `static`, `web-identity` or `instance-profile`; `static` when left out.
    pub source: String,
    /// `SessionToken`: whether static keys come with a session token.
    #[serde(rename = "sessiontoken")]
    pub session_token: bool,
    /// `WebIdentityRoleARN`: the role that the web identity may take on.
    #[serde(rename = "webidentityrolearn")]
    pub web_identity_role_arn: String,
    /// `RoleSessionName`: how the sessions are called in AWS's logs; `cloudwit` when left out.
    #[serde(rename = "rolesessionname")]
    pub role_session_name: String,
    /// `MetadataURL`, when it is another than AWS's.
    #[serde(rename = "metadataurl")]
    pub metadata_url: String,
}

/// Where credentials come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Keys that the operator gives as secrets.
    Static,
    /// A token of the cluster, against which STS gives credentials.
    WebIdentity,
    /// The role of the instance that Cloudwit runs on.
    InstanceProfile,
}

impl CredentialSettings {
    /// The chosen source; static for anything unknown, which validation refuses.
    pub fn source(&self) -> Source {
        match self.source.as_str() {
            "web-identity" => Source::WebIdentity,
            "instance-profile" => Source::InstanceProfile,
            _ => Source::Static,
        }
    }

    /// The name for sessions.
    pub fn session_name(&self) -> &str {
        if self.role_session_name.is_empty() {
            "cloudwit"
        } else {
            &self.role_session_name
        }
    }

    /// Base URL of the metadata service.
    pub fn metadata(&self) -> &str {
        if self.metadata_url.is_empty() {
            METADATA_URL
        } else {
            self.metadata_url.trim_end_matches('/')
        }
    }

    pub(crate) fn validate(&self, takes_role: bool, problems: &mut Problems) {
        if !matches!(
            self.source.as_str(),
            "" | "static" | "web-identity" | "instance-profile"
        ) {
            let advice = "is no source of credentials; write static, web-identity or instance-profile";
            problems.add("credentials.source", quoted(&self.source, advice));
        }
        let web = self.source() == Source::WebIdentity;
        let role = &self.web_identity_role_arn;
        if web && role.is_empty() {
            let message = "is missing; write the role's ARN (AWS_ROLE_ARN in Pods of EKS)";
            problems.add("credentials.webidentityrolearn", message);
        } else if !role.is_empty() && account_of(role).is_none() {
            let message = quoted(role, "is no ARN; write it like arn:aws:iam::123456789012:role/cloudwit");
            problems.add("credentials.webidentityrolearn", message);
        }
        if self.session_token && self.source() != Source::Static {
            let message = "only static keys have a session token of yours; leave it out";
            problems.add("credentials.sessiontoken", message);
        }
        let name = &self.role_session_name;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_=,.@-".contains(&byte);
        let proper = (2..=64).contains(&name.len()) && name.bytes().all(allowed);
        if !name.is_empty() && !proper {
            let advice = "is no session name; 2 to 64 letters, digits and _=,.@- are allowed";
            problems.add("credentials.rolesessionname", quoted(name, advice));
        } else if !name.is_empty() && !web && !takes_role {
            let message = "has no effect when no role is taken on; leave it out";
            problems.add("credentials.rolesessionname", message);
        }
        if !self.metadata_url.is_empty() && !is_url(&self.metadata_url) {
            let message = quoted(&self.metadata_url, "is no URL; leave it out for AWS's own");
            problems.add("credentials.metadataurl", message);
        }
    }

    /// The secrets that the chosen source needs.
    pub(crate) fn secrets(&self, endpoints: &Endpoints) -> Vec<SecretWish> {
        match self.source() {
            Source::Static => {
                let id = "id of the access key, written into requests";
                let mut secrets = vec![
                    SecretWish::new(ACCESS_KEY_ID, &[SecretUse::Placeholder], id),
                    SecretWish::new(
                        SECRET_ACCESS_KEY,
                        &[SecretUse::Hmac],
                        "the access key; the host signs with it",
                    ),
                ];
                if self.session_token {
                    let reason = "token of temporary keys; it is part of what is signed";
                    secrets.push(SecretWish::new(SESSION_TOKEN, &[SecretUse::Reveal], reason));
                }
                secrets
            }
            Source::WebIdentity => {
                let reason = "token of the service account, sent to STS only";
                let sts = HttpWish::for_url(&endpoints.of(Service::Sts).url, &["POST"], "");
                vec![SecretWish::new(WEB_IDENTITY_TOKEN, &[SecretUse::Placeholder], reason).only_to(&sts)]
            }
            Source::InstanceProfile => Vec::new(),
        }
    }
}
