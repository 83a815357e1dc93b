//! Which addresses a request may connect to, and the resolver that hands out no others.
//!
//! The client connects to exactly the addresses this resolver returns, so a name is checked and used in one step: a second look-up that
//! could answer differently (DNS rebinding) does not happen. Literal addresses never reach a resolver; `egress` checks them before.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// Why an address is special.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// This machine: 127.0.0.0/8, ::1.
    Loopback,
    /// This link: 169.254.0.0/16, fe80::/10; and the metadata services that clouds put elsewhere.
    LinkLocal,
    /// No address of anybody: 0.0.0.0/8, ::, 255.255.255.255.
    Unspecified,
    /// Many receivers.
    Multicast,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local or a cloud's metadata service",
            Self::Unspecified => "unspecified",
            Self::Multicast => "multicast",
        })
    }
}

/// Metadata services outside the link-local range. They hand out credentials of the machine just the same.
const METADATA: [IpAddr; 3] = [
    // Alibaba Cloud
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure's host agent
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // AWS over IPv6
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// What is special about an address; none for ordinary ones, private networks included.
pub fn special(ip: IpAddr) -> Option<Special> {
    if METADATA.contains(&ip) {
        return Some(Special::LinkLocal);
    }
    match ip {
        IpAddr::V4(v4) if v4.is_loopback() => Some(Special::Loopback),
        IpAddr::V4(v4) if v4.is_link_local() => Some(Special::LinkLocal),
        IpAddr::V4(v4) if v4.octets()[0] == 0 || v4.is_broadcast() => Some(Special::Unspecified),
        IpAddr::V4(v4) if v4.is_multicast() => Some(Special::Multicast),
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) if v6.is_loopback() => Some(Special::Loopback),
        IpAddr::V6(v6) if v6.is_unspecified() => Some(Special::Unspecified),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Some(Special::LinkLocal),
        IpAddr::V6(v6) if v6.is_multicast() => Some(Special::Multicast),
        IpAddr::V6(v6) => embedded(v6).and_then(|v4| special(IpAddr::V4(v4))),
    }
}

/// The IPv4 address that is really reached through an IPv6 one: IPv4-mapped, IPv4-compatible, NAT64 (RFC 6052), 6to4 (RFC 3056).
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = v6.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

/// The special addresses that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AddressRule {
    /// Allows [`Special::Loopback`].
    pub loopback: bool,
    /// Allows [`Special::LinkLocal`].
    pub link_local: bool,
}

impl AddressRule {
    /// Whether the address may be connected to, or else why not.
    pub fn check(self, ip: IpAddr) -> Result<(), Special> {
        match special(ip) {
            None => Ok(()),
            Some(Special::Loopback) if self.loopback => Ok(()),
            Some(Special::LinkLocal) if self.link_local => Ok(()),
            Some(other) => Err(other),
        }
    }
}

/// A name leads only to addresses that are not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{address} is {why}")]
pub struct Prohibited {
    /// One of them.
    pub address: IpAddr,
    /// Why.
    pub why: Special,
}

/// A name could not be looked up.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LookupFailed(pub io::Error);

/// The answer of a [`Lookup`].
pub type Found = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks names up. Tests put their own in the place of the system's.
pub trait Lookup: Send + Sync {
    /// All addresses of the name.
    fn lookup(&self, name: &str) -> Found;
}

/// `getaddrinfo` of the system, on tokio's threads for blocking work.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: &str) -> Found {
        let name = name.to_owned();
        Box::pin(async move {
            Ok(tokio::net::lookup_host((name, 0))
                .await?
                .map(|found| found.ip())
                .collect())
        })
    }
}

/// The resolver of one client.
pub struct CheckedResolver {
    /// Who looks names up.
    pub lookup: Arc<dyn Lookup>,
    /// What is allowed; none when everything is, as for the address of a proxy.
    pub rule: Option<AddressRule>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.lookup.lookup(name.as_str());
        let rule = self.rule;
        Box::pin(async move {
            let found = found.await.map_err(LookupFailed)?;
            let allowed = match rule {
                Some(rule) => allowed(rule, found)?,
                None => found,
            };
            let addresses: Addrs = Box::new(allowed.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// Those of the addresses that may be connected to; an error when there are some and none may.
fn allowed(rule: AddressRule, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Prohibited> {
    let mut first = None;
    let mut allowed = found;
    allowed.retain(|ip| match rule.check(*ip) {
        Ok(()) => true,
        Err(why) => {
            first.get_or_insert(Prohibited { address: *ip, why });
            false
        }
    });
    match first {
        Some(prohibited) if allowed.is_empty() => Err(prohibited),
        _ => Ok(allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn special_addresses_are_known_in_every_disguise() {
        for (text, expected) in [
            ("127.0.0.1", Special::Loopback),
            ("127.255.0.1", Special::Loopback),
            ("::1", Special::Loopback),
            ("::ffff:127.0.0.1", Special::Loopback),
            ("::127.0.0.1", Special::Loopback),
            ("64:ff9b::127.0.0.1", Special::Loopback),
            ("2002:7f00:1::", Special::Loopback),
            ("169.254.169.254", Special::LinkLocal),
            ("::ffff:169.254.169.254", Special::LinkLocal),
            ("64:ff9b::a9fe:a9fe", Special::LinkLocal),
            ("fe80::1", Special::LinkLocal),
            ("febf::1", Special::LinkLocal),
            ("100.100.100.200", Special::LinkLocal),
            ("168.63.129.16", Special::LinkLocal),
            ("fd00:ec2::254", Special::LinkLocal),
            ("0.0.0.0", Special::Unspecified),
            ("0.1.2.3", Special::Unspecified),
            ("::", Special::Unspecified),
            ("::ffff:0.0.0.0", Special::Unspecified),
            ("255.255.255.255", Special::Unspecified),
            ("224.0.0.1", Special::Multicast),
            ("ff02::1", Special::Multicast),
        ] {
            assert_eq!(special(ip(text)), Some(expected), "{text}");
        }
        for text in [
            "10.0.0.1",
            "192.168.1.1",
            "8.8.8.8",
            "fd00::1",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "fec0::1",
            "100.64.0.1",
        ] {
            assert_eq!(special(ip(text)), None, "{text}");
        }
    }

    #[test]
    fn a_flag_allows_its_own_kind_and_no_flag_allows_what_nobody_can_want() {
        let all = AddressRule {
            loopback: true,
            link_local: true,
        };
        let loopback = AddressRule {
            loopback: true,
            link_local: false,
        };
        assert_eq!(AddressRule::default().check(ip("127.0.0.1")), Err(Special::Loopback));
        assert_eq!(loopback.check(ip("127.0.0.1")), Ok(()));
        assert_eq!(loopback.check(ip("169.254.169.254")), Err(Special::LinkLocal));
        assert_eq!(all.check(ip("169.254.169.254")), Ok(()));
        assert_eq!(all.check(ip("0.0.0.0")), Err(Special::Unspecified));
        assert_eq!(all.check(ip("224.0.0.1")), Err(Special::Multicast));
    }

    #[test]
    fn a_name_with_some_allowed_addresses_is_reached_only_at_those() {
        let rule = AddressRule::default();
        assert_eq!(
            allowed(rule, vec![ip("127.0.0.1"), ip("10.0.0.1")]),
            Ok(vec![ip("10.0.0.1")])
        );
        assert_eq!(
            allowed(rule, vec![ip("169.254.169.254"), ip("::1")]),
            Err(Prohibited {
                address: ip("169.254.169.254"),
                why: Special::LinkLocal
            })
        );
        assert_eq!(allowed(rule, vec![]), Ok(vec![]));
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = SystemLookup.lookup("localhost").await.unwrap();
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty());
    }
}
