//! Upstream's `service/helpers`: source ranges, health checks, finalizer, status equality.
//!
//! Pure. Used by `kube::service::view` (what a provider gets to see) and `service::plan` (what to do next).
//! Rules and constants: `spec/service-controller.md`, sections 1, 6.4 and 11.

pub mod view;

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, PortStatus, Service, ServiceSpec};

/// Keeps a Service alive until its load balancer is gone. Shared by all cloud controllers; the name MUST NOT change, or load
/// balancers of existing Services are never cleaned up (`service/helpers/helper.go:LoadBalancerCleanupFinalizer`).
pub const CLEANUP_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// Source ranges for clusters and tools that do not set the field (`api core/v1:AnnotationLoadBalancerSourceRangesKey`).
pub const SOURCE_RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const ALLOW_ALL: &str = "0.0.0.0/0";

/// The networks that may connect, normalised and without duplicates. Nothing set gives `0.0.0.0/0`.
///
/// The field wins over the annotation. The error names every entry that is no CIDR.
pub fn source_ranges(service: &Service) -> Result<BTreeSet<IpNet>, String> {
    let field = service
        .spec
        .as_ref()
        .and_then(|spec| spec.load_balancer_source_ranges.as_deref())
        .unwrap_or_default();
    if !field.is_empty() {
        return parse_ranges(field.iter().map(String::as_str), "spec.loadBalancerSourceRanges");
    }
    let annotation = service
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(SOURCE_RANGES_ANNOTATION));
    match annotation.map(|text| text.trim()) {
        None | Some("") => parse_ranges([ALLOW_ALL], "the default"),
        Some(text) => parse_ranges(text.split(','), &format!("annotation {SOURCE_RANGES_ANNOTATION}")),
    }
}

fn parse_ranges<'a>(items: impl IntoIterator<Item = &'a str>, origin: &str) -> Result<BTreeSet<IpNet>, String> {
    let mut ranges = BTreeSet::new();
    let mut bad = Vec::new();
    for item in items {
        match item.trim().parse::<IpNet>() {
            Ok(net) => {
                ranges.insert(net.trunc());
            }
            Err(_) => bad.push(format!("{item:?}")),
        }
    }
    if bad.is_empty() {
        return Ok(ranges);
    }
    Err(format!(
        "{origin} has entries that are not CIDRs: {}; write them like 10.0.0.0/24",
        bad.join(", ")
    ))
}

/// Whether these ranges let every IPv4 address in. `::/0` does not count, as upstream has it.
pub fn allow_all(ranges: &BTreeSet<IpNet>) -> bool {
    ranges.iter().any(|range| range.to_string() == ALLOW_ALL)
}

/// Whether only nodes with an endpoint take traffic from outside.
pub fn requests_only_local_traffic(service: &Service) -> bool {
    matches!(service_type(service), "LoadBalancer" | "NodePort")
        && spec(service).is_some_and(|spec| spec.external_traffic_policy.as_deref() == Some("Local"))
}

/// Whether the load balancer has to check nodes for an endpoint.
pub fn needs_health_check(service: &Service) -> bool {
    service_type(service) == "LoadBalancer" && requests_only_local_traffic(service)
}

/// Port of that health check; none when it is not needed or the port is not allocated.
pub fn health_check_port(service: &Service) -> Option<u16> {
    let port = spec(service)?
        .health_check_node_port
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0)?;
    needs_health_check(service).then_some(port)
}

/// Whether the cleanup finalizer is on the Service.
pub fn has_cleanup_finalizer(service: &Service) -> bool {
    service
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|name| name == CLEANUP_FINALIZER)
}

/// Whether two lists of ingress points say the same.
///
/// Upstream compares literally; the API server however stores `ipMode: VIP` for every IP, so a provider that gives no mode
/// differs for ever and costs one patch for each ensure. Here an unset mode of an IP is `VIP`, and IP addresses are compared
/// as addresses.
pub fn ingress_equal(left: &[LoadBalancerIngress], right: &[LoadBalancerIngress]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .all(|(left, right)| ingress_point_equal(left, right))
}

fn ingress_point_equal(left: &LoadBalancerIngress, right: &LoadBalancerIngress) -> bool {
    let ports = |ingress: &LoadBalancerIngress| ingress.ports.clone().unwrap_or_default();
    same_ip(text(&left.ip), text(&right.ip))
        && text(&left.hostname) == text(&right.hostname)
        && ip_mode(left) == ip_mode(right)
        && ports_equal(&ports(left), &ports(right))
}

fn ports_equal(left: &[PortStatus], right: &[PortStatus]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            left.port == right.port && left.protocol == right.protocol && text(&left.error) == text(&right.error)
        })
}

fn same_ip(left: &str, right: &str) -> bool {
    left == right || matches!((left.parse::<IpAddr>(), right.parse::<IpAddr>()), (Ok(left), Ok(right)) if left == right)
}

fn ip_mode(ingress: &LoadBalancerIngress) -> Option<&str> {
    match ingress.ip_mode.as_deref() {
        None if !text(&ingress.ip).is_empty() => Some("VIP"),
        mode => mode,
    }
}

/// The ingress points in the Service's status.
pub fn ingress(service: &Service) -> &[LoadBalancerIngress] {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    status
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default()
}

/// `spec.type`, with the API's default.
pub fn service_type(service: &Service) -> &str {
    spec(service)
        .and_then(|spec| spec.type_.as_deref())
        .unwrap_or("ClusterIP")
}

fn spec(service: &Service) -> Option<&ServiceSpec> {
    service.spec.as_ref()
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
