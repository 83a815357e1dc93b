//! What has to be done to a Network Load Balancer, its listeners and attributes. Pure.

use cloudwit_guest_sdk::Pair;
use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::reconcile::diff;

use crate::balancers::network::{Listener, Port, Seen, Wanted};
use crate::balancers::security_groups::tag_fields;
use crate::balancers::steps::{Step, missing_tags};

/// Creates it in these subnets. Tags are part of the request, so that it is owned from the start; addresses and groups can be given only now.
pub fn create(
    wanted: &Wanted,
    subnets: &[String],
    allocations: &[String],
    addresses: &[String],
    groups: &[String],
) -> Step {
    let mut form = Form::new().field("Name", &wanted.name).field("Type", "network");
    if wanted.internal {
        form = form.field("Scheme", "internal");
    }
    for (index, subnet) in subnets.iter().enumerate() {
        let prefix = format!("SubnetMappings.member.{}.", (index + 1));
        form = form
            .field(format!("{prefix}SubnetId"), subnet)
            .field_opt(format!("{prefix}AllocationId"), allocations.get(index))
            .field_opt(format!("{prefix}PrivateIPv4Address"), addresses.get(index));
    }
    form = form.list("SecurityGroups.member", groups);
    Step::network("CreateLoadBalancer", tag_fields(form, "Tags.member.", &wanted.tags))
}

/// Tags, attributes and security groups. `groups` is none where they are left alone.
pub fn update(
    wanted: &Wanted,
    seen: &Seen,
    tags: &[Pair],
    attributes: &[Pair],
    groups: Option<&[String]>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(add_tags(&seen.arn, &missing_tags(&wanted.tags, tags)));
    let changed = missing_tags(&wanted.attributes, attributes);
    if !changed.is_empty() {
        let form = Form::new().field("LoadBalancerArn", &seen.arn);
        steps.push(Step::network(
            "ModifyLoadBalancerAttributes",
            tag_fields(form, "Attributes.member.", &changed),
        ));
    }
    if let Some(groups) = groups.filter(|groups| !crate::balancers::classic::plan::same_set(groups, &seen.groups)) {
        let form = Form::new()
            .field("LoadBalancerArn", &seen.arn)
            .list("SecurityGroups.member", groups);
        steps.push(Step::network("SetSecurityGroups", form));
    }
    steps
}

/// Adds tags to a load balancer, listener or target group.
pub fn add_tags(arn: &str, tags: &[Pair]) -> Option<Step> {
    (!tags.is_empty()).then(|| {
        let form = Form::new().field("ResourceArns.member.1", arn);
        Step::network("AddTags", tag_fields(form, "Tags.member.", tags))
    })
}

/// The attributes of a target group that are requested and not so.
pub fn target_attributes(arn: &str, wanted: &[Pair], seen: &[Pair]) -> Option<Step> {
    let changed = missing_tags(wanted, seen);
    (!changed.is_empty()).then(|| {
        let form = Form::new().field("TargetGroupArn", arn);
        Step::network(
            "ModifyTargetGroupAttributes",
            tag_fields(form, "Attributes.member.", &changed),
        )
    })
}

/// Brings the listeners in line. `groups` are the ids of the target groups, in the order of the wanted ports. Changes first, so
/// that traffic continues; then deletions; then creations, which may need the port of a deleted one.
pub fn listeners(wanted: &Wanted, balancer: &str, seen: &[Listener], groups: &[String]) -> Vec<Step> {
    // A listener can change between TCP and TLS, but not to and from UDP.
    let udp = |protocol: &str| protocol.find("UDP").is_some();
    let ports: Vec<(&Port, &String)> = wanted.ports.iter().zip(groups).collect();
    let listeners = diff(
        &ports,
        seen,
        |(port, _), one| one.port == port.port && udp(&one.protocol) == udp(port.protocol),
        |(port, group), one| fits(one, port, group),
    );
    let changes = listeners.change.iter().map(|((port, group), listener)| {
        let form = Form::new().field("ListenerArn", &listener.arn);
        Step::network("ModifyListener", listener_fields(form, port, group))
    });
    let deletions = listeners.delete.iter().map(|listener| {
        let form = Form::new().field("ListenerArn", &listener.arn);
        Step::network("DeleteListener", form).done_by(&["ListenerNotFound"])
    });
    let creations = listeners.create.iter().map(|(port, group)| {
        let form = Form::new().field("LoadBalancerArn", balancer);
        let form = tag_fields(listener_fields(form, port, group), "Tags.member.", &wanted.tags);
        Step::network("CreateListener", form)
    });
    changes.chain(deletions).chain(creations).collect()
}

fn fits(listener: &Listener, port: &Port, group: &str) -> bool {
    let certificate = port.certificate.as_deref().unwrap_or_default();
    let same_policy = port
        .tls_policy
        .as_ref()
        .is_none_or(|policy| *policy == listener.tls_policy);
    listener.protocol == port.protocol
        && listener.group == group
        && listener.certificate.eq_ignore_ascii_case(certificate)
        && same_policy
}

fn listener_fields(form: Form, port: &Port, group: &str) -> Form {
    form.field("Protocol", port.protocol)
        .field("Port", port.port)
        .field("DefaultActions.member.1.Type", "forward")
        .field("DefaultActions.member.1.TargetGroupArn", group)
        .field_opt("Certificates.member.1.CertificateArn", port.certificate.as_ref())
        .field_opt("SslPolicy", port.tls_policy.as_ref())
}

/// Deletes it, and with it its listeners.
pub fn delete(arn: &str) -> Step {
    Step::network("DeleteLoadBalancer", Form::new().field("LoadBalancerArn", arn)).done_by(&["LoadBalancerNotFound"])
}

#[cfg(test)]
mod tests;
