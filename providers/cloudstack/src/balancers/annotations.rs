//! Annotations of Services.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

/// Whether the address goes with the Service; written by us too.
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

/// What the annotations of a Service ask for.
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

/// Whether the address goes with the Service, where somebody said so.
pub fn associated(service: &Service) -> Option<bool> {
    match service.annotation(&TABLE.key(ASSOCIATED)).map(str::trim_ascii) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    }
}

/// The host name that is published, with other annotations wrong as well.
pub fn hostname(service: &Service) -> Option<&str> {
    let name = service.annotation(&TABLE.key("hostname")).map(str::trim_ascii);
    name.filter(|name| !name.is_empty())
}
