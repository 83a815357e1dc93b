//! Upstream's rules, one after the other.

use cloudwit_guest_sdk::cidr;

use super::*;

fn nic(device: i32, network: &str, addresses: &[&str]) -> GuestNic {
    GuestNic {
        device,
        network: network.into(),
        addresses: addresses.iter().map(|address| (*address).into()).collect(),
    }
}

fn side(subnets: &[&str], excluded: &[&str], network: Option<&str>) -> Side {
    let cidrs = |texts: &[&str]| texts.iter().map(|text| cidr::parse(text).unwrap()).collect();
    Side {
        subnets: cidrs(subnets),
        excluded: cidrs(excluded),
        network: network.map(Into::into),
    }
}

fn told(
    nics: &[GuestNic],
    configured: &[&str],
    rules: &AddressRules,
    families: &[Family],
) -> Result<Vec<String>, String> {
    let configured: Vec<IpAddr> = configured.iter().map(|ip| ip.parse().unwrap()).collect();
    let addresses = node_addresses(nics, &configured, rules, families)?;
    Ok(addresses
        .into_iter()
        .map(|address| match address.kind {
            AddressKind::InternalIp => format!("in {}", address.value),
            _ => format!("out {}", address.value),
        })
        .collect())
}

const V4: &[Family] = &[Family::V4];

#[test]
fn without_rules_the_first_address_of_the_family_is_both() {
    let nics = [nic(4000, "", &["fe80::1", "fd00::1", "10.0.0.1", "10.0.0.2"])];
    let rules = AddressRules::default();
    assert_eq!(told(&nics, &[], &rules, V4).unwrap(), ["in 10.0.0.1", "out 10.0.0.1"]);
    assert_eq!(
        told(&nics, &[], &rules, &[Family::V6]).unwrap(),
        ["in fd00::1", "out fd00::1"]
    );
    assert_eq!(
        told(&nics, &[], &rules, &[Family::V6, Family::V4]).unwrap(),
        ["in fd00::1", "out fd00::1", "in 10.0.0.1", "out 10.0.0.1"]
    );
}

#[test]
fn cards_of_containers_and_local_addresses_do_not_count() {
    let local = [
        "",
        "x",
        "0.0.0.0",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.5",
        "::",
        "::1",
        "fe80::2",
        "ff02::1",
    ];
    let nics = [
        nic(-1, "", &["10.244.0.1"]),
        nic(4000, "", &local),
        nic(4001, "", &["10.0.0.9"]),
    ];
    let rules = AddressRules::default();
    assert_eq!(told(&nics, &[], &rules, V4).unwrap(), ["in 10.0.0.9", "out 10.0.0.9"]);
    assert!(
        told(&nics[..2], &[], &rules, V4)
            .unwrap_err()
            .contains("reachable from outside")
    );
    assert!(told(&[], &[], &rules, V4).unwrap_err().contains("VMware Tools"));
    assert!(
        told(&nics, &[], &rules, &[Family::V4, Family::V6])
            .unwrap_err()
            .contains("IPv6")
    );
}

#[test]
fn subnets_precede_networks_in_order_excluded_never_count() {
    let nics = [
        nic(1, "Net-A", &["10.0.0.1", "192.0.2.1"]),
        nic(2, "Net-B", &["10.1.0.1", "192.0.2.2"]),
    ];
    let rules = |internal, external| AddressRules { internal, external };
    let none = || side(&[], &[], None);
    // The second subnet has the earlier address; the first subnet wins.
    let by_subnet = rules(side(&["10.1.0.0/16", "10.0.0.0/16"], &[], Some("net-a")), none());
    assert_eq!(told(&nics, &[], &by_subnet, V4).unwrap(), ["in 10.1.0.1"]);
    let by_name = rules(
        side(&["172.16.0.0/12"], &[], Some("net-B")),
        side(&["192.0.2.0/24"], &[], None),
    );
    assert_eq!(
        told(&nics, &[], &by_name, V4).unwrap(),
        ["in 10.1.0.1", "out 192.0.2.1"]
    );
    let excluded = rules(
        side(&[], &["10.0.0.0/8"], None),
        side(&["192.0.2.0/24"], &["192.0.2.1/32"], None),
    );
    assert_eq!(told(&nics, &[], &excluded, V4).unwrap(), ["out 192.0.2.2"]);
    // Nothing is found by the rules, so the first ones that are not excluded are taken, each for its side.
    let fallback = rules(side(&["172.16.0.0/12"], &["10.0.0.0/16"], None), none());
    assert_eq!(
        told(&nics, &[], &fallback, V4).unwrap(),
        ["in 192.0.2.1", "out 10.0.0.1"]
    );
    let all = rules(side(&[], &["0.0.0.0/0"], None), side(&[], &["0.0.0.0/0"], None));
    assert!(told(&nics, &[], &all, V4).is_err());
}

#[test]
fn two_named_but_missing_networks_are_not_guessed() {
    let nics = [nic(1, "Net-A", &["10.0.0.1"])];
    let rules = AddressRules {
        internal: side(&[], &[], Some("x")),
        external: side(&[], &[], Some("y")),
    };
    let wrong = told(&nics, &[], &rules, V4).unwrap_err();
    assert!(wrong.contains("\"x\"") && wrong.contains("Net-A"), "{wrong}");
    let one_missing = AddressRules {
        internal: side(&[], &[], Some("NET-a")),
        external: side(&[], &[], Some("y")),
    };
    assert_eq!(told(&nics, &[], &one_missing, V4).unwrap(), ["in 10.0.0.1"]);
}

#[test]
fn addresses_of_the_metadata_come_first_in_its_order() {
    let nics = [nic(1, "", &["10.0.0.1", "10.0.0.2", "10.0.0.3"])];
    let rules = AddressRules {
        external: side(&[], &["10.0.0.3/32"], None),
        ..AddressRules::default()
    };
    let configured = ["10.9.9.9", "10.0.0.3", "10.0.0.2"];
    assert_eq!(
        told(&nics, &configured, &rules, V4).unwrap(),
        ["in 10.0.0.3", "out 10.0.0.2"]
    );
}
