//! Cloud config: the JSON of upstream's controller, `{"Global": {...}}`, and a few keys of our own.

use std::fmt;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::is_url;
use data_encoding::BASE64;
use serde::Deserialize;

use crate::api::{ECS, NLB, Product, SLB, VPC};

/// The secret of the grants: the access key's secret.
pub const SECRET: &str = "access-key-secret";

/// The cluster's id where the operator gives none, as upstream has it: it is in the names of all that was made.
const CLUSTER_ID: &str = "clusterid";

/// Where an instance learns about itself.
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
    /// Version 1, in a parameter: for private clouds that know no other.
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
    feature_gates: Option<String>,
    kubernetes_cluster_tag: Option<String>,
    metadata: Option<String>,
    node_addr_sync_period: Option<i64>,
    node_max_concurrent_reconciles: Option<i64>,
    node_monitor_period: Option<i64>,
    private_zone_id: Option<String>,
    #[serde(rename = "privateZoneRecordTTL")]
    private_zone_record_ttl: Option<i64>,
    region: Option<String>,
    #[serde(rename = "resourceGroupID")]
    resource_group_id: Option<String>,
    role: Option<String>,
    route_max_concurrent_reconciles: Option<i64>,
    #[serde(rename = "routeTableIDs")]
    route_table_ids: Option<String>,
    service_backend_type: Option<String>,
    service_max_concurrent_reconciles: Option<i64>,
    /// How requests are signed.
    pub signature: SignatureKind,
    uid: Option<String>,
    vpcid: Option<String>,
    vswitchid: Option<String>,
    zoneid: Option<String>,
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

    /// Where the machine's role is asked for.
    pub fn metadata(&self) -> &str {
        given(&self.metadata).unwrap_or(METADATA)
    }

    /// The machine's role; the metadata service tells it where it is not given.
    pub fn role(&self) -> Option<&str> {
        given(&self.role)
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

    /// The VPC, if it is given.
    pub fn known_vpc(&self) -> Option<&str> {
        given(&self.vpcid)
    }

    /// Vswitches: `vsw-1`, `:vsw-1` or `zone:vsw-1`, with commas between.
    pub fn vswitches(&self) -> Vec<VSwitch<'_>> {
        let entries = given(&self.vswitchid)
            .unwrap_or_default()
            .split(',')
            .map(str::trim_ascii);
        let entry = |entry: &'_ str| -> Option<(usize, usize)> {
            let start = entry.rfind(':').map_or(0, |at| at + 1);
            (start < entry.len()).then_some((start, entry.len()))
        };
        entries
            .filter_map(|text| {
                let (start, end) = entry(text)?;
                let zone = text.get(..start)?.trim_matches(':');
                Some(VSwitch {
                    id: text.get(start..end)?,
                    zone: (!zone.is_empty()).then_some(zone),
                })
            })
            .collect()
    }

    /// The zone of vswitches that come without.
    pub fn zone(&self) -> Option<&str> {
        given(&self.zoneid)
    }

    /// Resource group of new load balancers.
    pub fn resource_group(&self) -> Option<&str> {
        given(&self.resource_group_id)
    }

    /// Route tables; those of the VPC where none are given.
    pub fn route_tables(&self) -> Vec<&str> {
        let ids = given(&self.route_table_ids).unwrap_or_default().split(',');
        ids.map(str::trim_ascii).filter(|id| !id.is_empty()).collect()
    }

    /// URL of an API, without a slash at the end.
    pub fn endpoint(&self, product: Product) -> String {
        let own = match product.name {
            "ecs" => &self.endpoints.ecs,
            "nlb" => &self.endpoints.nlb,
            "slb" => &self.endpoints.slb,
            _ => &self.endpoints.vpc,
        };
        match given(own) {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("https://{}.{}.aliyuncs.com", product.name, self.region()),
        }
    }

    /// Where requests go.
    pub fn wishes(&self) -> Vec<HttpWish> {
        let mut wishes = Vec::new();
        let reasons = [
            (ECS, "instances"),
            (SLB, "Classic Load Balancers"),
            (NLB, "Network Load Balancers"),
            (VPC, "routes"),
        ];
        for (product, reason) in reasons.into_iter().filter(|_| !self.region().is_empty()) {
            wishes.extend(HttpWish::for_url(&self.endpoint(product), &["POST"], reason));
        }
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
        let region = self.region();
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if region.is_empty() {
            problems.add(
                "Global.region",
                "this key is missing; write the region, such as cn-hangzhou",
            );
        } else if !plain(region) {
            problems.add(
                "Global.region",
                format!("\"{region}\" is no region; write it like cn-hangzhou"),
            );
        }
        let urls = [
            ("endpoints.ecs", &self.endpoints.ecs),
            ("endpoints.nlb", &self.endpoints.nlb),
            ("endpoints.slb", &self.endpoints.slb),
            ("endpoints.vpc", &self.endpoints.vpc),
            ("metadata", &self.metadata),
        ];
        for (key, url) in urls {
            if let Some(url) = given(url).filter(|url| !is_url(url)) {
                problems.add(
                    format!("Global.{key}"),
                    format!("\"{url}\" is no URL; write it like https://ecs.example.com"),
                );
            }
        }
        if given(&self.access_key_secret).is_some() {
            problems.add(
                "Global.accessKeySecret",
                format!(
                    "the host signs with it: write it (decoded, where it is in Base64) into a file that is granted as the secret {SECRET} with uses: \
                     [hmac], and remove this key"
                ),
            );
        }
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
        self.warn_of_what_has_no_effect(problems);
    }

    fn warn_of_what_has_no_effect(&self, problems: &mut Problems) {
        const NONE: &str = "has no effect here";
        const FLAGS: &str = "has no effect here: there are flags of the controller for it";
        let texts = [
            ("uid", &self.uid, NONE),
            ("kubernetesClusterTag", &self.kubernetes_cluster_tag, NONE),
            (
                "privateZoneId",
                &self.private_zone_id,
                "has no effect: there is no PrivateZone here",
            ),
            ("featureGates", &self.feature_gates, NONE),
        ];
        let numbers = [
            ("nodeAddrSyncPeriod", self.node_addr_sync_period),
            ("nodeMaxConcurrentReconciles", self.node_max_concurrent_reconciles),
            ("nodeMonitorPeriod", self.node_monitor_period),
            ("privateZoneRecordTTL", self.private_zone_record_ttl),
            ("routeMaxConcurrentReconciles", self.route_max_concurrent_reconciles),
            ("serviceMaxConcurrentReconciles", self.service_max_concurrent_reconciles),
        ];
        for (key, _, text) in texts.into_iter().filter(|(_, value, _)| given(value).is_some()) {
            problems.warn(format!("Global.{key}"), text);
        }
        for (key, _) in numbers.into_iter().filter(|(_, value)| value.is_some()) {
            problems.warn(format!("Global.{key}"), FLAGS);
        }
    }
}

#[cfg(test)]
mod tests;
