use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

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
fn metadata_services_of_every_cloud_are_link_local() {
    for text in [
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "fd00:a9fe:a9fe::1",
        "fd00:100::100:200",
    ] {
        assert_eq!(special(ip(text)), Some(Special::LinkLocal), "{text}");
    }
    for text in ["fd20:ce::255", "fd00:42::43", "fd00:c1::1", "192.0.0.193"] {
        assert_eq!(special(ip(text)), None, "{text}");
    }
}

#[test]
fn ipv4_inside_ipv6_is_judged_as_that_ipv4() {
    for text in [
        "::169.254.169.254",
        "::ffff:169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00::",
        "2002:a9fe:a9fe::1",
        // 169.254.169.254, turned over.
        "2001:0:808:808:0:0:5601:5601",
        "2001:0:a9fe:a9fe::f7f7:f7f7",
        "2001:db8::5efe:169.254.169.254",
        "2001:db8::200:5efe:169.254.169.254",
        "fd00::5efe:100.100.100.200",
    ] {
        assert_eq!(special(ip(text)), Some(Special::LinkLocal), "{text}");
    }
    for text in ["64:ff9b:1::8.8.8.8", "64:ff9b::8.8.8.8", "2001:0:808:808::f7f7:f7f7"] {
        assert_eq!(special(ip(text)), None, "{text}");
    }
}

/// Addresses of every special kind.
fn special_ipv4() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        any::<[u8; 3]>().prop_map(|[a, b, c]| Ipv4Addr::new(127, a, b, c)),
        any::<[u8; 2]>().prop_map(|[a, b]| Ipv4Addr::new(169, 254, a, b)),
        any::<[u8; 3]>().prop_map(|[a, b, c]| Ipv4Addr::new(0, a, b, c)),
        any::<[u8; 3]>().prop_map(|[a, b, c]| Ipv4Addr::new(224 + a % 16, a, b, c)),
        Just(Ipv4Addr::BROADCAST),
        prop::sample::select(METADATA_V4.to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_embedding_of_a_special_ipv4_is_special(v4 in special_ipv4(), rest in any::<u128>()) {
        let kind = special_v4(v4);
        prop_assert!(kind.is_some());
        for embedding in &EMBEDDINGS {
            let mut octets = ((rest & !embedding.mask) | embedding.bits).to_be_bytes();
            for (at, octet) in embedding.at.into_iter().zip(v4.octets()) {
                octets[at] = if embedding.inverted { !octet } else { octet };
            }
            let found = special(IpAddr::from(octets));
            let says_nothing = embedding.one_of_several
                && matches!(kind, Some(Special::Unspecified | Special::Multicast));
            prop_assert!(found.is_some() || says_nothing, "{v4} in {}", IpAddr::from(octets));
        }
    }

    #[test]
    fn an_ordinary_ipv4_is_ordinary_where_it_has_one_place(a in 1_u8..=126, b: u8, c: u8, d: u8) {
        let v4 = Ipv4Addr::new(a, b, c, d);
        prop_assume!(!METADATA_V4.contains(&v4));
        prop_assert_eq!(special(v4.into()), None);
        prop_assert_eq!(special(v4.to_ipv6_mapped().into()), None);
        prop_assert_eq!(special(v4.to_ipv6_compatible().into()), None);
    }
}
