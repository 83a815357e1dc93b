//! Merges a Node's addresses from the cloud with those the kubelet was given. Pure.
//!
//! The first InternalIP is what the rest of the cluster takes for the Node's address, so order matters and the rules of
//! `spec/node-controller.md` 8.2 to 8.4 are kept to the letter; where they differ the comment says why. Upstream compares each address with each; a machine
//! may have 1,024, so here the work is linear in the lists.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cloudwit_model::Address;
use k8s_openapi::api::core::v1::NodeAddress;
use thiserror::Error;

/// So many addresses are named in a message.
const SHOWN: usize = 16;

/// The kubelet's `--node-ip` does not fit what the cloud offers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The annotation does not parse.
    #[error("annotation alpha.kubernetes.io/provided-node-ip has the value {value:?}: {problem}")]
    BadAnnotation {
        /// Its value.
        value: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The cloud does not list this address.
    #[error(
        "the annotation alpha.kubernetes.io/provided-node-ip names the address {wanted}, which the \
         cloud does not list for this machine; it lists {offered}"
    )]
    NotOffered {
        /// The address in the annotation.
        wanted: IpAddr,
        /// What the cloud offers, for people.
        offered: String,
    },
}

/// The addresses the Node shall have; None when the cloud reports none, which leaves the Node's as they are.
///
/// `provided` is the value of the annotation, when the Node has it.
pub fn wanted(
    current: &[NodeAddress],
    cloud: &[Address],
    provided: Option<&str>,
) -> Result<Option<Vec<NodeAddress>>, AddressError> {
    let mut wanted = Vec::new();
    // The API server refuses the same address twice.
    add_all(
        &mut wanted,
        cloud
            .iter()
            .map(|address| node_address(address.kind.as_str(), &address.value)),
    );
    if let Some(provided) = provided {
        // Also where the cloud reports no address: then the kubelet's `--node-ip` is not among them.
        check_provided(&wanted, provided)?;
    }
    if wanted.is_empty() {
        return Ok(None);
    }
    if !wanted.iter().any(|address| address.type_ == "Hostname") {
        add_all(
            &mut wanted,
            current.iter().filter(|address| address.type_ == "Hostname").cloned(),
        );
    }
    provided
        .map_or_else(|| Ok(wanted.clone()), |provided| prefer_provided(&wanted, provided))
        .map(Some)
}

/// Appends the addresses that are not in the list yet (`node/helpers/address.go:AddToNodeAddresses`).
pub fn add_all(list: &mut Vec<NodeAddress>, more: impl IntoIterator<Item = NodeAddress>) {
    append_new(list, more, |address| (address.type_.clone(), address.address.clone()));
}

/// Appends what has a key that nothing in the list has, in its order. One look into a table for each.
fn append_new<T, K: Eq + Hash>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) {
    let mut seen: HashSet<K> = list.iter().map(&key).collect();
    list.extend(more.into_iter().filter(|one| seen.insert(key(one))));
}

/// Whether the list has to be written.
///
/// As upstream, order between kinds does not matter. Within a kind it does: upstream reports every list with two
/// addresses of one kind as changed and then sends an empty patch in each period, and takes `[a, b]` and `[b, b]` for
/// equal (N3).
pub fn changed(old: &[NodeAddress], new: &[NodeAddress]) -> bool {
    let kind = |address: &NodeAddress| address.type_.clone();
    old.len() != new.len() || by_kind(old, kind) != by_kind(new, kind)
}

/// The addresses of each kind, in their order.
fn by_kind<K: Ord>(list: &[NodeAddress], kind: impl Fn(&NodeAddress) -> K) -> BTreeMap<K, Vec<&str>> {
    let mut kinds: BTreeMap<K, Vec<&str>> = BTreeMap::new();
    for address in list {
        kinds.entry(kind(address)).or_default().push(&address.address);
    }
    kinds
}

fn check_provided(cloud: &[NodeAddress], provided: &str) -> Result<(), AddressError> {
    prefer_provided(cloud, provided).map(|_| ())
}

/// Puts the provided addresses first and drops their rivals (`node/helpers/address.go:GetNodeAddressesFromNodeIP`):
/// for each provided IP the entries that equal it, in the cloud's spelling and whatever their kind; then all entries
/// of kinds that none of these had.
pub fn prefer_provided(cloud: &[NodeAddress], provided: &str) -> Result<Vec<NodeAddress>, AddressError> {
    let mut preferred: Vec<NodeAddress> = Vec::new();
    for wanted in parse_provided(provided)? {
        let before = preferred.len();
        preferred.extend(
            cloud
                .iter()
                .filter(|address| parse_ip(&address.address) == Some(wanted))
                .cloned(),
        );
        if preferred.len() == before {
            return Err(AddressError::NotOffered {
                wanted,
                offered: in_words(cloud),
            });
        }
    }
    let claimed: BTreeSet<String> = preferred.iter().map(|address| address.type_.clone()).collect();
    preferred.extend(
        cloud
            .iter()
            .filter(|address| !claimed.contains(&address.type_))
            .cloned(),
    );
    Ok(preferred)
}

/// Reads the annotation: one address, or two of different families joined by a comma without spaces
/// (`component-helpers node/util/ips.go:ParseNodeIPAnnotation`).
pub fn parse_provided(value: &str) -> Result<Vec<IpAddr>, AddressError> {
    let bad = |problem| AddressError::BadAnnotation {
        value: value.to_owned(),
        problem,
    };
    let mut addresses = Vec::new();
    for part in value.split(',') {
        addresses
            .push(parse_ip(part).ok_or_else(|| bad("not an IP address, nor two joined by a comma without spaces"))?);
    }
    match addresses[..] {
        [_] => Ok(addresses),
        [first, second] if first.is_ipv4() == second.is_ipv4() => {
            Err(bad("two addresses have to be of different families"))
        }
        [first, second] if first.is_unspecified() || second.is_unspecified() => {
            Err(bad("of two addresses none may be 0.0.0.0 or ::"))
        }
        [_, _] => Ok(addresses),
        _ => Err(bad("at most two addresses are allowed")),
    }
}

/// Reads an IP address as Go did before 1.17: decimal parts may have leading zeros. An IPv4 address mapped into IPv6
/// is the IPv4 address.
fn parse_ip(text: &str) -> Option<IpAddr> {
    let parse_v4 = |text: &str| -> Option<Ipv4Addr> {
        let parts: Vec<&str> = text.split('.').collect();
        let [a, b, c, d] = parts[..] else { return None };
        let octet = |part: &str| -> Option<u8> {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if digits {
                part.trim_start_matches('0').parse().or_else(|_| zero(part)).ok()
            } else {
                None
            }
        };
        Some(Ipv4Addr::new(octet(a)?, octet(b)?, octet(c)?, octet(d)?))
    };
    if !text.contains(':') {
        return parse_v4(text).map(IpAddr::V4);
    }
    let embedded = text.rsplit_once(':').filter(|(_, last)| last.contains('.'));
    let address: Ipv6Addr = match embedded {
        Some((head, last)) => format!("{head}:{}", parse_v4(last)?).parse().ok()?,
        None => text.parse().ok()?,
    };
    Some(IpAddr::V6(address).to_canonical())
}

/// What is left of `0` or `000` after its leading zeros are gone.
fn zero(part: &str) -> Result<u8, ()> {
    if part.bytes().all(|byte| byte == b'0') {
        Ok(0)
    } else {
        Err(())
    }
}

fn in_words(addresses: &[NodeAddress]) -> String {
    if addresses.is_empty() {
        return "none".into();
    }
    let shown = addresses
        .iter()
        .take(SHOWN)
        .map(|address| format!("{} {}", address.type_, address.address));
    let further = addresses.len().saturating_sub(SHOWN);
    let further = (further > 0).then(|| format!("{further} more"));
    shown.chain(further).collect::<Vec<_>>().join(", ")
}

fn node_address(kind: &str, value: &str) -> NodeAddress {
    NodeAddress {
        type_: kind.to_owned(),
        address: value.to_owned(),
    }
}

#[cfg(test)]
mod tests;
