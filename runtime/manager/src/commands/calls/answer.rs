//! Answers of a provider as JSON, for people and for comparing.

use cloudwit_model::{
    AnnotationChange, Balancer, CloudError, Endpoint, Evidence, Failure, Ingress, Instance, IpMode, NodeRef, Presence,
    Protocol, Route,
};
use serde_json::{Map, Value, json};

/// One for each Node.
pub fn lookup(nodes: &[NodeRef], answers: &[Result<Presence, Failure>]) -> Value {
    let one = |(node, answer): (&NodeRef, &Result<Presence, Failure>)| {
        let mut object = match answer {
            Ok(found) => presence(found),
            Err(failed) => failure(failed),
        };
        object.insert("node".into(), node.name.clone().into());
        Value::from(object)
    };
    nodes.iter().zip(answers).map(one).collect()
}

fn presence(presence: &Presence) -> Map<String, Value> {
    let (word, machine) = match presence {
        Presence::Running(machine) => ("running", Some(machine)),
        Presence::Stopped(machine) => ("stopped", Some(machine)),
        Presence::Absent(Evidence::ById) => ("absent, by id", None),
        Presence::Absent(Evidence::ByName) => ("absent, by name", None),
    };
    let mut object = machine.map(instance).unwrap_or_default();
    object.insert("presence".into(), word.into());
    object
}

/// A machine of the cloud.
pub fn instance(machine: &Instance) -> Map<String, Value> {
    let addresses = machine.addresses.iter();
    let addresses: Vec<Value> = addresses
        .map(|address| json!({"type": address.kind.as_str(), "address": address.value}))
        .collect();
    let mut object = Map::new();
    object.insert("providerID".into(), machine.provider_id.clone().into());
    for (name, value) in [
        ("instanceType", &machine.instance_type),
        ("zone", &machine.zone),
        ("region", &machine.region),
    ] {
        if let Some(value) = value {
            object.insert(name.into(), value.clone().into());
        }
    }
    object.insert("addresses".into(), addresses.into());
    if !machine.labels.is_empty() {
        object.insert("labels".into(), json!(machine.labels));
    }
    object
}

/// A failure with its kind.
pub fn failure(failure: &Failure) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("failure".into(), failure.label().into());
    object.insert("message".into(), failure.to_string().into());
    object
}

/// Why a call has no answer.
pub fn error(error: &CloudError) -> Value {
    match error {
        CloudError::Failure(failed) => failure(failed).into(),
        CloudError::Fault(fault) => json!({"fault": fault.kind.label(), "message": fault.to_string()}),
        CloudError::DryRun => json!({"failure": error.label()}),
    }
}

/// A load balancer; null where there is none.
pub fn balancer(balancer: &Balancer) -> Value {
    let ingress: Vec<Value> = balancer.ingress.iter().map(point).collect();
    let mut object = json!({"ingress": ingress, "annotations": annotations(&balancer.annotations)});
    if let Some(work) = &balancer.remaining {
        let after = work.after.as_millis();
        object["remaining"] = json!({"token": work.token, "message": work.message, "retryAfterMilliseconds": after});
    }
    object
}

fn point(ingress: &Ingress) -> Value {
    let mut object = match &ingress.endpoint {
        Endpoint::Ip(ip, IpMode::Vip) => json!({"ip": ip.to_string(), "ipMode": "VIP"}),
        Endpoint::Ip(ip, IpMode::Proxy) => json!({"ip": ip.to_string(), "ipMode": "Proxy"}),
        Endpoint::Hostname(name) => json!({"hostname": name}),
    };
    let ports = ingress.ports.iter().map(|status| {
        let protocol = match status.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        json!({"port": status.port, "protocol": protocol, "error": status.error})
    });
    let ports: Vec<Value> = ports.collect();
    if !ports.is_empty() {
        object["ports"] = ports.into();
    }
    object
}

/// Annotations of the Service: new values, null for those to remove.
pub fn annotations(changes: &[AnnotationChange]) -> Value {
    let changes = changes.iter();
    changes
        .map(|change| (change.key.clone(), change.value.clone().into()))
        .collect::<Map<String, Value>>()
        .into()
}

/// One for each route.
pub fn routes(routes: &[Route]) -> Value {
    let one = |route: &Route| {
        let next_hops: Vec<&str> = route.next_hops.iter().map(|hop| hop.value.as_str()).collect();
        json!({
            "id": route.id, "destination": route.destination, "node": route.node,
            "nextHops": next_hops, "blackhole": route.blackhole,
        })
    };
    routes.iter().map(one).collect()
}

/// What became of changes: an empty object for each that was made.
pub fn changes(results: &[Result<(), Failure>]) -> Value {
    let one = |result: &Result<(), Failure>| match result {
        Ok(()) => json!({}),
        Err(failed) => failure(failed).into(),
    };
    results.iter().map(one).collect()
}
