//! Names of load balancers and public addresses. They MUST NOT change: what Baidu's own controller left behind is found by them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

/// Longest name of a BLB and an EIP, in bytes (their API references).
pub const LONGEST: usize = 65;

/// The name of a Service's load balancer without an annotation: Baidu's, or the one that all clouds have where that is too long.
pub fn of_balancer(cluster: &str, service: &Service) -> String {
    let name = format!("CCE/SVC/{cluster}/{}/{}", service.namespace, service.name);
    match name.len() <= LONGEST {
        true => name,
        false => default_balancer_name(service),
    }
}

/// A name as Baidu's controller cuts it for addresses.
pub fn of_address(name: &str) -> &str {
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or(name)
}
