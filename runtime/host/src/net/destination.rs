//! Destinations of requests, and the host patterns of grants.
//!
//! Both sides go through the same reading of an address: what is compared with the grants here is, character for character, what the
//! client connects to later. That is why a request's host is taken from the parsed URL (which turns `0x7f.1` into `127.0.0.1`) and not
//! from the text the guest wrote.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `http` or `https`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Clear text.
    Http,
    /// Over TLS.
    #[default]
    Https,
}

impl Scheme {
    /// The port when none is named.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// As it stands in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// A host as it is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A literal address: no name is looked up.
    Ip(IpAddr),
    /// A name, lower case, without the dot at the end.
    Name(String),
}

impl Host {
    /// Reads a host as it stands in a URL or a grant: `10.0.0.1`, `[fe80::1]`, `fe80::1`, `api.example.com`. None when it is neither an
    /// address nor a valid DNS name.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(v6) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return v6.parse::<Ipv6Addr>().ok().map(|ip| Self::Ip(IpAddr::V6(ip)));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self::Ip(ip));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        is_name(&name).then_some(Self::Name(name))
    }
}

/// Whether it is a valid DNS name: labels of letters, digits, `-` and `_`, the last one not a number (that would be a misspelt
/// IPv4 address).
fn is_name(name: &str) -> bool {
    let label_is_fine = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= 253
        && name.split('.').all(label_is_fine)
        && name
            .rsplit('.')
            .next()
            .is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Ip(ip) => write!(f, "{ip}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// How.
    pub scheme: Scheme,
    /// To whom.
    pub host: Host,
    /// To which port; always the real one.
    pub port: u16,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

/// The hosts one entry of the grants means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Exactly this one.
    Exact(Host),
    /// Every name that ends in this text, which begins with a dot. The name behind the dot itself is not meant.
    Below(String),
}

impl HostPattern {
    /// Reads `api.example.com`, `10.0.0.1` or `*.example.com`; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("*.") {
            None => Host::parse(text).map(Self::Exact),
            Some(suffix) => match Host::parse(suffix)? {
                Host::Name(name) => Some(Self::Below(format!(".{name}"))),
                Host::Ip(_) => None,
            },
        }
    }

    /// Whether it means this host.
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Exact(exact), host) => exact == host,
            (Self::Below(suffix), Host::Name(name)) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
            (Self::Below(_), Host::Ip(_)) => false,
        }
    }

    /// Whether it means every host that the other one means.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (pattern, Self::Exact(host)) => pattern.matches(host),
            (Self::Below(ours), Self::Below(theirs)) => theirs.ends_with(ours.as_str()),
            (Self::Exact(_), Self::Below(_)) => false,
        }
    }

    /// Whether some host is meant by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(host), pattern) | (pattern, Self::Exact(host)) => pattern.matches(host),
            (Self::Below(a), Self::Below(b)) => a.ends_with(b.as_str()) || b.ends_with(a.as_str()),
        }
    }
}

/// A host pattern with or without a port, as secrets are bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The hosts.
    pub host: HostPattern,
    /// The port; none for all of them.
    pub port: Option<u16>,
}

impl Binding {
    /// Reads `host`, `host:port`, `[v6]:port` or a bare IPv6 address; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(host) = HostPattern::parse(text) {
            return Some(Self { host, port: None });
        }
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        Some(Self {
            host: HostPattern::parse(host)?,
            port: Some(port),
        })
    }

    /// Whether the destination is one of those it names.
    pub fn matches(&self, destination: &Destination) -> bool {
        self.host.matches(&destination.host) && self.port.is_none_or(|port| port == destination.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn a_host_is_an_address_or_a_name_and_nothing_else() {
        assert_eq!(host("10.0.0.1"), Host::Ip("10.0.0.1".parse().unwrap()));
        assert_eq!(host("[::1]"), Host::Ip("::1".parse().unwrap()));
        assert_eq!(host("::1"), host("[::1]"));
        assert_eq!(host("API.Example.COM."), Host::Name("api.example.com".into()));
        for bad in [
            "",
            ".",
            "a..b",
            "a b",
            "exa$mple",
            "1.2.3",
            "300.1.1.1",
            "[10.0.0.1]",
            "*",
            "a:1",
            "ü.de",
            "user@host",
        ] {
            assert_eq!(Host::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn wildcard_covers_subdomains_only() {
        let pattern = HostPattern::parse("*.example.com").unwrap();
        assert!(pattern.matches(&host("a.example.com")));
        assert!(pattern.matches(&host("a.b.Example.com")));
        assert!(!pattern.matches(&host("example.com")));
        assert!(!pattern.matches(&host("badexample.com")));
        assert!(!pattern.matches(&host("example.com.evil.net")));
        assert!(!pattern.matches(&host("10.0.0.1")));
        for bad in [
            "*",
            "*.",
            "a.*.com",
            "*.0.0.1",
            "*.10.0.0.1",
            "**.example.com",
            "*example.com",
        ] {
            assert_eq!(HostPattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn address_spelling_is_normalised_but_mapped_form_differs() {
        let pattern = HostPattern::parse("fd00::1").unwrap();
        assert!(pattern.matches(&host("[fd00:0:0::1]")));
        assert!(
            !HostPattern::parse("10.0.0.1")
                .unwrap()
                .matches(&host("[::ffff:10.0.0.1]"))
        );
    }

    #[test]
    fn patterns_overlap_when_a_host_fits_both() {
        let overlaps = |a: &str, b: &str| HostPattern::parse(a).unwrap().overlaps(&HostPattern::parse(b).unwrap());
        assert!(overlaps("*.example.com", "a.example.com"));
        assert!(overlaps("a.example.com", "*.example.com"));
        assert!(overlaps("*.example.com", "*.eu.example.com"));
        assert!(!overlaps("*.example.com", "*.example.org"));
        assert!(!overlaps("a.example.com", "b.example.com"));
    }

    #[test]
    fn a_binding_with_a_port_means_only_that_port() {
        let to = |host: Host, port| Destination {
            scheme: Scheme::Https,
            host,
            port,
        };
        let any = Binding::parse("api.example.com").unwrap();
        let one = Binding::parse("api.example.com:5000").unwrap();
        assert!(any.matches(&to(host("api.example.com"), 443)));
        assert!(one.matches(&to(host("api.example.com"), 5000)));
        assert!(!one.matches(&to(host("api.example.com"), 443)));
        assert!(!one.matches(&to(host("other.example.com"), 5000)));
        assert_eq!(Binding::parse("[fd00::1]:80").unwrap().port, Some(80));
        assert_eq!(Binding::parse("fd00::1").unwrap().port, None);
        for bad in ["", "a:", "a:0", "a:70000", "a:b", "https://a", "a/b"] {
            assert_eq!(Binding::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_destination_is_shown_as_people_write_it() {
        let shown = |scheme, text: &str, port| {
            Destination {
                scheme,
                host: host(text),
                port,
            }
            .to_string()
        };
        assert_eq!(shown(Scheme::Https, "a.example", 443), "https://a.example");
        assert_eq!(shown(Scheme::Http, "::1", 8080), "http://[::1]:8080");
    }
}
