//! Converts answers of guests: types of `wit/v0.1` to types of the model.
//!
//! Everything passes through `answer`, which finds invalid and secrets. Items of lists are checked one by one, and lists are walked with pauses.

use std::fmt;

use cloudwit_model as model;
use cloudwit_model::{AddressKind, Evidence, Failure, IpMode, Presence, Protocol, Reason};

use crate::call::answer::limits;
use crate::call::answer::{self, Checked, InvalidResponse, Screen};
use crate::call::walk::Walk;
use crate::contract::adapter;
use crate::contract::v0_1::generated::cloudwit::provider::{common, services};
use crate::contract::v0_1::generated::exports::cloudwit::provider::{load_balancers, routes};

pub(super) fn address(
    screen: Screen<'_>,
    whose: fmt::Arguments<'_>,
    address: common::Address,
) -> Checked<model::Address> {
    let kind = match address.kind {
        common::AddressKind::Hostname => AddressKind::Hostname,
        common::AddressKind::InternalIp => AddressKind::InternalIP,
        common::AddressKind::ExternalIp => AddressKind::ExternalIP,
        common::AddressKind::InternalDns => AddressKind::InternalDNS,
        common::AddressKind::ExternalDns => AddressKind::ExternalDNS,
    };
    screen.address(whose, kind, address.value)
}

pub(super) fn addresses(
    screen: Screen<'_>,
    whose: fmt::Arguments<'_>,
    all: Vec<common::Address>,
) -> Checked<Vec<model::Address>> {
    all.into_iter().map(|one| address(screen, whose, one)).collect()
}

pub(crate) fn failure(screen: Screen<'_>, failure: common::Failure) -> Checked<Failure> {
    use common::FailureKind as Kind;
    let reason = Reason {
        message: screen.message(&failure.message),
        code: answer::optional(failure.code).map(|code| screen.shown(&code, limits::WORD)),
    };
    let after = failure.retry_after.map(answer::retry_after);
    let of_kind = match failure.kind {
        Kind::Pending(token) => {
            return Ok(Failure::Pending {
                after: after.unwrap_or(answer::DEFAULT_PENDING),
                token: answer::token(token)?,
                message: reason.to_string(),
            });
        }
        Kind::RateLimited => return Ok(Failure::RateLimited { after, message: reason }),
        Kind::NotFound => Failure::NotFound,
        Kind::AlreadyExists => Failure::AlreadyExists,
        Kind::Denied => Failure::Denied,
        Kind::Invalid => Failure::Invalid,
        Kind::Conflict => Failure::Conflict,
        Kind::Exhausted => Failure::Exhausted,
        Kind::OutOfRange => Failure::OutOfRange,
        Kind::FailedPrecondition => Failure::FailedPrecondition,
        Kind::Aborted => Failure::Aborted,
        Kind::Unavailable => Failure::Unavailable,
        Kind::ImplementedElsewhere => Failure::ImplementedElsewhere,
        Kind::Other => Failure::Other,
    };
    Ok(of_kind(reason))
}

/// What an item of a list comes to: invalid costs this item alone.
pub(super) fn item<T>(screen: Screen<'_>, item: Result<Checked<T>, common::Failure>) -> Result<T, Failure> {
    let invalid = match item {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(invalid)) => invalid,
        Err(failed) => match failure(screen, failed) {
            Ok(failure) => return Err(failure),
            Err(invalid) => invalid,
        },
    };
    Err(screen.invalid(&invalid))
}

/// Checks what later patches of the version would read, and this host does not.
pub(super) fn extra(screen: Screen<'_>, whose: fmt::Arguments<'_>, pairs: Vec<common::Pair>) -> Checked<()> {
    answer::at_most(format_args!("the extra facts of {whose}"), &pairs, limits::EXTRA)?;
    for common::Pair { key, value } in pairs {
        let key = screen.name(format_args!("the key of an extra fact of {whose}"), key, limits::KEY)?;
        let what = format_args!("the extra fact {key:?} of {whose}");
        screen.value(what, value, limits::EXTRA_VALUE)?;
    }
    Ok(())
}

/// Bytes of all texts about the machine.
pub(super) fn instance_bytes(instance: &common::Instance) -> usize {
    let optional = [&instance.instance_type, &instance.zone, &instance.region];
    let optional = optional.into_iter().flatten().map(String::len);
    let addresses = instance.addresses.iter().map(|address| address.value.len());
    let pairs = instance.labels.iter().chain(&instance.extra);
    let pairs = pairs.map(|pair| pair.key.len() + pair.value.len());
    instance.provider_id.len() + optional.chain(addresses).chain(pairs).sum::<usize>()
}

pub(super) fn instance(screen: Screen<'_>, node: &str, instance: common::Instance) -> Checked<model::Instance> {
    let whose = format_args!("node {node:?}");
    answer::at_most(
        format_args!("the addresses of {whose}"),
        &instance.addresses,
        limits::ADDRESSES,
    )?;
    answer::at_most(format_args!("the labels of {whose}"), &instance.labels, limits::LABELS)?;
    let bytes = instance_bytes(&instance);
    if bytes > limits::INSTANCE {
        let most = limits::INSTANCE;
        return Err(InvalidResponse(format!(
            "the machine of {whose} has {bytes} bytes of text, at most {most} are allowed"
        )));
    }
    extra(screen, whose, instance.extra)?;
    let label = |pair: common::Pair| {
        let key = screen.name(format_args!("the key of a label of {whose}"), pair.key, limits::KEY)?;
        let what = format_args!("the label {key:?} of {whose}");
        let value = screen.value(what, pair.value, limits::LABEL_VALUE)?;
        Ok((key, value))
    };
    let fact = |what: &str, value| screen.optional(format_args!("the {what} of {whose}"), value, limits::LABEL_VALUE);
    Ok(model::Instance {
        provider_id: screen.name(
            format_args!("the provider id of {whose}"),
            instance.provider_id,
            limits::ID,
        )?,
        instance_type: fact("instance type", instance.instance_type)?,
        zone: fact("zone", instance.zone)?,
        region: fact("region", instance.region)?,
        labels: instance.labels.into_iter().map(label).collect::<Checked<_>>()?,
        addresses: addresses(screen, whose, instance.addresses)?,
    })
}

pub(super) fn presence(screen: Screen<'_>, node: &str, presence: common::Presence) -> Checked<Presence> {
    Ok(match presence {
        common::Presence::Running(found) => Presence::Running(instance(screen, node, found)?),
        common::Presence::Stopped(found) => Presence::Stopped(instance(screen, node, found)?),
        common::Presence::Absent(common::Evidence::ById) => Presence::Absent(Evidence::ById),
        common::Presence::Absent(common::Evidence::ByName) => Presence::Absent(Evidence::ByName),
    })
}

pub(crate) async fn lookup(
    screen: Screen<'_>,
    walk: &mut Walk,
    nodes: &[model::NodeRef],
    answers: Vec<Result<common::Presence, common::Failure>>,
) -> Checked<Vec<Result<Presence, Failure>>> {
    answer::same_length("instances.lookup", nodes.len(), answers.len())?;
    let mut found = Vec::with_capacity(nodes.len());
    for (node, answer) in nodes.iter().zip(answers) {
        walk.next(match &answer {
            Ok(common::Presence::Running(instance) | common::Presence::Stopped(instance)) => instance_bytes(instance),
            Ok(common::Presence::Absent(_)) => 0,
            Err(_) => limits::MESSAGE,
        })
        .await;
        let checked = answer.map(|answer| presence(screen, &node.name, answer));
        found.push(item(screen, checked));
    }
    Ok(found)
}

pub(super) fn protocol(protocol: services::Protocol) -> Protocol {
    match protocol {
        services::Protocol::Tcp => Protocol::Tcp,
        services::Protocol::Udp => Protocol::Udp,
        services::Protocol::Sctp => Protocol::Sctp,
    }
}

pub(super) fn ingress(screen: Screen<'_>, ingress: services::Ingress) -> Checked<model::Ingress> {
    let endpoint = match ingress.endpoint {
        services::Endpoint::Ip((ip, mode)) => {
            let mode = match mode {
                Some(services::IpMode::Proxy) => IpMode::Proxy,
                Some(services::IpMode::Vip) | None => IpMode::Vip,
            };
            answer::ip_endpoint(&ip, mode)?
        }
        services::Endpoint::Hostname(name) => screen.name_endpoint(name)?,
    };
    answer::at_most(format_args!("the ports of an ingress"), &ingress.ports, limits::PORTS)?;
    let port = |port: services::PortStatus| {
        let what = format_args!("the error of ingress port {}", port.port);
        Ok(model::PortStatus {
            port: port.port,
            protocol: protocol(port.protocol),
            error: screen.optional(what, port.error, limits::PORT_ERROR)?,
        })
    };
    Ok(model::Ingress {
        endpoint,
        ports: ingress.ports.into_iter().map(port).collect::<Checked<_>>()?,
    })
}

pub(crate) async fn annotation_changes(
    screen: Screen<'_>,
    walk: &mut Walk,
    changes: Vec<load_balancers::AnnotationChange>,
) -> Checked<Vec<model::AnnotationChange>> {
    answer::at_most(
        format_args!("the list of annotation changes"),
        &changes,
        limits::ANNOTATIONS,
    )?;
    let mut all = Vec::with_capacity(changes.len());
    for change in changes {
        walk.next(limits::ANNOTATION_VALUE).await;
        let key = screen.name(format_args!("the key of an annotation change"), change.key, limits::KEY)?;
        let what = format_args!("the new value of annotation {key:?}");
        let value = change
            .value
            .map(|value| screen.value(what, value, limits::ANNOTATION_VALUE));
        all.push(model::AnnotationChange {
            value: value.transpose()?,
            key,
        });
    }
    Ok(all)
}

pub(crate) async fn target_updates(
    screen: Screen<'_>,
    walk: &mut Walk,
    asked: usize,
    results: Vec<Result<Vec<load_balancers::AnnotationChange>, common::Failure>>,
) -> Checked<Vec<Result<Vec<model::AnnotationChange>, Failure>>> {
    answer::same_length("load-balancers.update-targets", asked, results.len())?;
    let mut all = Vec::with_capacity(asked);
    for result in results {
        walk.next(if result.is_ok() { 0 } else { limits::MESSAGE }).await;
        let checked = match result {
            Ok(changes) => Ok(annotation_changes(screen, walk, changes).await),
            Err(failed) => Err(failed),
        };
        all.push(item(screen, checked));
    }
    Ok(all)
}

pub(crate) async fn balancer(
    screen: Screen<'_>,
    walk: &mut Walk,
    balancer: load_balancers::Balancer,
) -> Checked<model::Balancer> {
    answer::at_most(format_args!("the ingress list"), &balancer.ingress, limits::INGRESSES)?;
    let mut all = Vec::with_capacity(balancer.ingress.len());
    for one in balancer.ingress {
        walk.next(one.ports.len().saturating_mul(limits::PORT_ERROR)).await;
        all.push(ingress(screen, one)?);
    }
    Ok(model::Balancer {
        ingress: all,
        annotations: annotation_changes(screen, walk, balancer.annotations).await?,
        remaining: balancer
            .remaining
            .map(|work| remaining_work(screen, work))
            .transpose()?,
    })
}

fn remaining_work(screen: Screen<'_>, work: load_balancers::RemainingWork) -> Checked<model::RemainingWork> {
    Ok(model::RemainingWork {
        after: work.retry_after.map_or(answer::DEFAULT_PENDING, answer::retry_after),
        token: answer::token(work.token)?,
        message: screen.message(&work.message),
    })
}

pub(crate) async fn ensured_balancer(
    screen: Screen<'_>,
    walk: &mut Walk,
    ensured: load_balancers::Balancer,
) -> Checked<model::Balancer> {
    if ensured.ingress.is_empty() {
        let text =
            "load-balancers.ensure succeeded without saying where the load balancer is reached (ingress is empty)";
        return Err(InvalidResponse(text.into()));
    }
    balancer(screen, walk, ensured).await
}

pub(crate) fn balancer_name(screen: Screen<'_>, name: String) -> Checked<String> {
    screen.name(
        format_args!("the name of the load balancer"),
        name,
        limits::BALANCER_NAME,
    )
}

pub(super) fn route(screen: Screen<'_>, route: routes::Route) -> Checked<model::Route> {
    let id = screen.name(format_args!("the id of a route"), route.id, limits::ID)?;
    let whose = format_args!("route {id:?}");
    answer::at_most(
        format_args!("the next hops of {whose}"),
        &route.next_hops,
        limits::NEXT_HOPS,
    )?;
    Ok(model::Route {
        destination: answer::cidr(format_args!("the destination of {whose}"), route.destination)?,
        node: screen.optional(format_args!("the node of {whose}"), route.node, limits::HOST_NAME)?,
        next_hops: addresses(screen, whose, route.next_hops)?,
        blackhole: route.blackhole,
        id,
    })
}

/// All routes that make sense. One that does not is left out: what it may stand for is unknown, and the others are as good as without it.
pub(crate) async fn routes(
    screen: Screen<'_>,
    walk: &mut Walk,
    found: Vec<routes::Route>,
) -> Checked<adapter::Listed<model::Route>> {
    answer::at_most(format_args!("the list of routes"), &found, limits::ROUTES)?;
    let bytes = |one: &routes::Route| {
        let hops: usize = one.next_hops.iter().map(|hop| hop.value.len()).sum();
        one.id.len() + one.destination.len() + hops
    };
    Ok(listed(screen, walk, found, bytes, |one| route(screen, one)).await)
}

/// Converts a list; what is invalid is left out. `bytes` is how much text an item has.
pub(super) async fn listed<T, U>(
    screen: Screen<'_>,
    walk: &mut Walk,
    found: Vec<T>,
    bytes: impl Fn(&T) -> usize,
    convert: impl Fn(T) -> Checked<U>,
) -> adapter::Listed<U> {
    let mut listed = adapter::Listed {
        items: Vec::with_capacity(found.len()),
        left_out: 0,
        first_problem: None,
    };
    for one in found {
        walk.next(bytes(&one)).await;
        match convert(one) {
            Ok(one) => listed.items.push(one),
            Err(invalid) => {
                listed.left_out += 1;
                listed.first_problem.get_or_insert_with(|| screen.message(&invalid.0));
            }
        }
    }
    listed
}

async fn each(
    screen: Screen<'_>,
    walk: &mut Walk,
    results: Vec<Result<(), common::Failure>>,
) -> Vec<Result<(), Failure>> {
    let mut all = Vec::with_capacity(results.len());
    for result in results {
        walk.next(if result.is_ok() { 0 } else { limits::MESSAGE }).await;
        all.push(item(screen, result.map(Ok)));
    }
    all
}

pub(crate) async fn outcome(
    screen: Screen<'_>,
    walk: &mut Walk,
    (created, deleted): (usize, usize),
    outcome: routes::Outcome,
) -> Checked<model::RouteOutcome> {
    answer::same_length("routes.apply (created)", created, outcome.created.len())?;
    answer::same_length("routes.apply (deleted)", deleted, outcome.deleted.len())?;
    Ok(model::RouteOutcome {
        created: each(screen, walk, outcome.created).await,
        deleted: each(screen, walk, outcome.deleted).await,
    })
}

#[cfg(test)]
pub(crate) mod tests;
