//! Between the words of `wit/v0.1` and those of the model. What a guest says passes through `answer`, which finds
//! nonsense.

use cloudwit_model as model;
use cloudwit_model::{AddressKind, Evidence, Failure, IpFamily, IpMode, Presence, Protocol, TrafficPolicy};

use crate::adapter;
use crate::answer::{self, Checked, Nonsense};
use crate::v0_1::generated::cloudwit::provider::{services, types};
use crate::v0_1::generated::exports::cloudwit::provider::{info, load_balancers, routes};

// From the model to the guest.

fn address_to_guest(address: &model::Address) -> types::Address {
    let kind = match address.kind {
        AddressKind::Hostname => types::AddressKind::Hostname,
        AddressKind::InternalIP => types::AddressKind::InternalIp,
        AddressKind::ExternalIP => types::AddressKind::ExternalIp,
        AddressKind::InternalDNS => types::AddressKind::InternalDns,
        AddressKind::ExternalDNS => types::AddressKind::ExternalDns,
    };
    types::Address {
        kind,
        value: address.value.clone(),
    }
}

pub(crate) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<types::Pair> {
    pairs
        .into_iter()
        .map(|(key, value)| types::Pair {
            key: key.clone(),
            value: value.clone(),
        })
        .collect()
}

pub(crate) fn node_ref(node: &model::NodeRef) -> types::NodeRef {
    types::NodeRef {
        name: node.name.clone(),
        provider_id: answer::optional(node.provider_id.clone()),
        system_uuid: answer::optional(node.system_uuid.clone()),
        addresses: node.addresses.iter().map(address_to_guest).collect(),
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
    }
}

pub(crate) fn new_route(route: &model::NewRoute) -> routes::NewRoute {
    routes::NewRoute {
        name_hint: route.name_hint.clone(),
        destination: route.destination.clone(),
        node: node_ref(&route.node),
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

// From the guest to the model.

fn address(whose: &str, address: types::Address) -> Checked<model::Address> {
    let kind = match address.kind {
        types::AddressKind::Hostname => AddressKind::Hostname,
        types::AddressKind::InternalIp => AddressKind::InternalIP,
        types::AddressKind::ExternalIp => AddressKind::ExternalIP,
        types::AddressKind::InternalDns => AddressKind::InternalDNS,
        types::AddressKind::ExternalDns => AddressKind::ExternalDNS,
    };
    answer::address(whose, kind, address.value)
}

pub(crate) fn failure(failure: types::Failure) -> Checked<Failure> {
    use types::Failure as Guest;
    Ok(match failure {
        Guest::NotFound(text) => Failure::NotFound(answer::message(text)),
        Guest::Pending(pending) => Failure::Pending {
            after: answer::pending_after(pending.after_ms),
            token: answer::token(pending.token)?,
            message: answer::message(pending.message),
        },
        Guest::RateLimited(throttle) => Failure::RateLimited {
            after: throttle.after_ms.map(answer::pending_after),
            message: answer::message(throttle.message),
        },
        Guest::Denied(text) => Failure::Denied(answer::message(text)),
        Guest::Invalid(text) => Failure::Invalid(answer::message(text)),
        Guest::Conflict(text) => Failure::Conflict(answer::message(text)),
        Guest::Unavailable(text) => Failure::Unavailable(answer::message(text)),
        Guest::ImplementedElsewhere(text) => Failure::ImplementedElsewhere(answer::message(text)),
        Guest::Other(text) => Failure::Other(answer::message(text)),
    })
}

fn instance(node: &str, instance: types::Instance) -> Checked<model::Instance> {
    let whose = format!("node {node:?}");
    let labels = instance.labels.into_iter().map(|pair| {
        let key = answer::present(&format!("the key of a label of {whose}"), pair.key)?;
        Ok((key, pair.value))
    });
    Ok(model::Instance {
        provider_id: answer::present(&format!("the provider id of {whose}"), instance.provider_id)?,
        instance_type: answer::optional(instance.instance_type),
        zone: answer::optional(instance.zone),
        region: answer::optional(instance.region),
        labels: labels.collect::<Checked<_>>()?,
        addresses: instance
            .addresses
            .into_iter()
            .map(|one| address(&whose, one))
            .collect::<Checked<_>>()?,
    })
}

fn presence(node: &str, presence: types::Presence) -> Checked<Presence> {
    Ok(match presence {
        types::Presence::Running(found) => Presence::Running(instance(node, found)?),
        types::Presence::Stopped(found) => Presence::Stopped(instance(node, found)?),
        types::Presence::Absent(types::Evidence::ById) => Presence::Absent(Evidence::ById),
        types::Presence::Absent(types::Evidence::ByName) => Presence::Absent(Evidence::ByName),
    })
}

pub(crate) fn lookup(
    nodes: &[model::NodeRef],
    answers: Vec<Result<types::Presence, types::Failure>>,
) -> Checked<Vec<Result<Presence, Failure>>> {
    answer::same_length("instances.lookup", nodes.len(), answers.len())?;
    nodes
        .iter()
        .zip(answers)
        .map(|(node, answer)| {
            Ok(match answer {
                Ok(found) => Ok(presence(&node.name, found)?),
                Err(failed) => Err(failure(failed)?),
            })
        })
        .collect()
}

fn protocol(protocol: services::Protocol) -> Protocol {
    match protocol {
        services::Protocol::Tcp => Protocol::Tcp,
        services::Protocol::Udp => Protocol::Udp,
        services::Protocol::Sctp => Protocol::Sctp,
    }
}

fn ingress(ingress: services::Ingress) -> Checked<model::Ingress> {
    let endpoint = match ingress.endpoint {
        services::Endpoint::Ip((ip, mode)) => {
            let mode = match mode {
                Some(services::IpMode::Proxy) => IpMode::Proxy,
                Some(services::IpMode::Vip) | None => IpMode::Vip,
            };
            answer::ip_endpoint(&ip, mode)?
        }
        services::Endpoint::Hostname(name) => answer::name_endpoint(name)?,
    };
    let ports = ingress.ports.into_iter().map(|port| model::PortStatus {
        port: port.port,
        protocol: protocol(port.protocol),
        error: answer::optional(port.error),
    });
    Ok(model::Ingress {
        endpoint,
        ports: ports.collect(),
    })
}

pub(crate) fn annotation_changes(
    changes: Vec<load_balancers::AnnotationChange>,
) -> Checked<Vec<model::AnnotationChange>> {
    changes
        .into_iter()
        .map(|change| {
            let key = answer::present("the key of an annotation change", change.key)?;
            Ok(model::AnnotationChange {
                key,
                value: change.value,
            })
        })
        .collect()
}

pub(crate) fn balancer(balancer: load_balancers::Balancer) -> Checked<model::Balancer> {
    Ok(model::Balancer {
        ingress: balancer.ingress.into_iter().map(ingress).collect::<Checked<_>>()?,
        annotations: annotation_changes(balancer.annotations)?,
    })
}

pub(crate) fn ensured_balancer(ensured: load_balancers::Balancer) -> Checked<model::Balancer> {
    if ensured.ingress.is_empty() {
        let text =
            "load-balancers.ensure succeeded without saying where the load balancer is reached (ingress is empty)";
        return Err(Nonsense(text.into()));
    }
    balancer(ensured)
}

pub(crate) fn routes(found: Vec<routes::Route>) -> Checked<Vec<model::Route>> {
    found
        .into_iter()
        .map(|route| {
            let id = answer::present("the id of a route", route.id)?;
            let whose = format!("route {id:?}");
            Ok(model::Route {
                destination: answer::cidr(&format!("the destination of {whose}"), route.destination)?,
                node: answer::optional(route.node),
                next_hops: route
                    .next_hops
                    .into_iter()
                    .map(|hop| address(&whose, hop))
                    .collect::<Checked<_>>()?,
                blackhole: route.blackhole,
                id,
            })
        })
        .collect()
}

fn each(results: Vec<Result<(), types::Failure>>) -> Checked<Vec<Result<(), Failure>>> {
    results
        .into_iter()
        .map(|result| {
            Ok(match result {
                Ok(()) => Ok(()),
                Err(failed) => Err(failure(failed)?),
            })
        })
        .collect()
}

pub(crate) fn outcome(created: usize, deleted: usize, outcome: routes::Outcome) -> Checked<model::RouteOutcome> {
    answer::same_length("routes.apply (created)", created, outcome.created.len())?;
    answer::same_length("routes.apply (deleted)", deleted, outcome.deleted.len())?;
    Ok(model::RouteOutcome {
        created: each(outcome.created)?,
        deleted: each(outcome.deleted)?,
    })
}

pub(crate) fn description(description: info::Description) -> Checked<adapter::Description> {
    let prefix = |prefix| answer::word("a provider-id prefix of info.describe", prefix);
    let http = description.http.into_iter().map(|wish| adapter::HttpWish {
        scheme: wish.scheme,
        host: wish.host,
        port: wish.port,
        methods: wish.methods,
        reason: answer::message(wish.reason),
    });
    let secrets = description.secrets.into_iter().map(|wish| adapter::SecretWish {
        name: wish.name,
        reason: answer::message(wish.reason),
    });
    Ok(adapter::Description {
        name: answer::word("the name of info.describe", description.name)?,
        version: answer::word("the version of info.describe", description.version)?,
        provider_id_prefixes: description
            .provider_id_prefixes
            .into_iter()
            .map(prefix)
            .collect::<Checked<_>>()?,
        http: http.collect(),
        secrets: secrets.collect(),
    })
}

pub(crate) fn problems(problems: Vec<info::Problem>) -> Vec<adapter::Problem> {
    problems
        .into_iter()
        .map(|problem| adapter::Problem {
            at: answer::message(problem.at),
            message: answer::message(problem.message),
        })
        .collect()
}

#[cfg(test)]
#[path = "v0_1_convert_tests.rs"]
mod tests;
