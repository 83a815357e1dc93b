//! Networks as clouds and annotations write them: `10.0.0.0/8`, `fd00::/64`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::types::{Failure, IpFamily, Service};

/// A network. Two texts that mean the same network are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cidr {
    network: IpAddr,
    length: u8,
}

impl Cidr {
    /// Every IPv4 address.
    pub const ANY_IPV4: Self = Self {
        network: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        length: 0,
    };

    /// Every IPv6 address.
    pub const ANY_IPV6: Self = Self {
        network: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        length: 0,
    };

    /// Reads an address, a slash and a prefix length. Bits behind the prefix are dropped: `10.1.2.3/8` is `10.0.0.0/8`.
    ///
    /// # Errors
    /// `invalid`, naming the text.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let parts = text.trim_ascii().split_once('/');
        parts
            .and_then(|(address, length)| {
                // `+8` is a number for Rust, but no prefix length.
                let digits = length.bytes().all(|byte| byte.is_ascii_digit());
                Self::new(address.parse().ok()?, length.parse().ok().filter(|_| digits)?)
            })
            .ok_or_else(|| {
                Failure::Invalid(format!("\"{text}\" is no network; write it like 10.0.0.0/8 or fd00::/64"))
            })
    }

    /// The network of this length that the address is in; none when the length is more than the family has bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (length <= bits).then(|| Self {
            network: masked(address, length),
            length,
        })
    }

    /// The network of this one address.
    pub fn host(address: IpAddr) -> Self {
        Self {
            network: address,
            length: if address.is_ipv4() { 32 } else { 128 },
        }
    }

    /// Whether the address lies in it. One of the other family never does.
    pub fn contains(&self, address: &IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && masked(*address, self.length) == self.network
    }

    /// Whether it is an IPv4 network.
    pub fn is_ipv4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// Its first address.
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// How many leading bits are fixed.
    pub fn length(&self) -> u8 {
        self.length
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.network.fmt(f)?;
        f.write_str("/")?;
        self.length.fmt(f)
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// Who may connect to the Service: its own ranges, else everybody of each of its families (IPv4 when it names none).
///
/// # Errors
/// `invalid` when one is no network, which the host has checked before.
pub fn source_ranges(service: &Service) -> Result<Vec<Cidr>, Failure> {
    if !service.source_ranges.is_empty() {
        return service.source_ranges.iter().map(|text| Cidr::parse(text)).collect();
    }
    let any = |family: &IpFamily| match family {
        IpFamily::Ipv4 => Cidr::ANY_IPV4,
        IpFamily::Ipv6 => Cidr::ANY_IPV6,
    };
    let all: Vec<Cidr> = service.ip_families.iter().map(any).collect();
    Ok(if all.is_empty() { vec![Cidr::ANY_IPV4] } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).unwrap()
    }

    #[test]
    fn a_network_is_shown_normalised() {
        for (text, shown) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            (" 10.1.2.3/32 ", "10.1.2.3/32"),
            ("255.255.255.255/0", "0.0.0.0/0"),
            ("172.16.255.1/20", "172.16.240.0/20"),
            ("FD00:0:0::1/64", "fd00::/64"),
            ("2001:db8:ffff::/33", "2001:db8:8000::/33"),
            ("::1/128", "::1/128"),
            ("ffff::/0", "::/0"),
        ] {
            assert_eq!(cidr(text).to_string(), shown);
        }
        assert_eq!(cidr("10.1.2.3/8"), cidr("10.9.9.9/8"));
        assert_eq!((cidr("0.0.0.0/0"), cidr("::/0")), (Cidr::ANY_IPV4, Cidr::ANY_IPV6));
        assert_eq!(Cidr::host([10, 0, 0, 1].into()), cidr("10.0.0.1/32"));
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        for wrong in [
            "",
            "/",
            "10.0.0.0",
            "10.0.0.0/",
            "/8",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "10.0.0/8",
            "::/129",
            "a::/x",
            "10.0.0.0/ 8",
            "10.0.0.0/256",
            "web/24",
        ] {
            let expected = format!("\"{wrong}\" is no network; write it like 10.0.0.0/8 or fd00::/64");
            assert_eq!(Cidr::parse(wrong), Err(Failure::Invalid(expected)));
        }
    }

    #[test]
    fn an_address_is_inside_up_to_the_edges_and_never_in_the_other_family() {
        let inside = |network: &str, address: &str| cidr(network).contains(&address.parse().unwrap());
        assert!(inside("10.0.0.0/8", "10.0.0.0") && inside("10.0.0.0/8", "10.255.255.255"));
        assert!(!inside("10.0.0.0/8", "9.255.255.255") && !inside("10.0.0.0/8", "11.0.0.0"));
        assert!(inside("fd00::/127", "fd00::1") && !inside("fd00::/127", "fd00::2"));
        assert!(inside("0.0.0.0/0", "255.1.1.1") && !inside("0.0.0.0/0", "::1") && !inside("::/0", "1.1.1.1"));
        assert!(!inside("fd00::/64", "10.0.0.1") && !inside("10.0.0.0/8", "a00::1"));
        assert!(inside("1.2.3.4/32", "1.2.3.4") && !inside("1.2.3.4/32", "1.2.3.5"));
    }

    #[test]
    fn a_service_without_ranges_is_open_to_all_of_its_families() {
        let ranges = |ranges: &[&str], families: &[IpFamily]| {
            let mut service = Service::new("default", "web", "1");
            service.source_ranges = ranges.iter().map(|range| (*range).into()).collect();
            service.ip_families = families.into();
            source_ranges(&service)
        };
        assert_eq!(ranges(&[], &[]), Ok(vec![Cidr::ANY_IPV4]));
        assert_eq!(ranges(&[], &[IpFamily::Ipv6]), Ok(vec![Cidr::ANY_IPV6]));
        assert_eq!(
            ranges(&[], &[IpFamily::Ipv6, IpFamily::Ipv4]),
            Ok(vec![Cidr::ANY_IPV6, Cidr::ANY_IPV4])
        );
        assert_eq!(ranges(&["10.0.0.1/8"], &[IpFamily::Ipv6]), Ok(vec![cidr("10.0.0.0/8")]));
        assert!(
            ranges(&["10.0.0.1/8", "x"], &[]).is_err(),
            "a range that cannot be read must not open the Service to all"
        );
    }
}
