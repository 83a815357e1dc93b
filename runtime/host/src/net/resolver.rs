//! Checked resolver: returns only addresses that a request may connect to.
//!
//! The client connects to exactly the addresses this resolver returns, so a name is checked and used in one step: a second look-up that
//! could answer differently (DNS rebinding) does not happen. Literal addresses never reach a resolver; `egress` checks them before.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

pub use crate::net::special_address::{Special, special};

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
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks names up without blocking a thread. Tests put their own in the place of the system's.
pub trait Lookup: Send + Sync {
    /// All addresses of the name.
    fn lookup(&self, name: &str) -> LookupFuture;
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
    fn flag_allows_only_its_kind_and_never_reserved_ranges() {
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
}
