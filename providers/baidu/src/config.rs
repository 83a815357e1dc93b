//! Cloud config: the JSON of Baidu's own controller (`cce-cloud-controller-manager`), with keys in whatever case as Go reads them.

use std::fmt;

pub(crate) use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::config::{Tree, parse_json};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

/// The secret of the grants: the secret access key.
pub const SECRET_KEY: &str = "secret-access-key";

/// All keys, as they are written.
const KEYS: [&str; 14] = [
    "AccessKeyID",
    "BccEndpoint",
    "BlbEndpoint",
    "ClusterId",
    "ClusterName",
    "Debug",
    "EipEndpoint",
    "Endpoint",
    "MasterId",
    "NodeName",
    "Region",
    "SecretAccessKey",
    "SubnetId",
    "VpcId",
];

/// The whole file.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Config {
    /// The user's access key. It is a part of each request, as a name is.
    #[serde(rename = "AccessKeyID")]
    pub access_key_id: Option<String>,
    /// `bj`, `gz` and so on.
    pub region: Option<String>,
    /// Id of the cluster: a part of the names of its load balancers and of the descriptions of its routes.
    pub cluster_id: Option<String>,
    /// The VPC of all machines.
    pub vpc_id: Option<String>,
    /// The subnet of load balancers; that of a machine without it.
    pub subnet_id: Option<String>,
    bcc_endpoint: Option<String>,
    blb_endpoint: Option<String>,
    eip_endpoint: Option<String>,
    secret_access_key: Option<String>,
    cluster_name: Option<String>,
    master_id: Option<String>,
    endpoint: Option<String>,
    node_name: Option<String>,
    debug: Option<bool>,
}

/// Values are not shown: one may be a secret.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Config")
    }
}

/// A product of the cloud, each with a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Machines; routes of the VPC are requested there too.
    Bcc,
    /// Load balancers.
    Blb,
    /// Public addresses.
    Eip,
}

impl Product {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bcc, Self::Blb, Self::Eip];

    /// First part of the host's name, and of the key with another one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bcc => "bcc",
            Self::Blb => "blb",
            Self::Eip => "eip",
        }
    }

    /// Methods that are used.
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Bcc => &["GET", "POST", "DELETE"],
            Self::Blb | Self::Eip => &["GET", "POST", "PUT", "DELETE"],
        }
    }
}

/// Reads JSON; keys in whatever case.
///
/// # Errors
/// What is wrong, with line and column.
pub fn parse(text: &str) -> Result<Tree, Problem> {
    let known = |key: String| match KEYS.iter().find(|known| known.eq_ignore_ascii_case(&key)) {
        Some(known) => (*known).to_owned(),
        None => key,
    };
    Ok(parse_json(text)?.map(|value| match value {
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (known(key), value)).collect(),
        other => other,
    }))
}

impl Config {
    /// Where a product is, without a slash at the end.
    pub fn endpoint(&self, product: Product) -> String {
        match given(self.written(product)) {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => {
                let region = given(&self.region).unwrap_or_default();
                format!("https://{}.{region}.baidubce.com", product.name())
            }
        }
    }

    fn written(&self, product: Product) -> &Option<String> {
        match product {
            Product::Bcc => &self.bcc_endpoint,
            Product::Blb => &self.blb_endpoint,
            Product::Eip => &self.eip_endpoint,
        }
    }

    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        for (key, value, example) in [
            ("AccessKeyID", &self.access_key_id, "the user's access key"),
            ("Region", &self.region, "the region of the machines, such as bj"),
            (
                "ClusterId",
                &self.cluster_id,
                "the id of the cluster, such as cce-8z8q9x1k",
            ),
            (
                "VpcId",
                &self.vpc_id,
                "the VPC of the machines, such as vpc-pxxxxxxxxxxx",
            ),
        ] {
            problems.needed(key, value, example);
        }
        if let Some(region) = given(&self.region).filter(|region| !region.bytes().all(|b| b.is_ascii_alphanumeric())) {
            problems.add("Region", format!("\"{region}\" is no region; they look like bj"));
        }
        for product in Product::ALL {
            let name = product.name();
            let is_of = |key: &&&str| key.to_ascii_lowercase() == format!("{name}endpoint");
            let key = KEYS.iter().find(is_of).unwrap_or(&name);
            problems.url(key, self.written(product), &format!("https://{name}.bj.baidubce.com"));
        }
        let secret = &self.secret_access_key;
        problems.no_secret("SecretAccessKey", secret, SECRET_KEY, SecretUse::Hmac);
        let unused = [
            ("ClusterName", given(&self.cluster_name).is_some()),
            ("MasterId", given(&self.master_id).is_some()),
            ("Endpoint", given(&self.endpoint).is_some()),
            ("NodeName", given(&self.node_name).is_some()),
            ("Debug", self.debug.is_some()),
        ];
        for (key, is_set) in unused {
            problems.no_effect(key, is_set, "machines are asked for at BCC, not at CCE");
        }
    }
}

#[cfg(test)]
mod tests;
