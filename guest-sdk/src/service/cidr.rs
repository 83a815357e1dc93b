//! Networks as clouds and annotations write them: `10.0.0.0/8`, `fd00::/64`.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::types::{Failure, IpFamily, Service};

/// Every IPv4 address.
pub const ANY_IPV4: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0));

/// Every IPv6 address.
pub const ANY_IPV6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0));

/// Reads an address, a slash and a prefix length. Bits behind the prefix are dropped: `10.1.2.3/8` is `10.0.0.0/8`.
///
/// # Errors
/// `invalid`, naming the text.
pub fn parse(text: &str) -> Result<IpNet, Failure> {
    let network = text.trim_ascii().parse::<IpNet>();
    network.map(|network| network.trunc()).map_err(|_| {
        Failure::invalid(format!(
            "\"{text}\" is no network; write it like 10.0.0.0/8 or fd00::/64"
        ))
    })
}

/// Whether both are the same network, however they are written; what is no network is the same as nothing.
pub fn same(one: &str, other: &str) -> bool {
    matches!((parse(one), parse(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether a network lies in one of these, all as texts.
pub fn is_within(part: &str, ranges: &[String]) -> bool {
    let contains = |whole: &String, part: &IpNet| parse(whole).is_ok_and(|whole| whole.contains(part));
    parse(part).is_ok_and(|part| ranges.iter().any(|whole| contains(whole, &part)))
}

/// Who may connect to the Service: its own ranges, else all of each of its families (IPv4 when it names none).
///
/// # Errors
/// `invalid` when one is no network, which the host has checked before.
pub fn source_ranges(service: &Service) -> Result<Vec<IpNet>, Failure> {
    if !service.source_ranges.is_empty() {
        return service.source_ranges.iter().map(|text| parse(text)).collect();
    }
    let any = |family: &IpFamily| match family {
        IpFamily::Ipv4 => ANY_IPV4,
        IpFamily::Ipv6 => ANY_IPV6,
    };
    let all: Vec<IpNet> = service.ip_families.iter().map(any).collect();
    Ok(if all.is_empty() { vec![ANY_IPV4] } else { all })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn cidr(text: &str) -> IpNet {
        parse(text).unwrap()
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
        assert_eq!((cidr("0.0.0.0/0"), cidr("::/0")), (ANY_IPV4, ANY_IPV6));
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
            assert_eq!(parse(wrong), Err(Failure::invalid(expected)));
        }
    }

    #[test]
    fn texts_are_compared_as_networks() {
        assert!(same("10.1.2.3/8", "10.0.0.0/8") && !same("10.0.0.0/8", "10.0.0.0/9") && !same("x", "x"));
        let ranges = ["10.0.0.0/8".to_owned(), "x".to_owned(), "fd00::/48".to_owned()];
        assert!(is_within("10.1.0.0/16", &ranges) && is_within("fd00:0:0:1::/64", &ranges));
        assert!(!is_within("11.0.0.0/16", &ranges) && !is_within("0.0.0.0/0", &ranges) && !is_within("x", &ranges));
    }

    #[test]
    fn address_range_includes_its_edges_and_one_family_only() {
        let inside = |network: &str, address: &str| cidr(network).contains(&address.parse::<IpAddr>().unwrap());
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
        assert_eq!(ranges(&[], &[]), Ok(vec![ANY_IPV4]));
        assert_eq!(ranges(&[], &[IpFamily::Ipv6]), Ok(vec![ANY_IPV6]));
        assert_eq!(
            ranges(&[], &[IpFamily::Ipv6, IpFamily::Ipv4]),
            Ok(vec![ANY_IPV6, ANY_IPV4])
        );
        assert_eq!(ranges(&["10.0.0.1/8"], &[IpFamily::Ipv6]), Ok(vec![cidr("10.0.0.0/8")]));
        assert!(
            ranges(&["10.0.0.1/8", "x"], &[]).is_err(),
            "a range that cannot be read must not open the Service to all"
        );
    }
}
