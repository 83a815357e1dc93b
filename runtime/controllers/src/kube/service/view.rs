//! Conversion of Services for providers, and of their ingress points for Kubernetes.
//!
//! Pure. What cannot be expressed is an error that names all mistakes at once; the API server lets few of them through.

use std::net::IpAddr;

use cloudwit_model as model;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, PortStatus, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::kube::service::{allow_all, health_check_port, ingress, requests_only_local_traffic, source_ranges};

/// Seconds of client-IP affinity when the Service does not say (`api core/v1:DefaultClientIPServiceAffinitySeconds`).
const DEFAULT_AFFINITY_SECONDS: u32 = 10_800;

/// The Service for `ensure`. The error says what is wrong with it, for an Event.
pub fn service_view(service: &Service) -> Result<model::Service, String> {
    let mut view = identity_view(service);
    let mut mistakes = Vec::new();
    let none = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&none);
    for port in spec.ports.iter().flatten() {
        match port_view(port) {
            Ok(port) => view.ports.push(port),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    match source_ranges(service) {
        Ok(ranges)
            if allow_all(&ranges) && (is_default(service) || !view.ip_families.contains(&model::IpFamily::V6)) => {}
        Ok(ranges) => view.source_ranges = ranges.iter().map(ToString::to_string).collect(),
        Err(mistake) => mistakes.push(mistake),
    }
    if mistakes.is_empty() {
        Ok(view)
    } else {
        Err(mistakes.join("; "))
    }
}

/// The Service for `delete` and for what only has to find its load balancer: never fails, leaves out what makes no sense.
pub fn lenient_service_view(service: &Service) -> model::Service {
    service_view(service).unwrap_or_else(|_| {
        let mut view = identity_view(service);
        let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        view.ports = ports.filter_map(|port| port_view(port).ok()).collect();
        view
    })
}

/// All but ports and source ranges.
fn identity_view(service: &Service) -> model::Service {
    let metadata = service.metadata.clone();
    let spec = service.spec.clone().unwrap_or_default();
    let traffic_policy = match requests_only_local_traffic(service) {
        true => model::TrafficPolicy::Local,
        false => model::TrafficPolicy::Cluster,
    };
    model::Service {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        ports: Vec::new(),
        load_balancer_class: spec.load_balancer_class.clone(),
        load_balancer_ip: spec.load_balancer_ip.clone().filter(|ip| !ip.is_empty()),
        source_ranges: Vec::new(),
        traffic_policy,
        session_affinity_seconds: affinity_seconds(&spec),
        health_check_node_port: health_check_port(service),
        ip_families: spec
            .ip_families
            .iter()
            .flatten()
            .filter_map(|family| family_view(family))
            .collect(),
        external_ips: spec.external_ips.unwrap_or_default(),
        ingress: ingress(service).iter().filter_map(ingress_view).collect(),
    }
}

/// Whether there are no source ranges.
fn is_default(service: &Service) -> bool {
    let field = service
        .spec
        .as_ref()
        .and_then(|spec| spec.load_balancer_source_ranges.as_ref());
    let annotation = service
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(crate::kube::service::SOURCE_RANGES_ANNOTATION));
    field.is_none_or(Vec::is_empty) && annotation.is_none_or(|text| text.trim().is_empty())
}

fn affinity_seconds(spec: &ServiceSpec) -> Option<u32> {
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let client_ip = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref());
    let seconds = client_ip
        .and_then(|client_ip| client_ip.timeout_seconds)
        .and_then(|seconds| seconds.try_into().ok());
    Some(seconds.unwrap_or(DEFAULT_AFFINITY_SECONDS))
}

fn family_view(family: &str) -> Option<model::IpFamily> {
    match family {
        "IPv4" => Some(model::IpFamily::V4),
        "IPv6" => Some(model::IpFamily::V6),
        _ => None,
    }
}

fn protocol_view(protocol: &str) -> Option<model::Protocol> {
    match protocol {
        "" | "TCP" => Some(model::Protocol::Tcp),
        "UDP" => Some(model::Protocol::Udp),
        "SCTP" => Some(model::Protocol::Sctp),
        _ => None,
    }
}

fn protocol_word(protocol: model::Protocol) -> &'static str {
    match protocol {
        model::Protocol::Tcp => "TCP",
        model::Protocol::Udp => "UDP",
        model::Protocol::Sctp => "SCTP",
    }
}

fn port_view(port: &ServicePort) -> Result<model::ServicePort, String> {
    let number = u16::try_from(port.port).map_err(|_| format!("port {} is not between 1 and 65535", port.port))?;
    let protocol = port.protocol.as_deref().unwrap_or_default();
    let protocol = protocol_view(protocol)
        .ok_or_else(|| format!("port {number} has protocol {protocol:?}; known are TCP, UDP and SCTP"))?;
    Ok(model::ServicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol,
        port: number,
        node_port: port
            .node_port
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0),
        target_port: port.target_port.as_ref().map(|target| match target {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(name) => name.clone(),
        }),
        app_protocol: port.app_protocol.clone(),
    })
}

fn ingress_view(ingress: &LoadBalancerIngress) -> Option<model::Ingress> {
    let mode = match ingress.ip_mode.as_deref() {
        Some("Proxy") => model::IpMode::Proxy,
        _ => model::IpMode::Vip,
    };
    let endpoint = match (ingress.ip.as_deref(), ingress.hostname.as_deref()) {
        (Some(ip), _) if !ip.is_empty() => model::Endpoint::Ip(ip.parse::<IpAddr>().ok()?, mode),
        (_, Some(name)) if !name.is_empty() => model::Endpoint::Hostname(name.to_owned()),
        _ => return None,
    };
    let ports = ingress.ports.iter().flatten().filter_map(|status| {
        let protocol = protocol_view(&status.protocol)?;
        Some(model::PortStatus {
            port: u16::try_from(status.port).ok()?,
            protocol,
            error: status.error.clone(),
        })
    });
    Some(model::Ingress {
        endpoint,
        ports: ports.collect(),
    })
}

/// The provider's ingress points as they go into `status.loadBalancer.ingress`. An IP always carries its mode, as the API server
/// would add it anyway.
pub fn ingress_status(points: &[model::Ingress]) -> Vec<LoadBalancerIngress> {
    points.iter().map(ingress_point_status).collect()
}

fn ingress_point_status(point: &model::Ingress) -> LoadBalancerIngress {
    let ports = point.ports.iter().map(|status| PortStatus {
        port: status.port.into(),
        protocol: protocol_word(status.protocol).to_owned(),
        error: status.error.clone(),
    });
    let ports = (!point.ports.is_empty()).then(|| ports.collect());
    match &point.endpoint {
        model::Endpoint::Ip(ip, mode) => {
            let mode = match mode {
                model::IpMode::Vip => "VIP",
                model::IpMode::Proxy => "Proxy",
            };
            LoadBalancerIngress {
                ip: Some(ip.to_string()),
                ip_mode: Some(mode.to_owned()),
                hostname: None,
                ports,
            }
        }
        model::Endpoint::Hostname(name) => LoadBalancerIngress {
            hostname: Some(name.clone()),
            ports,
            ..LoadBalancerIngress::default()
        },
    }
}

#[cfg(test)]
mod tests;
