//! The order of upstream's provider, case by case.

use super::*;

fn server(places: &[(&str, &str, bool)]) -> Server {
    Server {
        id: "s".into(),
        places: places
            .iter()
            .map(|(network, ip, floating)| Place {
                network: (*network).into(),
                ip: (*ip).into(),
                floating: *floating,
            })
            .collect(),
        ..Server::default()
    }
}

fn port(active: bool, ips: &[&str]) -> Port {
    Port {
        active,
        ips: ips.iter().map(|ip| (*ip).into()).collect(),
        ..Port::default()
    }
}

fn rules(change: impl FnOnce(&mut Networking)) -> AddressRules {
    let mut networking = Networking::default();
    change(&mut networking);
    AddressRules::new(&networking).unwrap()
}

fn told(rules: &AddressRules, server: &Server, ports: &[Port]) -> Vec<String> {
    let ports: Vec<&Port> = ports.iter().collect();
    let addresses = rules.addresses(server, &ports, &[]);
    addresses
        .iter()
        .map(|address| format!("{:?} {}", address.kind, address.value))
        .collect()
}

fn full() -> (Server, [Port; 2]) {
    let mut server = server(&[
        ("public", "203.0.113.7", false),
        ("private", "10.0.0.4", false),
        ("private", "198.51.100.4", true),
        ("private", "fd00::4", false),
    ]);
    server.access_ipv4 = "192.0.2.1".into();
    server.access_ipv6 = "2001:db8::1".into();
    server.hostname = "a.example.com".into();
    (
        server,
        [port(true, &["10.0.0.4", "fd00::4"]), port(false, &["203.0.113.7"])],
    )
}

#[test]
fn addresses_order_is_ports_access_host_name_networks() {
    let (server, ports) = full();
    assert_eq!(
        told(&AddressRules::default(), &server, &ports),
        [
            "AddressKind::InternalIp 10.0.0.4",
            "AddressKind::InternalIp fd00::4",
            "AddressKind::ExternalIp 192.0.2.1",
            "AddressKind::ExternalIp 2001:db8::1",
            "AddressKind::Hostname a.example.com",
            "AddressKind::ExternalIp 198.51.100.4",
            "AddressKind::InternalIp 203.0.113.7",
        ]
    );
}

#[test]
fn ipv6_can_be_left_out_everywhere() {
    let (server, ports) = full();
    let told = told(
        &rules(|networking| networking.ipv6_support_disabled = true),
        &server,
        &ports,
    );
    assert_eq!(
        told,
        [
            "AddressKind::InternalIp 10.0.0.4",
            "AddressKind::ExternalIp 192.0.2.1",
            "AddressKind::Hostname a.example.com",
            "AddressKind::ExternalIp 198.51.100.4",
            "AddressKind::InternalIp 203.0.113.7",
        ]
    );
}

#[test]
fn public_network_address_is_external_only() {
    let (server, ports) = full();
    let ports = [ports[0].clone(), port(true, &["203.0.113.7"])];
    let told = told(
        &rules(|networking| networking.public_network_name = vec!["public".into()]),
        &server,
        &ports,
    );
    assert_eq!(told.last().unwrap(), "AddressKind::ExternalIp 203.0.113.7");
    assert_eq!(
        told.iter().filter(|address| address.ends_with("203.0.113.7")).count(),
        1
    );
}

#[test]
fn with_internal_networks_named_the_others_are_removed() {
    let (server, ports) = full();
    let ports = [ports[0].clone(), port(true, &["203.0.113.7"])];
    let told = told(
        &rules(|networking| networking.internal_network_name = vec!["private".into()]),
        &server,
        &ports,
    );
    assert!(told.iter().all(|address| !address.ends_with("203.0.113.7")), "{told:?}");
    assert!(
        told.contains(&"AddressKind::ExternalIp 198.51.100.4".into()),
        "a floating IP stays: {told:?}"
    );
}

#[test]
fn sort_puts_cidrs_first_ascending_and_keeps_the_rest() {
    let (mut server, _) = full();
    server.places.push(Place {
        network: "private".into(),
        ip: "10.0.0.3".into(),
        floating: false,
    });
    let ports = [port(true, &["172.16.0.9", "10.0.0.4"])];
    let rules = rules(|networking| networking.address_sort_order = Some("198.51.100.0/24, 10.0.0.0/8".into()));
    let told = told(&rules, &server, &ports);
    assert_eq!(
        told[..5],
        [
            "AddressKind::ExternalIp 198.51.100.4",
            "AddressKind::InternalIp 10.0.0.3",
            "AddressKind::InternalIp 10.0.0.4",
            "AddressKind::InternalIp 172.16.0.9",
            "AddressKind::ExternalIp 192.0.2.1",
        ]
    );
}

#[test]
fn subports_of_trunks_count_like_the_servers_own_networks() {
    let (server, ports) = full();
    let ports: Vec<&Port> = ports.iter().collect();
    let vlan = Place {
        network: "a-vlan".into(),
        ip: "10.9.0.4".into(),
        floating: false,
    };
    let rules = rules(|networking| networking.public_network_name = vec!["a-vlan".into()]);
    let addresses = rules.addresses(&server, &ports, &[vlan]);
    // "a-vlan" sorts before "private".
    assert_eq!(addresses[5], Address::new(AddressKind::ExternalIp, "10.9.0.4"));
}

#[test]
fn every_text_of_the_sort_order_that_is_no_cidr_is_named() {
    let networking = Networking {
        address_sort_order: Some("10.0.0.0/8, ten, 10.0.0.0/99".into()),
        ..Networking::default()
    };
    let wrong = AddressRules::new(&networking).unwrap_err();
    assert!(wrong.contains("\"ten\"") && wrong.contains("10.0.0.0/99"), "{wrong}");
}

#[test]
fn what_is_no_address_is_left_out() {
    let server = server(&[("private", "soon", false)]);
    assert_eq!(
        told(&AddressRules::default(), &server, &[port(true, &[""])]),
        Vec::<String>::new()
    );
}
