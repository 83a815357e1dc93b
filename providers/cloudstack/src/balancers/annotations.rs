//! Annotations of Services.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

use super::seen::Address;

/// Whether the address is released with the Service; written by Cloudwit too.
pub const ASSOCIATED: &str = "ip-associated-by-controller";

/// All that are read.
pub const TABLE: Table = Table::new(
    "service.beta.kubernetes.io/cloudstack-load-balancer-",
    &[
        Annotation::new(
            "proxy-protocol",
            "false",
            "`true`: TCP connections begin with the PROXY protocol",
        ),
        Annotation::new("hostname", "", "published in the status instead of the address"),
        Annotation::new(
            "source-cidrs",
            "0.0.0.0/0",
            "networks that the load balancer's rules take traffic from; `spec.loadBalancerSourceRanges` is for the firewall",
        ),
        Annotation::new(
            ASSOCIATED,
            "",
            "`true`: the address of `spec.loadBalancerIP` is released with the Service; `false`: no address is. Written where it is missing",
        ),
    ],
);

/// What the annotations of a Service request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    pub proxy: bool,
    pub hostname: Option<&'a str>,
    pub cidrs: Vec<String>,
}

/// Reads them.
///
/// # Errors
/// `invalid` with all mistakes.
pub fn read(service: &Service) -> Result<Asked<'_>, Failure> {
    let mut read = TABLE.read(service);
    let cidrs = read.cidrs("source-cidrs").unwrap_or_default();
    let mut cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
    cidrs.sort_unstable();
    cidrs.dedup();
    let asked = Asked {
        proxy: read.boolean("proxy-protocol").unwrap_or_default(),
        hostname: read.text("hostname"),
        cidrs,
    };
    read.finish().map(|()| asked)
}

/// Whether the address is released with the Service, where the annotation is set and is about this address: the one that is published. Where none is, the user's
/// setting to keep it counts.
pub fn associated(service: &Service, address: &Address) -> Option<bool> {
    let said = match service.annotation(&TABLE.key(ASSOCIATED)).map(str::trim_ascii) {
        Some("true") => true,
        Some("false") => false,
        _ => return None,
    };
    let mut published = service.ingress.iter().filter_map(|point| match &point.endpoint {
        Endpoint::Ip((ip, _)) => Some(ip.as_str()),
        Endpoint::Hostname(_) => None,
    });
    match published.next() {
        Some(ip) => (ip == address.ipaddress).then_some(said),
        None => (!said || address.is_for(&service.uid)).then_some(said),
    }
}

/// The host name that is published, with other annotations wrong as well.
pub fn hostname(service: &Service) -> Option<&str> {
    let name = service.annotation(&TABLE.key("hostname")).map(str::trim_ascii);
    name.filter(|name| !name.is_empty())
}
