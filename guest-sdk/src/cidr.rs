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
                Failure::Invalid(["\"", text, "\" is no network; write it like 10.0.0.0/8 or fd00::/64"].concat())
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
