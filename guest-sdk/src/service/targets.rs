//! Targets of load balancers: which address of a Node gets traffic.

use std::net::IpAddr;

use crate::types::{AddressKind, IpFamily, NodeRef};

/// The address of a Node that gets traffic: the first internal one of the family, else the first external one. None while the Node has none.
///
/// ```
/// # use cloudwit_guest_sdk::{Address, AddressKind, IpFamily, NodeRef, targets};
/// let mut node = NodeRef::named("node-1");
/// node.addresses = vec![
///     Address::new(AddressKind::ExternalIp, "192.0.2.1"),
///     Address::new(AddressKind::InternalIp, "fd00::1"),
///     Address::new(AddressKind::InternalIp, "10.0.0.1"),
/// ];
/// assert_eq!(targets::address(&node, Some(IpFamily::Ipv4)), Some("10.0.0.1"));
/// assert_eq!(targets::address(&node, None), Some("fd00::1"));
/// ```
pub fn address(node: &NodeRef, family: Option<IpFamily>) -> Option<&str> {
    let fits = |text: &str| {
        text.parse::<IpAddr>().is_ok_and(|ip| match family {
            Some(IpFamily::Ipv4) => ip.is_ipv4(),
            Some(IpFamily::Ipv6) => ip.is_ipv6(),
            None => true,
        })
    };
    let of = |kind| {
        node.addresses
            .iter()
            .find(move |address| address.kind == kind && fits(&address.value))
    };
    of(AddressKind::InternalIp)
        .or_else(|| of(AddressKind::ExternalIp))
        .map(|address| address.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Address;

    #[test]
    fn first_internal_address_of_the_family_is_taken_else_an_external_one() {
        use AddressKind::{ExternalIp, InternalIp};
        let node = |addresses: &[(AddressKind, &str)]| {
            let mut node = NodeRef::named("n");
            let address = |(kind, value): &(AddressKind, &str)| Address::new(*kind, *value);
            node.addresses = addresses.iter().map(address).collect();
            node
        };
        let both = node(&[
            (ExternalIp, "192.0.2.1"),
            (InternalIp, "fd00::1"),
            (InternalIp, "10.0.0.1"),
        ]);
        assert_eq!(address(&both, Some(IpFamily::Ipv4)), Some("10.0.0.1"));
        assert_eq!(address(&both, Some(IpFamily::Ipv6)), Some("fd00::1"));
        assert_eq!(address(&both, None), Some("fd00::1"));
        let outside = node(&[(ExternalIp, "192.0.2.1")]);
        assert_eq!(address(&outside, Some(IpFamily::Ipv4)), Some("192.0.2.1"));
        assert_eq!(address(&outside, Some(IpFamily::Ipv6)), None);
        assert_eq!(address(&node(&[]), None), None);
    }
}
