//! Name servers and search domains of a machine, and the trait of clouds that scrub them for Pods.

use std::net::{IpAddr, Ipv6Addr};

use crate::Answer;

/// The most name servers in one call (`wit/v0.1/dns.wit`). Resolvers use three.
pub const MAX_NAMESERVERS: usize = 16;

/// The most search domains in one call. Kubernetes uses 32 (`k8s.io/kubernetes/pkg/apis/core/validation`, `MaxDNSSearchPaths`).
pub const MAX_SEARCHES: usize = 32;

/// The most bytes of the zone of an IPv6 address: the name of an interface (`IFNAMSIZ`, without the zero at the end).
const MAX_ZONE: usize = 15;

/// Name servers and search domains, the first is tried first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolver {
    /// IP addresses, those of IPv6 with or without a zone.
    pub nameservers: Vec<String>,
    /// Domain names.
    pub searches: Vec<String>,
}

/// Whether a resolver takes this for a name server.
pub fn is_nameserver(text: &str) -> bool {
    match text.split_once('%') {
        None => text.parse::<IpAddr>().is_ok(),
        Some((address, zone)) => {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            address.parse::<Ipv6Addr>().is_ok() && (1..=MAX_ZONE).contains(&zone.len()) && zone.bytes().all(inner)
        }
    }
}

/// A cloud that has what Pods should use. Read only, so it needs no gate.
pub trait DnsScrubber: Send + Sync {
    /// What Pods should use of `found`, which has at most [`MAX_NAMESERVERS`] and [`MAX_SEARCHES`].
    fn scrub_dns<'a>(&'a self, found: &'a Resolver) -> Answer<'a, Resolver>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nameservers_are_addresses() {
        for good in ["10.0.0.2", "2001:db8::53", "fe80::1%eth0", "fe80::1%br-0.12"] {
            assert!(is_nameserver(good), "{good}");
        }
        for bad in [
            "",
            "dns.example.com",
            "10.0.0.2:53",
            "10.0.0.2%eth0",
            "fe80::1%",
            "fe80::1%a b",
            "fe80::1%eth0\n",
        ] {
            assert!(!is_nameserver(bad), "{bad:?}");
        }
    }
}
