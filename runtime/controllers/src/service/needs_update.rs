//! Whether a change of a Service concerns its load balancer, field by field.
//!
//! Pure; used by `service::plan`. The order and the choice of fields are upstream's `needsUpdate`
//! (`spec/service-controller.md`, section 4). One difference: a list or map that is missing and one that is empty are the same here;
//! upstream compares them deeply and calls the cloud for nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use crate::options::classes::Classes;
use crate::service::plan::wants_balancer;

/// The first field that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceChange {
    /// It became or ceased to be of type LoadBalancer.
    Type,
    /// `spec.loadBalancerSourceRanges`.
    SourceRanges,
    /// `spec.ports` or `spec.sessionAffinity`.
    PortsOrAffinity,
    /// `spec.sessionAffinityConfig`.
    AffinityConfig,
    /// `spec.loadBalancerIP`.
    LoadBalancerIp,
    /// `spec.externalIPs`.
    ExternalIps,
    /// `metadata.annotations`, any of them.
    Annotations,
    /// Deleted and created again under the same name.
    Uid,
    /// `spec.externalTrafficPolicy`.
    TrafficPolicy,
    /// `spec.healthCheckNodePort`.
    HealthCheckPort,
    /// Number of `spec.ipFamilies`; their order cannot change.
    IpFamilies,
}

/// What differs between two states of a Service as far as its load balancer depends on it; none when nothing does.
///
/// Without effect, as upstream: labels, selector, cluster IPs, internal traffic policy, `ipFamilyPolicy`, node port allocation by itself,
/// `publishNotReadyAddresses`, traffic distribution, finalizers, status, a deletion timestamp.
pub fn needs_update(old: &Service, new: &Service, classes: &Classes) -> Option<ServiceChange> {
    match (wants_balancer(old, classes), wants_balancer(new, classes)) {
        (false, false) => return None,
        (true, true) => {}
        _ => return Some(ServiceChange::Type),
    }
    let none = ServiceSpec::default();
    let (was, is) = (old.spec.as_ref().unwrap_or(&none), new.spec.as_ref().unwrap_or(&none));
    let checks = [
        (
            ServiceChange::SourceRanges,
            list(&was.load_balancer_source_ranges) != list(&is.load_balancer_source_ranges),
        ),
        (
            ServiceChange::PortsOrAffinity,
            !ports_equal(was, is) || text(&was.session_affinity) != text(&is.session_affinity),
        ),
        (
            ServiceChange::AffinityConfig,
            was.session_affinity_config != is.session_affinity_config,
        ),
        (
            ServiceChange::LoadBalancerIp,
            text(&was.load_balancer_ip) != text(&is.load_balancer_ip),
        ),
        (
            ServiceChange::ExternalIps,
            list(&was.external_ips) != list(&is.external_ips),
        ),
        (ServiceChange::Annotations, annotations(old) != annotations(new)),
        (ServiceChange::Uid, old.metadata.uid != new.metadata.uid),
        (
            ServiceChange::TrafficPolicy,
            text(&was.external_traffic_policy) != text(&is.external_traffic_policy),
        ),
        (
            ServiceChange::HealthCheckPort,
            was.health_check_node_port.unwrap_or(0) != is.health_check_node_port.unwrap_or(0),
        ),
        (
            ServiceChange::IpFamilies,
            list(&was.ip_families).len() != list(&is.ip_families).len(),
        ),
    ];
    checks
        .into_iter()
        .find(|(_, differs)| *differs)
        .map(|(change, _)| change)
}

fn ports_equal(old: &ServiceSpec, new: &ServiceSpec) -> bool {
    let (old, new) = (
        old.ports.as_deref().unwrap_or_default(),
        new.ports.as_deref().unwrap_or_default(),
    );
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| port_equal(old, new))
}

fn port_equal(old: &ServicePort, new: &ServicePort) -> bool {
    text(&old.name) == text(&new.name)
        && old.protocol.as_deref().unwrap_or("TCP") == new.protocol.as_deref().unwrap_or("TCP")
        && old.port == new.port
        && old.node_port.unwrap_or(0) == new.node_port.unwrap_or(0)
        && old.target_port == new.target_port
        && old.app_protocol == new.app_protocol
}

fn annotations(service: &Service) -> Option<&BTreeMap<String, String>> {
    service
        .metadata
        .annotations
        .as_ref()
        .filter(|annotations| !annotations.is_empty())
}

fn list(value: &Option<Vec<String>>) -> &[String] {
    value.as_deref().unwrap_or_default()
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests;
