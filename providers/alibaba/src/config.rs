//! Cloud config: the JSON of upstream's controller, `{"Global": {...}}`, and a few keys of Cloudwit's own.

use std::fmt;

use cloudwit_guest_sdk::config::{given, given_list};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::is_plain_id;
use data_encoding::BASE64;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api::{ECS, NLB, Product, SLB, VPC};

/// The secret of the grants: the access key's secret.
pub const SECRET: &str = "access-key-secret";

/// The cluster's id where the operator gives none, as upstream has it: it is in the names of all that was made.
const CLUSTER_ID: &str = "clusterid";

/// The instance metadata service.
const METADATA: &str = "http://100.100.100.200";

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// All of it.
    #[serde(rename = "Global")]
    pub global: Global,
}

/// How requests are signed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum SignatureKind {
    /// Version 3, in a header.
    #[default]
    #[serde(rename = "ACS3-HMAC-SHA256")]
    Acs3,
    /// Version 1, in a parameter: for private clouds without another one.
    #[serde(rename = "HMAC-SHA1")]
    Rpc,
}

/// URLs of the APIs, where they are not the region's own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// Instances.
    pub ecs: Option<String>,
    /// Network Load Balancers.
    pub nlb: Option<String>,
    /// Classic Load Balancers.
    pub slb: Option<String>,
    /// Routes.
    pub vpc: Option<String>,
}

/// `Global`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Global {
    #[serde(rename = "accessKeyID")]
    access_key_id: Option<String>,
    access_key_secret: Option<String>,
    #[serde(rename = "clusterID")]
    cluster_id: Option<String>,
    /// No load balancer gets a public address.
    #[serde(rename = "disablePublicSLB")]
    pub disable_public_slb: bool,
    /// URLs of the APIs.
    pub endpoints: Endpoints,
    feature_gates: Option<IgnoredAny>,
    kubernetes_cluster_tag: Option<IgnoredAny>,
    metadata: Option<String>,
    node_addr_sync_period: Option<IgnoredAny>,
    node_max_concurrent_reconciles: Option<IgnoredAny>,
    node_monitor_period: Option<IgnoredAny>,
    private_zone_id: Option<IgnoredAny>,
    #[serde(rename = "privateZoneRecordTTL")]
    private_zone_record_ttl: Option<IgnoredAny>,
    region: Option<String>,
    #[serde(rename = "resourceGroupID")]
    pub(crate) resource_group_id: Option<String>,
    pub(crate) role: Option<String>,
    route_max_concurrent_reconciles: Option<IgnoredAny>,
    #[serde(rename = "routeTableIDs")]
    route_table_ids: Option<String>,
    service_backend_type: Option<String>,
    service_max_concurrent_reconciles: Option<IgnoredAny>,
    /// How requests are signed.
    pub signature: SignatureKind,
    uid: Option<IgnoredAny>,
    pub(crate) vpcid: Option<String>,
    vswitchid: Option<String>,
    pub(crate) zoneid: Option<String>,
}

/// Values are not shown: one may be a secret.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

/// A vswitch, and its zone where it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VSwitch<'a> {
    /// Id.
    pub id: &'a str,
    /// Zone.
    pub zone: Option<&'a str>,
}

impl Global {
    /// The region; empty when the configuration is wrong.
    pub fn region(&self) -> &str {
        given(&self.region).unwrap_or_default()
    }

    /// The access key's id, which files of upstream have in Base64; none for those of the machine's role.
    pub fn access_key_id(&self) -> Option<String> {
        let text = given(&self.access_key_id)?;
        let decoded = BASE64.decode(text.as_bytes()).ok();
        let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let is_key = |text: &String| text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_graphic());
        Some(decoded.filter(is_key).unwrap_or_else(|| text.to_owned()))
    }

    /// Where the machine's role is requested.
    pub fn metadata(&self) -> &str {
        given(&self.metadata).unwrap_or(METADATA)
    }

    /// The cluster's id, which is in names and tags.
    pub fn cluster_id(&self) -> &str {
        given(&self.cluster_id).unwrap_or(CLUSTER_ID)
    }

    /// The VPC.
    ///
    /// # Errors
    /// `failed-precondition` when the configuration has none.
    pub fn vpc(&self) -> Result<&str, Failure> {
        given(&self.vpcid).ok_or_else(|| {
            Failure::failed_precondition("the cloud config has no vpcid; write the id of the cluster's VPC")
        })
    }

    /// Vswitches: `vsw-1`, `:vsw-1` or `zone:vsw-1`, with commas between.
    pub fn vswitches(&self) -> Vec<VSwitch<'_>> {
        let vswitches = given_list(&self.vswitchid).filter_map(|entry| {
            let (zone, id) = entry.rsplit_once(':').unwrap_or(("", entry));
            let zone = Some(zone.trim_matches(':')).filter(|zone| !zone.is_empty());
            (!id.is_empty()).then_some(VSwitch { id, zone })
        });
        vswitches.collect()
    }

    /// Route tables; those of the VPC where none are given.
    pub fn route_tables(&self) -> Vec<&str> {
        given_list(&self.route_table_ids).collect()
    }

    /// The APIs: their own URLs, and what they are for.
    fn apis(&self) -> [(Product, &Option<String>, &'static str); 4] {
        let own = &self.endpoints;
        [
            (ECS, &own.ecs, "instances"),
            (SLB, &own.slb, "Classic Load Balancers"),
            (NLB, &own.nlb, "Network Load Balancers"),
            (VPC, &own.vpc, "routes"),
        ]
    }

    /// URL of an API, without a slash at the end.
    pub fn endpoint(&self, product: Product) -> String {
        let own = self.apis().into_iter().find(|(known, ..)| *known == product);
        match own.and_then(|(_, own, _)| given(own)) {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("https://{}.{}.aliyuncs.com", product.name, self.region()),
        }
    }

    /// Where requests go.
    pub fn wishes(&self) -> Vec<HttpWish> {
        if self.region().is_empty() {
            return Vec::new();
        }
        let apis = self.apis().into_iter();
        let mut wishes: Vec<HttpWish> = apis
            .filter_map(|(product, _, reason)| HttpWish::for_url(&self.endpoint(product), &["POST"], reason))
            .collect();
        if self.access_key_id().is_none() {
            let reason = "credentials of the machine's role";
            wishes.extend(HttpWish::for_url(self.metadata(), &["GET", "PUT"], reason));
        }
        wishes
    }

    /// The access key's secret, if there is such a key.
    pub fn secrets(&self) -> Option<SecretWish> {
        let reason = "the access key's secret, by which the host signs requests";
        self.access_key_id()
            .map(|_| SecretWish::new(SECRET, &[SecretUse::Hmac], reason))
    }

    /// What types cannot express.
    pub fn validate(&self, problems: &mut Problems) {
        let example = "the region, such as cn-hangzhou";
        match problems.needed("Global.region", &self.region, example) {
            Some(region) if !is_plain_id(region) => {
                let text = format!("\"{region}\" is no region; write it like cn-hangzhou");
                problems.add("Global.region", text);
            }
            _ => {}
        }
        for (product, url, _) in self.apis() {
            let at = format!("Global.endpoints.{}", product.name);
            problems.url(&at, url, "https://ecs.example.com");
        }
        problems.url("Global.metadata", &self.metadata, METADATA);
        problems.no_secret(
            "Global.accessKeySecret",
            &self.access_key_secret,
            SECRET,
            SecretUse::Hmac,
        );
        if given(&self.service_backend_type).is_some_and(|kind| !kind.eq_ignore_ascii_case("ecs")) {
            problems.add(
                "Global.serviceBackendType",
                "only ecs is there: load balancers send to Nodes; remove this key",
            );
        }
        if given(&self.cluster_id).is_none() {
            let text = format!(
                "without it names and tags have \"{CLUSTER_ID}\", as upstream has it: two clusters of one account must not share a load balancer then"
            );
            problems.warn("Global.clusterID", text);
        }
        const FLAGS: &str = "there are flags of the controller for it";
        const NONE: &str = "nothing here needs it";
        for (key, value, why) in [
            ("featureGates", &self.feature_gates, NONE),
            ("kubernetesClusterTag", &self.kubernetes_cluster_tag, NONE),
            ("nodeAddrSyncPeriod", &self.node_addr_sync_period, FLAGS),
            (
                "nodeMaxConcurrentReconciles",
                &self.node_max_concurrent_reconciles,
                FLAGS,
            ),
            ("nodeMonitorPeriod", &self.node_monitor_period, FLAGS),
            ("privateZoneId", &self.private_zone_id, "there is no PrivateZone here"),
            ("privateZoneRecordTTL", &self.private_zone_record_ttl, FLAGS),
            (
                "routeMaxConcurrentReconciles",
                &self.route_max_concurrent_reconciles,
                FLAGS,
            ),
            (
                "serviceMaxConcurrentReconciles",
                &self.service_max_concurrent_reconciles,
                FLAGS,
            ),
            ("uid", &self.uid, NONE),
        ] {
            problems.no_effect(&format!("Global.{key}"), value.is_some(), why);
        }
    }
}

#[cfg(test)]
mod tests;
