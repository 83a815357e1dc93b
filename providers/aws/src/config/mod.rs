//! The cloud config: the gcfg file of upstream's controller, or the same keys as JSON, and one section of Cloudwit's own.
//!
//! ```text
//!   [Global]                         upstream's; every key is honoured or refused in one sentence (README.md has the table)
//!   [ServiceOverride "1"]            upstream's: where a service is reached and how requests to it are signed
//!   [Credentials]                    ours: which of the sources of credentials is used (upstream tries one after the other, see `auth`)
//! ```
//!
//! Where requests go follows from this file alone, so that the grants can be written down before the first start: the region has to
//! be in it. The clusters' machines' metadata (IMDS) is never requested.

pub mod credentials;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::api::endpoints::Endpoints;
use crate::config::credentials::CredentialSettings;

/// Everything the operator configures. Names of sections and keys are read in any case.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[Global]`.
    pub global: Global,
    /// `[ServiceOverride "NAME"]`, by name.
    #[serde(rename = "serviceoverride")]
    pub service_overrides: BTreeMap<String, ServiceOverride>,
    /// `[Credentials]`.
    pub credentials: CredentialSettings,
}

/// `[Global]` of upstream's `pkg/providers/v1/config/config.go`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Global {
    /// `Zone`: an availability zone; only its region counts.
    pub zone: String,
    /// `Region`, such as `eu-central-1`.
    pub region: String,
    /// `VPC`: id of the cluster's VPC. When left out it is read from the cluster's instances.
    pub vpc: String,
    /// `SubnetID`: a subnet of the VPC for load balancers when none is tagged.
    #[serde(rename = "subnetid")]
    pub subnet_id: String,
    /// `RouteTableID`: the table for Pod routes; else the one with the cluster's tag.
    #[serde(rename = "routetableid")]
    pub route_table_id: String,
    /// `RoleARN`: the role to take on for all calls.
    #[serde(rename = "rolearn")]
    pub role_arn: String,
    /// `SourceARN`: on whose behalf the role is taken on, against the confused deputy.
    #[serde(rename = "sourcearn")]
    pub source_arn: String,
    /// `KubernetesClusterTag`: the cluster's id where it uses the legacy tag `KubernetesCluster`.
    #[serde(rename = "kubernetesclustertag")]
    pub kubernetes_cluster_tag: String,
    /// `KubernetesClusterID`: the cluster's id; `--cluster-name` when neither is given.
    #[serde(rename = "kubernetesclusterid")]
    pub kubernetes_cluster_id: String,
    /// `DisableSecurityGroupIngress`: never touch the security groups of the nodes.
    #[serde(rename = "disablesecuritygroupingress")]
    pub disable_security_group_ingress: bool,
    /// `ElbSecurityGroup`: this group for all classic load balancers instead of one for each.
    #[serde(rename = "elbsecuritygroup")]
    pub elb_security_group: String,
    /// `NodeIPFamilies`, repeatable: which addresses Nodes get, and in which order.
    #[serde(rename = "nodeipfamilies")]
    pub node_ip_families: Vec<String>,
    /// `ClusterServiceLoadBalancerHealthProbeMode`: `ServiceNodePort` or `Shared`.
    #[serde(rename = "clusterserviceloadbalancerhealthprobemode")]
    pub health_probe_mode: String,
    /// `ClusterServiceSharedLoadBalancerHealthProbePort`; 10256 when left out.
    #[serde(rename = "clusterservicesharedloadbalancerhealthprobeport")]
    pub shared_health_probe_port: Option<u16>,
    /// `ClusterServiceSharedLoadBalancerHealthProbePath`; `/healthz` when left out.
    #[serde(rename = "clusterservicesharedloadbalancerhealthprobepath")]
    pub shared_health_probe_path: String,
    /// `SupportedTopologyInstanceTypePattern`; only upstream's default is taken.
    #[serde(rename = "supportedtopologyinstancetypepattern")]
    pub supported_topology_instance_type_pattern: String,
    /// `NLBSecurityGroupMode`: `Managed` or empty.
    #[serde(rename = "nlbsecuritygroupmode")]
    pub nlb_security_group_mode: String,
}

/// One `[ServiceOverride]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ServiceOverride {
    /// `Service`: the AWS SDK's name of it, such as `EC2` or `Elastic Load Balancing v2`.
    pub service: String,
    /// `Region` it counts for.
    pub region: String,
    /// `URL` of the endpoint.
    pub url: String,
    /// `SigningRegion`.
    #[serde(rename = "signingregion")]
    pub signing_region: String,
    /// `SigningMethod`: `v4` or empty.
    #[serde(rename = "signingmethod")]
    pub signing_method: String,
    /// `SigningName`: the service's name in signatures, when it is another than usual.
    #[serde(rename = "signingname")]
    pub signing_name: String,
}

/// An address family of Nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
}

impl Config {
    /// Reads gcfg or JSON; keys in any case.
    ///
    /// # Errors
    /// Where the text is malformed.
    pub fn parse(text: &str) -> Result<Tree, Problem> {
        parse_any(text).map(|tree| tree.map(lower_keys))
    }

    /// The region all requests go to: that of `Zone`, else `Region`. Never empty after validation.
    pub fn region(&self) -> &str {
        region_of_zone(&self.global.zone).unwrap_or(&self.global.region)
    }

    /// The address families of Nodes, in order; IPv4 when none is configured.
    pub fn families(&self) -> Vec<Family> {
        let read = |name: &String| if name == "ipv6" { Family::Ipv6 } else { Family::Ipv4 };
        match self.global.node_ip_families.as_slice() {
            [] => vec![Family::Ipv4],
            names => names.iter().map(read).collect(),
        }
    }

    /// All mistakes that types do not show.
    pub fn validate(&self, problems: &mut Problems) {
        self.global.validate(problems);
        Endpoints::validate(self, problems);
        self.credentials.validate(!self.global.role_arn.is_empty(), problems);
    }
}

impl Global {
    fn validate(&self, problems: &mut Problems) {
        self.validate_place(problems);
        self.validate_cluster(problems);
        self.validate_choices(problems);
    }

    fn validate_place(&self, problems: &mut Problems) {
        let of_zone = region_of_zone(&self.zone);
        if !self.zone.is_empty() && of_zone.is_none() {
            let message = quoted(&self.zone, "is no zone; write one like eu-central-1a, or only Region");
            problems.add("global.zone", message);
        } else if self.zone.is_empty() && self.region.is_empty() {
            problems.add(
                "global.region",
                "is missing; write Region = eu-central-1 (or your own) below [Global]: where requests go follows from it",
            );
        }
        if !self.region.is_empty() && region_of_zone(&self.region) != Some(&self.region) {
            problems.add(
                "global.region",
                quoted(&self.region, "is no region; write one like eu-central-1"),
            );
        }
        if let Some(of_zone) = of_zone
            && !self.region.is_empty()
            && of_zone != self.region
        {
            let message = quoted(
                &self.region,
                "is another region than that of Zone; leave one of the two out",
            );
            problems.add("global.region", message);
        }
        let ids = [
            ("vpc", &self.vpc, "vpc-"),
            ("subnetid", &self.subnet_id, "subnet-"),
            ("routetableid", &self.route_table_id, "rtb-"),
            ("elbsecuritygroup", &self.elb_security_group, "sg-"),
        ];
        for (key, id, prefix) in ids {
            if !id.is_empty() && !id.starts_with(prefix) {
                let advice = format!("is no id of this kind; it begins with {prefix}");
                problems.add(format!("global.{key}"), quoted(id, &advice));
            }
        }
    }

    fn validate_cluster(&self, problems: &mut Problems) {
        let (tag, id) = (&self.kubernetes_cluster_tag, &self.kubernetes_cluster_id);
        if !tag.is_empty() && !id.is_empty() && tag != id {
            let message = quoted(
                tag,
                "is another cluster than KubernetesClusterID says; leave one of the two out",
            );
            problems.add("global.kubernetesclustertag", message);
        }
        for (key, arn) in [("rolearn", &self.role_arn), ("sourcearn", &self.source_arn)] {
            if !arn.is_empty() && account_of(arn).is_none() {
                let message = quoted(arn, "is no ARN; write it like arn:aws:iam::123456789012:role/cloudwit");
                problems.add(format!("global.{key}"), message);
            }
        }
        if !self.source_arn.is_empty() && self.role_arn.is_empty() {
            let message = "has no effect without RoleARN; write that too, or leave SourceARN out";
            problems.add("global.sourcearn", message);
        }
    }

    fn validate_choices(&self, problems: &mut Problems) {
        for family in &self.node_ip_families {
            if family != "ipv4" && family != "ipv6" {
                let message = quoted(family, "is no address family; write ipv4 or ipv6, one in a line");
                problems.add("global.nodeipfamilies", message);
            }
        }
        if !matches!(self.health_probe_mode.as_str(), "" | "ServiceNodePort" | "Shared") {
            let message = quoted(&self.health_probe_mode, "is no mode; write ServiceNodePort or Shared");
            problems.add("global.clusterserviceloadbalancerhealthprobemode", message);
        }
        if self.shared_health_probe_port == Some(0) {
            let message = "0 is no port; write one from 1 to 65535, or leave it out for 10256";
            problems.add("global.clusterservicesharedloadbalancerhealthprobeport", message);
        }
        let path = &self.shared_health_probe_path;
        if !path.is_empty() && !path.starts_with('/') {
            let message = quoted(path, "is no path; begin it with /");
            problems.add("global.clusterservicesharedloadbalancerhealthprobepath", message);
        }
        let pattern = &self.supported_topology_instance_type_pattern;
        if !pattern.is_empty() && pattern != crate::instances::topology::REQUIRED_TYPES {
            let message = quoted(
                pattern,
                "cannot be used: only upstream's own pattern is built in (hpc, trn and p instances); leave the key out",
            );
            problems.add("global.supportedtopologyinstancetypepattern", message);
        }
        if !matches!(self.nlb_security_group_mode.as_str(), "" | "Managed") {
            let message = quoted(
                &self.nlb_security_group_mode,
                "is no mode; write Managed, or leave the key out",
            );
            problems.add("global.nlbsecuritygroupmode", message);
        }
    }
}

/// `"VALUE" is wrong`.
pub(crate) fn quoted(value: &str, wrong: &str) -> String {
    format!("\"{value}\" {wrong}")
}

/// The region a zone lies in: groups of letters, each with a dash, and a number (upstream's `azToRegion`). Local zones
/// (`us-west-2-lax-1a`) lie in the region they begin with.
fn region_of_zone(zone: &str) -> Option<&str> {
    let first_digit = zone.find(|c: char| c.is_ascii_digit())?;
    let (letters, rest) = zone.split_at(first_digit);
    let groups = letters.strip_suffix('-')?.split('-');
    let proper = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_alphabetic());
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    groups
        .into_iter()
        .all(proper)
        .then(|| zone.get(..first_digit + digits))?
}

/// The account in an ARN, `arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE`; none when it is no ARN.
pub(crate) fn account_of(arn: &str) -> Option<&str> {
    let mut parts = arn.splitn(6, ':');
    if parts.next() != Some("arn") {
        return None;
    }
    let account = parts.nth(3)?;
    parts.next().filter(|resource| !resource.is_empty())?;
    Some(account)
}

fn lower_keys(value: Value) -> Value {
    match value {
        Value::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| (key.to_ascii_lowercase(), lower_keys(value)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests;
