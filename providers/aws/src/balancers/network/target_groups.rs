//! Target groups of a Network Load Balancer: one for each port. How they should be, how the cloud shows them, and which requests make the one
//! the other. Pure.

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::keys::{Hash, Keys};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;
use data_encoding::HEXLOWER;

use crate::balancers::annotations::settings::{BackendProtocol, Settings};
use crate::balancers::security_groups::tag_fields;
use crate::balancers::steps::Step;
use crate::config::Config;

/// Most targets in one request (kubernetes/cloud-provider-aws, `defaultRegisterTargetsChunkSize`).
const CHUNK: usize = 100;

/// The cloud's word for the port that traffic goes to.
const TRAFFIC_PORT: &str = "traffic-port";

/// Health checks of a target group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `TCP`, `HTTP` or `HTTPS`. Cannot be changed.
    pub protocol: String,
    /// A number or `traffic-port`.
    pub port: String,
    /// Empty for `TCP`.
    pub path: String,
    /// Good answers until a target counts as healthy.
    pub healthy: u16,
    /// Bad answers until it does not.
    pub unhealthy: u16,
    /// Seconds; none for the cloud's own choice.
    pub timeout: Option<u16>,
    /// Seconds. Is in the group's name, so another one means another group.
    pub interval: u16,
}

/// A target group as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupWanted {
    /// Unique in account and region.
    pub name: String,
    /// `TCP`, `UDP` or `TLS`.
    pub protocol: &'static str,
    /// The node port.
    pub port: u16,
    /// Health checks.
    pub health: Health,
}

/// A target group as the cloud shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSeen {
    /// Its id.
    pub arn: String,
    /// Its name.
    pub name: String,
    /// `TCP`, `UDP` or `TLS`.
    pub protocol: String,
    /// The node port.
    pub port: u16,
    /// Health checks.
    pub health: Health,
    /// Load balancers that send to it.
    pub balancers: Vec<String>,
}

impl GroupSeen {
    /// Whether it can become the desired one: what cannot be changed is right. The name does not count, since earlier versions of upstream
    /// made others.
    pub fn can_be(&self, wanted: &GroupWanted) -> bool {
        self.port == wanted.port
            && self.protocol == wanted.protocol
            && self.health.protocol == wanted.health.protocol
            && self.health.interval == wanted.health.interval
    }
}

/// `k8s-<namespace>-<name>-<hash>` as kubernetes/cloud-provider-aws makes it (`buildTargetGroupName`). It MUST NOT change: half-built groups
/// are found by it.
fn name(keys: Keys, cluster: &str, service: &Service, port: u16, group: (&str, u16), health: &Health) -> String {
    let (protocol, node_port) = group;
    let text = format!(
        "{cluster}{}{}{port}{node_port}{protocol}instance{}{}",
        service.namespace, service.name, health.protocol, health.interval
    );
    prefix(service) + &short_hash(keys, Hash::Sha1, &text)
}

/// The name of an NLB's own security group (`GetSecurityGroupNameForNLB`).
pub fn security_group_name(keys: Keys, cluster: &str, service: &Service) -> String {
    let text = format!("{cluster}{}{}{}", service.name, service.namespace, service.uid);
    prefix(service) + &short_hash(keys, Hash::Sha256, &text)
}

/// How the names of all target groups of a Service begin. Other Services' may begin so too.
pub fn prefix(service: &Service) -> String {
    let short = |text: &str| {
        text.chars()
            .filter(char::is_ascii_alphanumeric)
            .take(8)
            .collect::<String>()
    };
    format!("k8s-{}-{}-", short(&service.namespace), short(&service.name))
}

fn short_hash(keys: Keys, hash: Hash, text: &str) -> String {
    let mut hash = HEXLOWER.encode(&keys.digest(hash, text.as_bytes()));
    hash.truncate(10);
    hash
}

/// The target group of a port; none for a port without node port.
pub fn wanted(
    keys: Keys,
    cluster: &str,
    service: &Service,
    port: &ServicePort,
    settings: &Settings,
    config: &Config,
) -> Option<GroupWanted> {
    let node_port = port.node_port?;
    let tls = settings.backend == Some(BackendProtocol::Ssl) && settings.speaks_tls(port);
    let protocol = match port.protocol {
        Protocol::Udp => "UDP",
        _ if tls => "TLS",
        _ => "TCP",
    };
    let health = health(service, settings, config);
    Some(GroupWanted {
        name: name(keys, cluster, service, port.port, (protocol, node_port), &health),
        protocol,
        port: node_port,
        health,
    })
}

/// The traffic's own port by TCP, or the Service's for `externalTrafficPolicy: Local`, and annotations win; but where the operator chose kube-proxy's
/// for all, protocol, port and path are its own regardless of annotations (upstream's `buildNLBHealthCheckConfiguration`).
fn health(service: &Service, settings: &Settings, config: &Config) -> Health {
    let asked = &settings.health;
    let (protocol, port, path, times, interval) = match service.health_check_node_port {
        Some(port) => ("HTTP", port.to_string(), "/healthz", 2, 10),
        None => ("TCP", TRAFFIC_PORT.into(), "/", 3, 30),
    };
    let shared = config
        .shared_health_check()
        .filter(|_| service.health_check_node_port.is_none());
    let (protocol, port, path) = match shared {
        Some((port, path)) => ("HTTP", port.to_string(), path.to_owned()),
        None => {
            let asked_port = |port: Option<u16>| port.map_or(TRAFFIC_PORT.into(), |port| port.to_string());
            let protocol = asked.protocol.unwrap_or(protocol);
            let path = match protocol {
                "TCP" => String::new(),
                _ => asked.path.clone().unwrap_or_else(|| path.into()),
            };
            (protocol, asked.port.map_or(port, asked_port), path)
        }
    };
    Health {
        protocol: protocol.into(),
        port,
        path,
        healthy: asked.healthy.unwrap_or(times),
        unhealthy: asked.unhealthy.unwrap_or(times),
        timeout: asked.timeout,
        interval: asked.interval.unwrap_or(interval),
    }
}

impl Health {
    /// The number of the port that is checked.
    pub fn number(&self, node_port: u16) -> u16 {
        self.port.parse().unwrap_or(node_port)
    }
}

/// Creates a target group. Tags are part of the request, so that it is owned from the start.
pub fn create(wanted: &GroupWanted, vpc: &str, tags: &[Pair]) -> Step {
    let form = Form::new()
        .field("Name", &wanted.name)
        .field("VpcId", vpc)
        .field("Protocol", wanted.protocol)
        .field("Port", wanted.port)
        .field("TargetType", "instance")
        .field("HealthCheckProtocol", &wanted.health.protocol)
        .field("HealthCheckIntervalSeconds", wanted.health.interval);
    let form = health_fields(form, &wanted.health);
    Step::network("CreateTargetGroup", tag_fields(form, "Tags.member.", tags)).done_by(&["DuplicateTargetGroupName"])
}

/// Changes what can be changed of its health checks.
pub fn modify(wanted: &GroupWanted, seen: &GroupSeen) -> Option<Step> {
    let (want, have) = (&wanted.health, &seen.health);
    let right = want.port == have.port
        && (want.path == have.path || want.protocol == "TCP")
        && (want.healthy, want.unhealthy) == (have.healthy, have.unhealthy)
        && (want.timeout.is_none() || want.timeout == have.timeout);
    (!right).then(|| {
        let form = Form::new().field("TargetGroupArn", &seen.arn);
        Step::network("ModifyTargetGroup", health_fields(form, want))
    })
}

fn health_fields(form: Form, health: &Health) -> Form {
    form.field("HealthCheckPort", &health.port)
        .field_opt("HealthCheckPath", (health.protocol != "TCP").then_some(&health.path))
        .field("HealthyThresholdCount", health.healthy)
        .field("UnhealthyThresholdCount", health.unhealthy)
        .field_opt("HealthCheckTimeoutSeconds", health.timeout)
}

/// Deletes it. A load balancer that was just deleted may hold it for a while: `ResourceInUse`.
pub fn delete(arn: &str) -> Step {
    Step::network("DeleteTargetGroup", Form::new().field("TargetGroupArn", arn)).done_by(&["TargetGroupNotFound"])
}

/// Brings the targets in line. Who leaves goes first: a load balancer may be full.
pub fn targets(arn: &str, port: u16, wanted: &[String], seen: &[(String, u16)]) -> Vec<Step> {
    let leaving: Vec<(&str, u16)> = seen
        .iter()
        .filter(|(id, at)| *at != port || !wanted.contains(id))
        .map(|(id, at)| (id.as_str(), *at))
        .collect();
    let coming: Vec<(&str, u16)> = wanted
        .iter()
        .filter(|id| !seen.iter().any(|(one, at)| one == *id && *at == port))
        .map(|id| (id.as_str(), port))
        .collect();
    let step = |action, targets: &[(&str, u16)]| {
        let mut form = Form::new().field("TargetGroupArn", arn);
        for (index, (id, port)) in targets.iter().enumerate() {
            let prefix = format!("Targets.member.{}", (index + 1));
            form = form
                .field(format!("{prefix}.Id"), id)
                .field(format!("{prefix}.Port"), port);
        }
        Step::network(action, form)
    };
    let leave = leaving
        .chunks(CHUNK)
        .map(|part| step("DeregisterTargets", part).done_by(&["InvalidTarget"]));
    leave
        .chain(coming.chunks(CHUNK).map(|part| step("RegisterTargets", part)))
        .collect()
}

/// Reads a member of `DescribeTargetGroups` or `CreateTargetGroup`.
pub fn read(item: &Element) -> Option<GroupSeen> {
    let text = |name: &str| item.text(name).unwrap_or_default().to_owned();
    let number = |name: &str| item.text(name).and_then(|text| text.parse::<u16>().ok());
    Some(GroupSeen {
        arn: item.text("TargetGroupArn")?.into(),
        name: text("TargetGroupName"),
        protocol: text("Protocol"),
        port: number("Port").unwrap_or_default(),
        health: Health {
            protocol: text("HealthCheckProtocol").to_ascii_uppercase(),
            port: text("HealthCheckPort"),
            path: text("HealthCheckPath"),
            healthy: number("HealthyThresholdCount").unwrap_or_default(),
            unhealthy: number("UnhealthyThresholdCount").unwrap_or_default(),
            timeout: number("HealthCheckTimeoutSeconds"),
            interval: number("HealthCheckIntervalSeconds").unwrap_or_default(),
        },
        balancers: item
            .child("LoadBalancerArns")
            .map(crate::balancers::classic::texts)
            .unwrap_or_default(),
    })
}

/// Reads `DescribeTargetHealth`: instance and port of each target, without those that are leaving.
pub fn read_targets(answer: &Element) -> Vec<(String, u16)> {
    let mut targets = Vec::new();
    for item in answer.all(&["TargetHealthDescriptions", "member"]) {
        let leaving = item.child("TargetHealth").and_then(|health| health.text("Reason"));
        let target = item
            .child("Target")
            .filter(|_| leaving != Some("Target.DeregistrationInProgress"));
        let place = target.and_then(|target| Some((target.text("Id")?.into(), target.text("Port")?.parse().ok()?)));
        targets.extend(place);
    }
    targets
}

#[cfg(test)]
mod tests;
