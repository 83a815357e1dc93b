//! Which addresses of a machine are its Node's. Pure; upstream's rules (`nodemanager.go`, `discoverIPs`), in its order.
//!
//! ```text
//!   guest NICs -> without virtual ones -> without local addresses -> those of the machine's metadata first
//!     -> for each family: by subnet, else by the network's name, else the first one, for inside and outside
//! ```

use std::net::IpAddr;

use cloudwit_guest_sdk::prelude::*;
use ipnet::IpNet;

/// A family of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// What the operator configured about addresses.
#[derive(Debug, Default)]
pub struct AddressRules {
    /// For `InternalIP`.
    pub internal: Side,
    /// For `ExternalIP`.
    pub external: Side,
}

/// The configured selection of internal or of external addresses.
#[derive(Debug, Default)]
pub struct Side {
    /// The first of these in which there is an address.
    pub subnets: Vec<IpNet>,
    /// Never one of these.
    pub excluded: Vec<IpNet>,
    /// Name of the network in vSphere, in whatever case.
    pub network: Option<String>,
}

/// A network card as VMware Tools see it from inside of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestNic {
    /// Key of the virtual device; -1 for what is none, such as the bridges of a container network.
    pub device: i32,
    /// The network it is connected to, as vSphere calls it; may be empty.
    pub network: String,
    /// As the guest wrote them.
    pub addresses: Vec<String>,
}

/// An address and the network of its card.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    ip: IpAddr,
    network: &'a str,
}

/// The IP addresses in the order of importance. `configured` are those of the machine's own metadata, which come first.
///
/// # Errors
/// A message, when no address is usable.
pub fn node_addresses(
    nics: &[GuestNic],
    configured: &[IpAddr],
    rules: &AddressRules,
    families: &[Family],
) -> Result<Vec<Address>, String> {
    if nics.is_empty() {
        return Err("VMware Tools have told no network cards yet; are they running?".into());
    }
    let nics = || nics.iter().filter(|nic| nic.device != -1);
    if let (Some(internal), Some(external)) = (&rules.internal.network, &rules.external.network)
        && !nics().any(|nic| nic.network.eq_ignore_ascii_case(internal) || nic.network.eq_ignore_ascii_case(external))
    {
        let networks: Vec<&str> = nics().map(|nic| nic.network.as_str()).collect();
        let text = [
            "none of its cards is in the network \"",
            internal,
            "\" or \"",
            external,
            "\", but in: ",
        ];
        return Err(format!("{}{}", text.concat(), networks.join(", ")));
    }
    let usable: Vec<Candidate<'_>> = nics().flat_map(usable).collect();
    if usable.is_empty() {
        return Err("VMware Tools have told no address that is reachable from outside of the machine".into());
    }
    // Those of the metadata in its order, then the others in theirs.
    let known = configured
        .iter()
        .flat_map(|ip| usable.iter().filter(move |candidate| candidate.ip == *ip));
    let others = usable.iter().filter(|candidate| !configured.contains(&candidate.ip));
    let candidates: Vec<Candidate<'_>> = known.chain(others).copied().collect();
    let mut addresses = Vec::new();
    for family in families {
        let (internal, external) = choose(&candidates, *family, rules);
        if internal.is_none() && external.is_none() {
            return Err(format!("it has no {} address that may be used", family.name()));
        }
        addresses.extend(internal.map(|ip| Address::new(AddressKind::InternalIp, ip.to_string())));
        addresses.extend(external.map(|ip| Address::new(AddressKind::ExternalIp, ip.to_string())));
    }
    Ok(addresses)
}

/// The reachable addresses of a card.
fn usable(nic: &GuestNic) -> impl Iterator<Item = Candidate<'_>> {
    let ips = nic.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok());
    let ips = ips.map(|ip| ip.to_canonical()).filter(|ip| !is_local(ip));
    ips.map(|ip| Candidate {
        ip,
        network: &nic.network,
    })
}

/// Unspecified, loopback, or link-local, for one machine or many.
fn is_local(ip: &IpAddr) -> bool {
    ip.is_unspecified()
        || ip.is_loopback()
        || match ip {
            IpAddr::V4(ip) => ip.is_link_local() || ip.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.segments()[0] & 0xff0f == 0xff02,
        }
}

/// The addresses of one family for inside and outside.
fn choose(candidates: &[Candidate<'_>], family: Family, rules: &AddressRules) -> (Option<IpAddr>, Option<IpAddr>) {
    let allowed = |side: &Side| -> Vec<Candidate<'_>> {
        let of_family = candidates
            .iter()
            .filter(|candidate| candidate.ip.is_ipv4() == (family == Family::V4));
        let allowed = of_family.filter(|candidate| !side.excluded.iter().any(|cidr| cidr.contains(&candidate.ip)));
        allowed.copied().collect()
    };
    let (inside, outside) = (allowed(&rules.internal), allowed(&rules.external));
    let (internal, external) = (wanted(&inside, &rules.internal), wanted(&outside, &rules.external));
    if internal.is_some() || external.is_some() {
        return (internal, external);
    }
    let first = |candidates: &[Candidate<'_>]| candidates.first().map(|candidate| candidate.ip);
    (first(&inside), first(&outside))
}

/// By subnet, in the order of the subnets, else by the network's name.
fn wanted(candidates: &[Candidate<'_>], side: &Side) -> Option<IpAddr> {
    let within = |cidr: &IpNet| candidates.iter().find(|candidate| cidr.contains(&candidate.ip));
    let found = side.subnets.iter().find_map(within).or_else(|| {
        let network = side.network.as_ref()?;
        candidates
            .iter()
            .find(|candidate| candidate.network.eq_ignore_ascii_case(network))
    });
    found.map(|candidate| candidate.ip)
}

#[cfg(test)]
mod tests;
