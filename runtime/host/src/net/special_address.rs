//! Special addresses: loopback, link-local, metadata, multicast; also inside IPv6.
//!
//! An IPv6 address that leads to an IPv4 one is judged as that one: translators, tunnels and sockets turn it into exactly that.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is special.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// This machine: 127.0.0.0/8, ::1.
    Loopback,
    /// This link: 169.254.0.0/16, fe80::/10; and the metadata services that clouds put elsewhere.
    LinkLocal,
    /// Unassigned: 0.0.0.0/8, ::, 255.255.255.255.
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

/// Metadata services outside of 169.254.0.0/16. They hand out credentials of the machine just the same.
pub(super) const METADATA_V4: [Ipv4Addr; 3] = [
    // Alibaba Cloud, "View instance metadata".
    Ipv4Addr::new(100, 100, 100, 200),
    // Azure, "What is IP address 168.63.129.16?": the host's agent (WireServer).
    Ipv4Addr::new(168, 63, 129, 16),
    // Oracle Cloud Infrastructure Classic, "Retrieving Instance Metadata".
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6, outside of fe80::/10: the first bits, and how many of them.
const METADATA_V6: [(Ipv6Addr, u32); 6] = [
    // AWS keeps fd00:ec2::/32 for its own services: metadata at ::254 (EC2, "Use the Instance Metadata Service"), credentials of Pods at ::23
    // (EKS, "EKS Pod Identity Agent").
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    // Google Cloud, "View and query VM metadata": IPv6-only instances.
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
    // Oracle Cloud Infrastructure, "Getting Instance Metadata".
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128),
    // Scaleway; cloud-init, "Scaleway" data source.
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
    // Akamai (Linode), "Overview of the Metadata service".
    (Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1), 128),
    // Alibaba Cloud, "View instance metadata": IPv6 endpoint.
    (Ipv6Addr::new(0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200), 128),
];

/// What is special about an address; none for ordinary ones, private networks included.
pub fn special(ip: IpAddr) -> Option<Special> {
    match ip {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

pub(super) fn special_v4(v4: Ipv4Addr) -> Option<Special> {
    match v4 {
        _ if METADATA_V4.contains(&v4) || v4.is_link_local() => Some(Special::LinkLocal),
        _ if v4.is_loopback() => Some(Special::Loopback),
        _ if v4.octets()[0] == 0 || v4.is_broadcast() => Some(Special::Unspecified),
        _ if v4.is_multicast() => Some(Special::Multicast),
        _ => None,
    }
}

fn special_v6(v6: Ipv6Addr) -> Option<Special> {
    let metadata = |(prefix, bits): &(Ipv6Addr, u32)| (v6.to_bits() ^ prefix.to_bits()).leading_zeros() >= *bits;
    match v6 {
        _ if v6.is_loopback() => Some(Special::Loopback),
        _ if v6.is_unspecified() => Some(Special::Unspecified),
        _ if v6.is_unicast_link_local() || METADATA_V6.iter().any(metadata) => Some(Special::LinkLocal),
        _ if v6.is_multicast() => Some(Special::Multicast),
        _ => EMBEDDINGS.iter().find_map(|embedding| embedding.special(v6)),
    }
}

/// One way to write an IPv4 address into an IPv6 one.
pub(super) struct Embedding {
    /// The bits by which it is known, and which of them count.
    pub(super) bits: u128,
    pub(super) mask: u128,
    /// Where the four bytes are.
    pub(super) at: [usize; 4],
    /// Whether each bit is turned over.
    pub(super) inverted: bool,
    /// Whether the IPv4 address may be somewhere else. Then bytes that make 0.0.0.0/8 or multicast say nothing, as they mostly are no address.
    pub(super) one_of_several: bool,
}

const LAST: [usize; 4] = [12, 13, 14, 15];

impl Embedding {
    /// Under a prefix of so many bits, in the last four bytes.
    const fn below(prefix: Ipv6Addr, bits: u32) -> Self {
        Self {
            bits: prefix.to_bits(),
            mask: u128::MAX << (128 - bits),
            at: LAST,
            inverted: false,
            one_of_several: false,
        }
    }

    const fn at(self, at: [usize; 4]) -> Self {
        Self { at, ..self }
    }

    const fn one_of_several(self) -> Self {
        Self {
            one_of_several: true,
            ..self
        }
    }

    fn special(&self, v6: Ipv6Addr) -> Option<Special> {
        let kind = special_v4(self.v4(v6)?)?;
        let certain = !self.one_of_several || matches!(kind, Special::Loopback | Special::LinkLocal);
        certain.then_some(kind)
    }

    fn v4(&self, v6: Ipv6Addr) -> Option<Ipv4Addr> {
        if v6.to_bits() & self.mask != self.bits {
            return None;
        }
        let octets = v6.octets();
        let turned = if self.inverted { 0xff } else { 0 };
        Some(Ipv4Addr::from(self.at.map(|at| octets[at] ^ turned)))
    }
}

/// The prefix for NAT64 inside of one network (RFC 8215).
const LOCAL_NAT64: Embedding = Embedding::below(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48);

/// All of them, each with what defines it.
pub(super) const EMBEDDINGS: [Embedding; 13] = [
    // IPv4-compatible, ::/96 (RFC 4291, 2.5.5.1).
    Embedding::below(Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96),
    // IPv4-mapped, ::ffff:0:0/96 (RFC 4291, 2.5.5.2).
    Embedding::below(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    // IPv4-translated, ::ffff:0:0:0/96 (RFC 2765, 2.1).
    Embedding::below(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96),
    // NAT64 with the well-known prefix, 64:ff9b::/96 (RFC 6052, 2.1).
    Embedding::below(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    // NAT64 with a local prefix below 64:ff9b:1::/48 (RFC 8215); the place depends on its length (RFC 6052, 2.2): 96, 64, 56, 48 bits.
    LOCAL_NAT64.one_of_several(),
    LOCAL_NAT64.at([9, 10, 11, 12]).one_of_several(),
    LOCAL_NAT64.at([7, 9, 10, 11]).one_of_several(),
    LOCAL_NAT64.at([6, 7, 9, 10]).one_of_several(),
    // 6to4, 2002::/16 (RFC 3056, 2).
    Embedding::below(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16).at([2, 3, 4, 5]),
    // Teredo, 2001::/32 (RFC 4380, 4): the client, turned over, and the server.
    Embedding {
        inverted: true,
        ..Embedding::below(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32)
    },
    Embedding::below(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32)
        .at([4, 5, 6, 7])
        .one_of_several(),
    // ISATAP, ::0:5efe:a.b.c.d below any prefix (RFC 5214, 6.1), and with the bit for worldwide addresses, ::200:5efe:a.b.c.d.
    Embedding {
        bits: 0x0000_5efe << 32,
        mask: 0xffff_ffff << 32,
        at: LAST,
        inverted: false,
        one_of_several: false,
    },
    Embedding {
        bits: 0x0200_5efe << 32,
        mask: 0xffff_ffff << 32,
        at: LAST,
        inverted: false,
        one_of_several: false,
    },
];

#[cfg(test)]
mod tests;
