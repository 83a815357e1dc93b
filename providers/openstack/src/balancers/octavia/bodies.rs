//! Request bodies for Octavia: desired parts as JSON, alone or all in one POST. Pure.

use crate::api::wire::Object;
use crate::balancers::annotations::VipSource;
use crate::balancers::names::part;
use crate::balancers::octavia::{MONITOR_NUMBERS, Member, Monitor, TIMEOUTS};
use crate::balancers::wanted::{Wanted, WantedPort};

/// The header that `x-forwarded-for` adds.
pub const FORWARDED_FOR: &str = "X-Forwarded-For";

/// What a load balancer has beside its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Free text.
    pub description: String,
    /// Octavia's provider.
    pub provider: &'a str,
    /// Flavor.
    pub flavor_id: Option<&'a str>,
    /// Availability zone.
    pub availability_zone: Option<&'a str>,
    /// Where the virtual IP is.
    pub vip: VipSource<'a>,
    /// Which it is.
    pub vip_address: Option<&'a str>,
    /// Whether it gets a tag.
    pub tagged: bool,
    /// Whether listeners, pools, members and monitors come with it.
    pub whole: bool,
}

/// A load balancer, with everything below it unless it has to be made piece by piece.
pub fn balancer(frame: &Frame<'_>, wanted: &Wanted<'_>) -> Object {
    let mut body = Object::new()
        .text("name", wanted.name)
        .text("description", &frame.description)
        .text("provider", frame.provider)
        .text_opt("flavor_id", frame.flavor_id)
        .text_opt("availability_zone", frame.availability_zone)
        .text_opt("vip_address", frame.vip_address);
    body = match frame.vip.port_id {
        Some(port) => body.text("vip_port_id", port),
        None => body
            .text_opt("vip_subnet_id", frame.vip.subnet_id)
            .text_opt("vip_network_id", frame.vip.network_id),
    };
    if frame.tagged {
        body = body.texts("tags", [wanted.name]);
    }
    if frame.whole {
        let listeners = wanted.ports.iter().map(|port| {
            let mut pool = pool(port, wanted.name).objects("members", members(&port.members, wanted));
            if let Some(wanted) = &port.monitor {
                pool = pool.object("healthmonitor", monitor(wanted));
            }
            listener(port, wanted.name).object("default_pool", pool)
        });
        body = body.objects("listeners", listeners);
    }
    body
}

/// A listener.
pub fn listener(port: &WantedPort<'_>, name: &str) -> Object {
    let mut body = Object::new()
        .text("name", &part("listener", port.index, name))
        .text("protocol", port.protocol)
        .number("protocol_port", port.port)
        .number("connection_limit", port.connection_limit);
    if let Some(timeouts) = port.timeouts {
        body = TIMEOUTS
            .iter()
            .zip(timeouts)
            .fold(body, |body, (key, value)| body.number(key, value));
    }
    if port.forwarded_for {
        body = body.object("insert_headers", Object::new().text(FORWARDED_FOR, "true"));
    }
    if !port.tls_container.is_empty() {
        body = body.text("default_tls_container_ref", port.tls_container);
    }
    if let Some(cidrs) = &port.allowed_cidrs {
        body = body.texts("allowed_cidrs", cidrs.iter().map(String::as_str));
    }
    if port.tagged { body.texts("tags", [name]) } else { body }
}

/// A pool without members.
pub fn pool(port: &WantedPort<'_>, name: &str) -> Object {
    let body = Object::new()
        .text("name", &part("pool", port.index, name))
        .text("protocol", port.pool_protocol)
        .text("lb_algorithm", port.method);
    if port.persistence.is_empty() {
        body
    } else {
        body.object("session_persistence", persistence(port))
    }
}

/// How clients stay with their member.
pub fn persistence(port: &WantedPort<'_>) -> Object {
    Object::new().text("type", port.persistence)
}

/// A member.
pub fn member(member: &Member, wanted: &Wanted<'_>) -> Object {
    let body = Object::new()
        .text("name", &member.name)
        .text("address", &member.address)
        .number("protocol_port", member.port)
        .text_opt("subnet_id", wanted.member_subnet_id);
    match member.monitor_port {
        Some(port) => body.number("monitor_port", port),
        None => body,
    }
}

/// Members.
pub fn members(all: &[Member], wanted: &Wanted<'_>) -> Vec<Object> {
    all.iter().map(|one| member(one, wanted)).collect()
}

/// A monitor.
pub fn monitor(wanted: &Monitor) -> Object {
    let body = Object::new().text("name", &wanted.name).text("type", &wanted.kind);
    let body = monitor_numbers(body, wanted);
    if wanted.kind == "HTTP" {
        body.text("url_path", "/healthz")
            .text("http_method", "GET")
            .text("expected_codes", "200")
    } else {
        body
    }
}

/// What can be changed of a monitor.
pub fn monitor_numbers(body: Object, wanted: &Monitor) -> Object {
    MONITOR_NUMBERS
        .iter()
        .zip(wanted.numbers)
        .fold(body, |body, (key, value)| body.number(key, value))
}
