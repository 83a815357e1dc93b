//! Converts arguments of calls: types of the model to types of `wit/v0.1`.

use cloudwit_model as model;
use cloudwit_model::{AddressKind, IpFamily, IpMode, Protocol, TrafficPolicy};

use crate::call::answer;
use crate::contract::v0_1::generated::cloudwit::provider::{common, services};
use crate::contract::v0_1::generated::exports::cloudwit::provider::{load_balancers, routes};

pub(crate) fn address_to_guest(address: &model::Address) -> common::Address {
    let kind = match address.kind {
        AddressKind::Hostname => common::AddressKind::Hostname,
        AddressKind::InternalIP => common::AddressKind::InternalIp,
        AddressKind::ExternalIP => common::AddressKind::ExternalIp,
        AddressKind::InternalDNS => common::AddressKind::InternalDns,
        AddressKind::ExternalDNS => common::AddressKind::ExternalDns,
    };
    common::Address {
        kind,
        value: address.value.clone(),
    }
}

pub(crate) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<common::Pair> {
    pairs
        .into_iter()
        .map(|(key, value)| common::Pair {
            key: key.clone(),
            value: value.clone(),
        })
        .collect()
}

pub(crate) fn node_ref(node: &model::NodeRef) -> common::NodeRef {
    common::NodeRef {
        name: node.name.clone(),
        provider_id: answer::optional(node.provider_id.clone()),
        system_uuid: answer::optional(node.system_uuid.clone()),
        addresses: node.addresses.iter().map(address_to_guest).collect(),
        extra: Vec::new(),
    }
}

pub(crate) fn targets(targets: &[model::Target]) -> Vec<load_balancers::Target> {
    targets
        .iter()
        .map(|target| load_balancers::Target {
            node: node_ref(&target.node),
            ready: target.ready,
        })
        .collect()
}

fn protocol_to_guest(protocol: Protocol) -> services::Protocol {
    match protocol {
        Protocol::Tcp => services::Protocol::Tcp,
        Protocol::Udp => services::Protocol::Udp,
        Protocol::Sctp => services::Protocol::Sctp,
    }
}

fn port_to_guest(port: &model::ServicePort) -> services::ServicePort {
    services::ServicePort {
        name: answer::optional(port.name.clone()),
        protocol: protocol_to_guest(port.protocol),
        port: port.port,
        node_port: port.node_port,
        target_port: answer::optional(port.target_port.clone()),
        app_protocol: answer::optional(port.app_protocol.clone()),
    }
}

fn ingress_to_guest(ingress: &model::Ingress) -> services::Ingress {
    let endpoint = match &ingress.endpoint {
        model::Endpoint::Ip(ip, mode) => {
            let mode = match mode {
                IpMode::Vip => services::IpMode::Vip,
                IpMode::Proxy => services::IpMode::Proxy,
            };
            services::Endpoint::Ip((ip.to_string(), Some(mode)))
        }
        model::Endpoint::Hostname(name) => services::Endpoint::Hostname(name.clone()),
    };
    let ports = ingress.ports.iter().map(|port| services::PortStatus {
        port: port.port,
        protocol: protocol_to_guest(port.protocol),
        error: answer::optional(port.error.clone()),
    });
    services::Ingress {
        endpoint,
        ports: ports.collect(),
    }
}

pub(crate) fn service(service: &model::Service) -> services::Service {
    let class = service.load_balancer_class.as_ref().map(|class| common::Pair {
        key: "load-balancer-class".into(),
        value: class.clone(),
    });
    services::Service {
        namespace: service.namespace.clone(),
        name: service.name.clone(),
        uid: service.uid.clone(),
        annotations: pairs(&service.annotations),
        labels: pairs(&service.labels),
        ports: service.ports.iter().map(port_to_guest).collect(),
        load_balancer_ip: answer::optional(service.load_balancer_ip.clone()),
        source_ranges: service.source_ranges.clone(),
        traffic_policy: match service.traffic_policy {
            TrafficPolicy::Cluster => services::TrafficPolicy::Cluster,
            TrafficPolicy::Local => services::TrafficPolicy::Local,
        },
        session_affinity_seconds: service.session_affinity_seconds,
        health_check_node_port: service.health_check_node_port,
        ip_families: service
            .ip_families
            .iter()
            .map(|family| match family {
                IpFamily::V4 => services::IpFamily::Ipv4,
                IpFamily::V6 => services::IpFamily::Ipv6,
            })
            .collect(),
        external_ips: service.external_ips.clone(),
        ingress: service.ingress.iter().map(ingress_to_guest).collect(),
        extra: class.into_iter().collect(),
    }
}

pub(crate) fn target_update(update: &model::TargetUpdate<'_>) -> load_balancers::TargetUpdate {
    load_balancers::TargetUpdate {
        service: service(update.service),
        token: update.token.map(str::to_owned),
    }
}

pub(crate) fn new_route(route: &model::NewRoute) -> routes::NewRoute {
    routes::NewRoute {
        name_hint: route.name_hint.clone(),
        destination: route.destination.clone(),
        node: node_ref(&route.node),
    }
}

/// As many as there are changes to create and to delete.
pub(crate) fn route_tokens(tokens: &model::RouteTokens, (create, delete): (usize, usize)) -> routes::Tokens {
    let padded = |tokens: &[Option<String>], length| {
        let mut tokens = tokens.to_vec();
        tokens.resize(length, None);
        tokens
    };
    routes::Tokens {
        create: padded(&tokens.created, create),
        delete: padded(&tokens.deleted, delete),
    }
}

pub(crate) fn route_to_guest(route: &model::Route) -> routes::Route {
    routes::Route {
        id: route.id.clone(),
        destination: route.destination.clone(),
        node: answer::optional(route.node.clone()),
        next_hops: route.next_hops.iter().map(address_to_guest).collect(),
        blackhole: route.blackhole,
    }
}

#[cfg(test)]
pub(crate) mod tests;
