//! A Network Load Balancer: how the cloud shows it, and how one should be. Types and readers; what to do about a difference is in
//! [`crate::balancers::network::plan`], its target groups are in [`crate::balancers::network::target_groups`].

pub mod apply;
pub mod plan;
pub mod ports;
pub mod target_groups;

use cloudwit_guest_sdk::keys::Keys;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::balancers::annotations::settings::Settings;
use crate::balancers::classic::plan::on;
use crate::balancers::classic::texts;
use crate::balancers::network::target_groups::{GroupWanted, wanted};
use crate::config::Config;

/// A port as it should be: its listener and the target group it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Where clients connect.
    pub port: u16,
    /// `TCP`, `UDP` or `TLS`.
    pub protocol: &'static str,
    /// ARN of the certificate, for `TLS`.
    pub certificate: Option<String>,
    /// The cloud's TLS policy; none for its own choice.
    pub tls_policy: Option<String>,
    /// Where traffic goes.
    pub group: GroupWanted,
}

/// A load balancer as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Not on the Internet.
    pub internal: bool,
    /// Ports.
    pub ports: Vec<Port>,
    /// Attributes that are kept in line.
    pub attributes: Vec<Pair>,
    /// Attributes of all target groups; empty where none are requested.
    pub target_attributes: Vec<Pair>,
    /// Tags that have to be there; others may.
    pub tags: Vec<Pair>,
}

impl Wanted {
    /// What the Service requests.
    pub fn of(
        keys: Keys,
        cluster: &str,
        service: &Service,
        settings: &Settings,
        config: &Config,
        tags: Vec<Pair>,
    ) -> Self {
        let port = |port: &ServicePort| {
            let tls = port.protocol == Protocol::Tcp && settings.speaks_tls(port);
            Some(Port {
                port: port.port,
                protocol: match port.protocol {
                    Protocol::Udp => "UDP",
                    _ if tls => "TLS",
                    _ => "TCP",
                },
                certificate: settings.certificate.clone().filter(|_| tls),
                tls_policy: settings.tls_policy.clone().filter(|_| tls),
                group: wanted(keys, cluster, service, port, settings, config)?,
            })
        };
        Self {
            name: cloudwit_guest_sdk::names::default_load_balancer_name(&service.uid),
            internal: settings.internal,
            ports: service.ports.iter().filter_map(port).collect(),
            attributes: attributes(settings),
            target_attributes: settings.target_attributes.clone(),
            tags,
        }
    }
}

fn attributes(settings: &Settings) -> Vec<Pair> {
    let logs = &settings.access_log;
    let mut wanted = vec![
        Pair::new("load_balancing.cross_zone.enabled", on(settings.cross_zone)),
        Pair::new("access_logs.s3.enabled", on(logs.enabled)),
    ];
    // The cloud refuses an empty bucket.
    if logs.enabled {
        wanted.push(Pair::new("access_logs.s3.bucket", &logs.bucket));
        wanted.push(Pair::new("access_logs.s3.prefix", &logs.prefix));
    }
    wanted
}

/// A load balancer as the cloud shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub arn: String,
    /// Where it is reached.
    pub dns_name: String,
    /// `active`, `provisioning`, `failed`.
    pub state: String,
    /// `network`, or what else has its name.
    pub kind: String,
    /// Not on the Internet.
    pub internal: bool,
    /// Its VPC.
    pub vpc: String,
    /// Its subnets.
    pub subnets: Vec<String>,
    /// Its security groups; one that was made without can never get one.
    pub groups: Vec<String>,
}

impl Seen {
    /// Where it is reached, once that will stay so.
    pub fn ingress(&self) -> Vec<Ingress> {
        let up = matches!(self.state.as_str(), "active" | "provisioning" | "active_impaired");
        let name = Some(&self.dns_name).filter(|name| up && !name.is_empty());
        name.into_iter().map(Ingress::hostname).collect()
    }
}

/// Reads `DescribeLoadBalancers` and `CreateLoadBalancer`.
pub fn read(answer: &Element) -> Option<Seen> {
    answer.at(&["LoadBalancers", "member"]).and_then(read_one)
}

/// The same of all in the answer, with their names.
pub fn read_all(answer: &Element) -> impl Iterator<Item = (&str, Seen)> {
    let all = answer.all(&["LoadBalancers", "member"]);
    all.filter_map(|one| Some((one.text("LoadBalancerName")?, read_one(one)?)))
}

fn read_one(one: &Element) -> Option<Seen> {
    let text = |name: &str| one.text(name).unwrap_or_default().to_owned();
    let zones = one.all(&["AvailabilityZones", "member"]);
    Some(Seen {
        arn: one.text("LoadBalancerArn")?.into(),
        dns_name: text("DNSName"),
        state: one
            .child("State")
            .and_then(|state| state.text("Code"))
            .unwrap_or_default()
            .into(),
        kind: text("Type"),
        internal: one.text("Scheme") == Some("internal"),
        vpc: text("VpcId"),
        subnets: zones.filter_map(|zone| zone.text("SubnetId").map(Into::into)).collect(),
        groups: one.child("SecurityGroups").map(texts).unwrap_or_default(),
    })
}

/// A listener as the cloud shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its id.
    pub arn: String,
    /// Where clients connect.
    pub port: u16,
    /// `TCP`, `UDP`, `TLS` or `TCP_UDP`.
    pub protocol: String,
    /// ARN of the certificate.
    pub certificate: String,
    /// TLS policy. Means something for `TLS` only.
    pub tls_policy: String,
    /// The target group it leads to.
    pub group: String,
}

/// Reads a member of `DescribeListeners`.
pub fn read_listener(item: &Element) -> Option<Listener> {
    let first = |list: &str, key: &str| {
        let text = item
            .child(list)
            .and_then(|list| list.child("member"))
            .and_then(|one| one.text(key));
        text.unwrap_or_default().to_owned()
    };
    Some(Listener {
        arn: item.text("ListenerArn")?.into(),
        port: item.text("Port")?.parse().ok()?,
        protocol: item.text("Protocol")?.into(),
        certificate: first("Certificates", "CertificateArn"),
        tls_policy: item.text("SslPolicy").unwrap_or_default().into(),
        group: first("DefaultActions", "TargetGroupArn"),
    })
}

/// Reads the pairs of `DescribeLoadBalancerAttributes` and `DescribeTargetGroupAttributes`.
pub fn read_attributes(answer: &Element) -> Vec<Pair> {
    pairs(answer, &["Attributes", "member"])
}

/// Reads `DescribeTags` of either version of Elastic Load Balancing, about one thing.
pub fn read_tags(answer: &Element) -> Vec<Pair> {
    pairs(answer, &["TagDescriptions", "member", "Tags", "member"])
}

/// Reads a member of `DescribeTags`: what it is about, and its tags.
pub fn read_tagged(item: &Element) -> (String, Vec<Pair>) {
    let arn = item.text("ResourceArn").unwrap_or_default();
    (arn.into(), pairs(item, &["Tags", "member"]))
}

fn pairs(answer: &Element, path: &[&str]) -> Vec<Pair> {
    answer.all(path).map(read_pair).collect()
}

fn read_pair(item: &Element) -> Pair {
    let text = |name| item.text(name).unwrap_or_default().to_owned();
    Pair::new(text("Key"), text("Value"))
}
