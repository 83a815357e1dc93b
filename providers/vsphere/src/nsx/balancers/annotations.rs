//! The one annotation of Services.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

use crate::nsx::settings::{BalancerSettings, Class, DEFAULT_CLASS};

/// It.
pub const TABLE: Table = Table::new(
    "loadbalancer.vmware.io/",
    &[Annotation::new(
        "class",
        DEFAULT_CLASS,
        "class of the cloud config: IP pool and application profiles. Counts when the load balancer is made; later only its profiles do",
    )],
);

/// The class that a Service requests.
///
/// # Errors
/// `invalid` for one that there is not.
pub fn class<'s>(service: &Service, settings: &'s BalancerSettings) -> Result<&'s Class, Failure> {
    let mut read = TABLE.read(service);
    let name = read.text("class").unwrap_or(DEFAULT_CLASS);
    if let Some(class) = settings.classes.get(name) {
        return Ok(class);
    }
    let known: Vec<&str> = settings.classes.keys().map(String::as_str).collect();
    let _: Option<()> = read.wrong("class", &format!("a class of the cloud config: {}", known.join(", ")));
    Err(read
        .finish()
        .err()
        .unwrap_or_else(|| Failure::invalid("the class is not known")))
}

/// Warns about what a Service requests and does not get.
pub fn warn(service: &Service, context: &Context) {
    TABLE.warn_unknown(service, context);
    if !service.source_ranges.is_empty() {
        let text = "loadBalancerSourceRanges has no effect: load balancers of NSX are open to all that reach them; use the gateway's firewall";
        context.service_event(EventKind::Warning, "SourceRangesIgnored", text);
    }
    if service.session_affinity_seconds.is_some() {
        let text = "sessionAffinity has no effect on load balancers of NSX";
        context.service_event(EventKind::Warning, "SessionAffinityIgnored", text);
    }
}
