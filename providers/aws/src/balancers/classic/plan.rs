//! What has to be done to a Classic Load Balancer. Pure: wanted and seen in, requests out, in an order in which each may be the last before a
//! crash: whatever is left undone shows as a difference the next time.

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::reconcile::diff;

use crate::balancers::classic::{Attributes, HealthCheck, Listener, Seen, Wanted};
use crate::balancers::security_groups::tag_fields;
use crate::balancers::steps::{Step, missing_tags};

/// Policy that sends the PROXY protocol to a node port (kubernetes/cloud-provider-aws, `ProxyProtocolPolicyName`).
const PROXY_POLICY: &str = "k8s-proxyprotocol-enabled";

/// How the names of TLS policies begin that stand for one of the cloud's (kubernetes/cloud-provider-aws, `SSLNegotiationPolicyNameFormat`).
const TLS_POLICY_PREFIX: &str = "k8s-SSLNegotiationPolicy-";

/// Creates it. Tags are part of the request, so that it is owned from the start.
pub fn create(wanted: &Wanted) -> Step {
    let mut form = named(wanted);
    form = listener_fields(form, &wanted.listeners);
    if wanted.internal {
        form = form.field("Scheme", "internal");
    }
    form = form
        .list("Subnets.member", &wanted.subnets)
        .list("SecurityGroups.member", &wanted.groups);
    Step::classic("CreateLoadBalancer", tag_fields(form, "Tags.member.", &wanted.tags))
}

/// As it is right after creation: what could not be set then is open.
pub fn just_created(wanted: &Wanted, dns_name: String) -> Seen {
    Seen {
        dns_name,
        internal: wanted.internal,
        listeners: wanted
            .listeners
            .iter()
            .map(|listener| (listener.clone(), Vec::new()))
            .collect(),
        tags: wanted.tags.clone(),
        subnets: wanted.subnets.clone(),
        groups: wanted.groups.clone(),
        ..Seen::default()
    }
}

/// Everything but instances. None when all is right.
pub fn update(wanted: &Wanted, seen: &Seen) -> Vec<Step> {
    let mut steps = Vec::new();
    let tags = missing_tags(&wanted.tags, &seen.tags);
    if !tags.is_empty() {
        let form = Form::new().field("LoadBalancerNames.member.1", &wanted.name);
        steps.push(Step::classic("AddTags", tag_fields(form, "Tags.member.", &tags)));
    }
    subnets(wanted, seen, &mut steps);
    if !same_set(&wanted.groups, &seen.groups) {
        steps.push(apply_groups(wanted));
    }
    let kept = listeners(wanted, seen, &mut steps);
    proxy_protocol(wanted, seen, &mut steps);
    tls_policy(wanted, seen, &kept, &mut steps);
    if seen.health.as_ref() != Some(&wanted.health) {
        steps.push(Step::classic(
            "ConfigureHealthCheck",
            health_fields(named(wanted), &wanted.health),
        ));
    }
    if !seen
        .attributes
        .as_ref()
        .is_some_and(|seen| seen.fit(&wanted.attributes))
    {
        let form = attribute_fields(named(wanted), &wanted.attributes);
        steps.push(Step::classic("ModifyLoadBalancerAttributes", form));
    }
    steps
}

/// Puts it into its security groups and no others.
pub fn apply_groups(wanted: &Wanted) -> Step {
    let form = named(wanted).list("SecurityGroups.member", &wanted.groups);
    Step::classic("ApplySecurityGroupsToLoadBalancer", form)
}

/// Brings the registered instances in line: additions first, so that there is always a target. What comes between the two halves is the
/// caller's: rules of groups that are not needed any more.
pub fn instances(name: &str, wanted: &[String], seen: &[String]) -> (Option<Step>, Option<Step>) {
    let step = |action, ids: Vec<&String>| {
        let mut form = Form::new().field("LoadBalancerName", name);
        for (index, id) in ids.iter().enumerate() {
            form = form.field(format!("Instances.member.{}.InstanceId", (index + 1)), id);
        }
        (!ids.is_empty()).then(|| Step::classic(action, form))
    };
    let coming = wanted.iter().filter(|id| !seen.contains(id)).collect();
    let leaving = seen.iter().filter(|id| !wanted.contains(id)).collect();
    (
        step("RegisterInstancesWithLoadBalancer", coming),
        step("DeregisterInstancesFromLoadBalancer", leaving).map(|step| step.done_by(&["InvalidInstance"])),
    )
}

/// Deletes it; one that does not exist is deleted.
pub fn delete(name: &str) -> Step {
    Step::classic("DeleteLoadBalancer", Form::new().field("LoadBalancerName", name))
}

/// Only the TLS policy, which `update-targets` keeps in line too.
pub fn update_tls_policy(wanted: &Wanted, seen: &Seen) -> Vec<Step> {
    let mut steps = Vec::new();
    let all: Vec<(&Listener, &[String])> = seen
        .listeners
        .iter()
        .map(|(listener, policies)| (listener, policies.as_slice()))
        .collect();
    tls_policy(wanted, seen, &all, &mut steps);
    steps
}

/// Detaches before it attaches: two subnets of one zone cannot be attached at once.
fn subnets(wanted: &Wanted, seen: &Seen, steps: &mut Vec<Step>) {
    let subnets = diff(&wanted.subnets, &seen.subnets, String::eq, |_, _| true);
    let (coming, leaving) = (subnets.create, subnets.delete);
    // The last subnet cannot be detached. Where all change, the new ones come first, which works unless they share a zone.
    let all_change = leaving.len() == seen.subnets.len();
    let detach = (!leaving.is_empty()).then(|| {
        Step::classic(
            "DetachLoadBalancerFromSubnets",
            named(wanted).list("Subnets.member", &leaving),
        )
    });
    let attach = (!coming.is_empty()).then(|| {
        Step::classic(
            "AttachLoadBalancerToSubnets",
            named(wanted).list("Subnets.member", &coming),
        )
    });
    let (first, second) = if all_change { (attach, detach) } else { (detach, attach) };
    steps.extend(first);
    steps.extend(second);
}

/// A changed listener is deleted and made again: the cloud has no other way. Gives those that stand afterwards, with what is known of their
/// policies.
fn listeners<'a>(wanted: &'a Wanted, seen: &'a Seen, steps: &mut Vec<Step>) -> Vec<(&'a Listener, &'a [String])> {
    let same = |a: &Listener, (b, _): &(Listener, Vec<String>)| {
        let arn = |listener: &Listener| listener.certificate.as_deref().unwrap_or_default().to_ascii_lowercase();
        (a.protocol, a.port, a.node_protocol, a.node_port) == (b.protocol, b.port, b.node_protocol, b.node_port)
            && arn(a) == arn(b)
    };
    let listeners = diff(&wanted.listeners, &seen.listeners, same, |_, _| true);
    if !listeners.delete.is_empty() {
        let ports = listeners.delete.iter().map(|(listener, _)| listener.port.to_string());
        let form = named(wanted).list("LoadBalancerPorts.member", ports);
        steps.push(Step::classic("DeleteLoadBalancerListeners", form));
    }
    if !listeners.create.is_empty() {
        let form = listener_fields(named(wanted), listeners.create);
        steps.push(Step::classic("CreateLoadBalancerListeners", form));
    }
    let after = wanted.listeners.iter().map(|listener| {
        let there = seen.listeners.iter().find(|there| same(listener, there));
        (listener, there.map_or(&[][..], |(_, policies)| policies))
    });
    after.collect()
}

fn proxy_protocol(wanted: &Wanted, seen: &Seen, steps: &mut Vec<Step>) {
    let empty: &[String] = &[];
    let policies = |port: u16| {
        let backend = seen.backends.iter().find(|(backend, _)| *backend == port);
        backend.map_or(empty, |(_, policies)| policies.as_slice())
    };
    let mut ports: Vec<u16> = wanted.listeners.iter().map(|listener| listener.node_port).collect();
    // Policies outlive the listeners of their port.
    ports.extend(seen.backends.iter().map(|(port, _)| *port));
    ports.sort();
    ports.dedup();
    let mut set = Vec::new();
    for port in ports {
        let want = wanted.proxy_protocol && wanted.listeners.iter().any(|listener| listener.node_port == port);
        let has = policies(port).iter().any(|name| name == PROXY_POLICY);
        if want != has {
            // Other policies of the port are foreign and stay.
            let others = policies(port)
                .iter()
                .map(String::as_str)
                .filter(|name| *name != PROXY_POLICY);
            let names: Vec<&str> = others.chain(want.then_some(PROXY_POLICY)).collect();
            let mut form = named(wanted).field("InstancePort", port);
            // An empty list has to be sent as such.
            form = if names.is_empty() {
                form.field("PolicyNames", "")
            } else {
                form.list("PolicyNames.member", names)
            };
            set.push(Step::classic("SetLoadBalancerPoliciesForBackendServer", form));
        }
    }
    if !set.is_empty() && wanted.proxy_protocol && !seen.policies.iter().any(|name| name == PROXY_POLICY) {
        steps.push(create_policy(
            wanted,
            PROXY_POLICY,
            "ProxyProtocolPolicyType",
            "ProxyProtocol",
            "true",
        ));
    }
    steps.append(&mut set);
}

fn tls_policy(wanted: &Wanted, seen: &Seen, listeners: &[(&Listener, &[String])], steps: &mut Vec<Step>) {
    let Some(reference) = &wanted.tls_policy else {
        return;
    };
    let name = format!("{TLS_POLICY_PREFIX}{reference}");
    let mut set = Vec::new();
    for (listener, policies) in listeners {
        if matches!(listener.protocol, "SSL" | "HTTPS") && !policies.contains(&name) {
            let form = named(wanted)
                .field("LoadBalancerPort", listener.port)
                .list("PolicyNames.member", [&name]);
            set.push(Step::classic("SetLoadBalancerPoliciesOfListener", form));
        }
    }
    if !set.is_empty() && !seen.policies.contains(&name) {
        steps.push(create_policy(
            wanted,
            &name,
            "SSLNegotiationPolicyType",
            "Reference-Security-Policy",
            reference,
        ));
    }
    steps.append(&mut set);
}

fn create_policy(wanted: &Wanted, name: &str, kind: &str, attribute: &str, value: &str) -> Step {
    let form = named(wanted)
        .field("PolicyName", name)
        .field("PolicyTypeName", kind)
        .field("PolicyAttributes.member.1.AttributeName", attribute)
        .field("PolicyAttributes.member.1.AttributeValue", value);
    Step::classic("CreateLoadBalancerPolicy", form).done_by(&["DuplicatePolicyName"])
}

fn named(wanted: &Wanted) -> Form {
    Form::new().field("LoadBalancerName", &wanted.name)
}

fn listener_fields<'a>(mut form: Form, listeners: impl IntoIterator<Item = &'a Listener>) -> Form {
    for (index, listener) in listeners.into_iter().enumerate() {
        let prefix = format!("Listeners.member.{}.", (index + 1));
        let name = |field: &str| format!("{prefix}{field}");
        form = form
            .field(name("Protocol"), listener.protocol)
            .field(name("LoadBalancerPort"), listener.port)
            .field(name("InstanceProtocol"), listener.node_protocol)
            .field(name("InstancePort"), listener.node_port)
            .field_opt(name("SSLCertificateId"), listener.certificate.as_ref());
    }
    form
}

fn health_fields(form: Form, health: &HealthCheck) -> Form {
    form.field("HealthCheck.Target", &health.target)
        .field("HealthCheck.Interval", health.interval)
        .field("HealthCheck.Timeout", health.timeout)
        .field("HealthCheck.UnhealthyThreshold", health.unhealthy)
        .field("HealthCheck.HealthyThreshold", health.healthy)
}

fn attribute_fields(mut form: Form, attributes: &Attributes) -> Form {
    let mut field = |name: &str, value: &str| {
        form.push(&format!("LoadBalancerAttributes.{name}"), value);
    };
    let logs = &attributes.access_log;
    field("CrossZoneLoadBalancing.Enabled", on(attributes.cross_zone));
    field("AccessLog.Enabled", on(logs.enabled));
    if logs.enabled {
        field("AccessLog.EmitInterval", &logs.interval.to_string());
        field("AccessLog.S3BucketName", &logs.bucket);
        field("AccessLog.S3BucketPrefix", &logs.prefix);
    }
    field("ConnectionDraining.Enabled", on(attributes.draining.is_some()));
    if let Some(seconds) = attributes.draining {
        field("ConnectionDraining.Timeout", &seconds.to_string());
    }
    field("ConnectionSettings.IdleTimeout", &attributes.idle_timeout.to_string());
    form
}

/// As the cloud writes it.
pub fn on(on: bool) -> &'static str {
    if on { "true" } else { "false" }
}

/// Whether both have the same members, in whatever order.
pub fn same_set(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().all(|one| b.contains(one))
}

#[cfg(test)]
mod tests;
