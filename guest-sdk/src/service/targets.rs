//! Targets of load balancers: which address of a Node gets traffic, which machines do.

use std::net::IpAddr;

use crate::types::{AddressKind, IpFamily, NodeRef, Target};

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

/// Ids of the targets' machines, sorted and each once, as `id` reads them out of provider ids. A Node without provider id is not initialised yet, and left
/// out.
pub fn ids<'t>(targets: impl IntoIterator<Item = &'t Target>, id: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let provider_ids = targets
        .into_iter()
        .filter_map(|target| target.node.provider_id.as_deref());
    let mut ids: Vec<String> = provider_ids.filter_map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Address;

    #[test]
    fn ids_are_sorted_and_nodes_without_one_left_out() {
        let target = |id: Option<&str>| {
            let mut node = NodeRef::named("n");
            node.provider_id = id.map(str::to_owned);
            Target { node, ready: true }
        };
        let targets = [Some("lab://b"), None, Some("lab://a"), Some("aws://c"), Some("lab://b")].map(target);
        let ids = ids(&targets, |id| id.strip_prefix("lab://").map(str::to_owned));
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn first_internal_address_of_family_else_external_one() {
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
