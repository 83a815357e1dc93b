//! `TestGetNodeAddressesFromNodeIP`, `TestAddToNodeAddresses`, `TestNodeAddressesChangeDetected` and what they leave
//! out.

use std::cell::Cell;

use cloudwit_model::AddressKind;
use proptest::prelude::*;

use super::*;

/// `I 10.1.1.1, E 55.5.5.5, H host, D name` as Node addresses.
fn list(text: &str) -> Vec<NodeAddress> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (kind, value) = entry.split_once(' ').expect("kind and value");
            let kind = match kind {
                "I" => "InternalIP",
                "E" => "ExternalIP",
                "H" => "Hostname",
                "ID" => "InternalDNS",
                "ED" => "ExternalDNS",
                other => panic!("unknown kind {other}"),
            };
            node_address(kind, value)
        })
        .collect()
}

fn cloud(text: &str) -> Vec<Address> {
    list(text)
        .into_iter()
        .map(|address| {
            Address::new(
                AddressKind::parse(&address.type_).expect("a known kind"),
                address.address,
            )
        })
        .collect()
}

#[test]
fn provided_ip_comes_first_and_others_of_kind_are_dropped() {
    let v6 = "2600:1f14:1d4:d101::ba3d";
    for (name, offered, provided, expected) in [
        (
            "single internal",
            "I 10.1.1.1, E 55.55.55.55, H host",
            "10.1.1.1",
            "I 10.1.1.1, E 55.55.55.55, H host",
        ),
        (
            "node IP is external",
            "I 10.1.1.1, E 55.55.55.55, H host",
            "55.55.55.55",
            "E 55.55.55.55, I 10.1.1.1, H host",
        ),
        (
            "same IP internal and external, other pair present",
            "I 44.44.44.44, E 44.44.44.44, I 55.55.55.55, E 55.55.55.55, H host",
            "55.55.55.55",
            "I 55.55.55.55, E 55.55.55.55, H host",
        ),
        (
            "with DNS types",
            "ID ip.internal, I 10.1.1.1, E 55.55.55.55, ED ip.external, H host",
            "10.1.1.1",
            "I 10.1.1.1, ID ip.internal, E 55.55.55.55, ED ip.external, H host",
        ),
        (
            "several internal",
            "I 10.1.1.1, I 10.2.2.2, I 10.3.3.3, E 55.55.55.55, H host",
            "10.1.1.1",
            "I 10.1.1.1, E 55.55.55.55, H host",
        ),
        (
            "v6 spelled differently",
            "I 10.1.1.1, I 2600:1f14:1d4:d101:0:0:0:ba3d, H host",
            v6,
            "I 2600:1f14:1d4:d101:0:0:0:ba3d, H host",
        ),
        (
            "dual, cloud v4 first",
            "I 10.1.1.1, I fc01::1, H host",
            "10.1.1.1,fc01::1",
            "I 10.1.1.1, I fc01::1, H host",
        ),
        (
            "dual, cloud v6 first",
            "I fc01::1, I 10.1.1.1, H host",
            "10.1.1.1,fc01::1",
            "I 10.1.1.1, I fc01::1, H host",
        ),
        (
            "dual, extra internals",
            "I 10.1.1.1, I 10.2.2.2, I fc01::1, I fc02::2, H host",
            "10.1.1.1,fc01::1",
            "I 10.1.1.1, I fc01::1, H host",
        ),
        (
            "dual, one external",
            "I 10.1.1.1, E 55.55.55.55, I fc01::1, H host",
            "10.1.1.1,fc01::1",
            "I 10.1.1.1, I fc01::1, E 55.55.55.55, H host",
        ),
        (
            "dual v6-primary, externals of both families",
            "I 10.1.1.1, E 55.55.55.55, I fc01::1, E 2001:db1::1, H host",
            "fc01::1,10.1.1.1",
            "I fc01::1, I 10.1.1.1, E 55.55.55.55, E 2001:db1::1, H host",
        ),
        (
            "dual, external v4 + internal v6 matched",
            "I 10.1.1.1, E 55.55.55.55, I fc01::1, E 2001:db1::1, H host",
            "55.55.55.55,fc01::1",
            "E 55.55.55.55, I fc01::1, H host",
        ),
        (
            "IPv4 mapped into IPv6",
            "I 10.1.1.1, E 55.55.55.55",
            "::ffff:55.55.55.55",
            "E 55.55.55.55, I 10.1.1.1",
        ),
        (
            "names that are no addresses",
            "ID 10.1.1.x, I 10.1.1.1",
            "10.1.1.1",
            "I 10.1.1.1, ID 10.1.1.x",
        ),
    ] {
        assert_eq!(
            prefer_provided(&list(offered), provided).as_deref(),
            Ok(&list(expected)[..]),
            "{name}"
        );
    }
}

#[test]
fn provided_ip_not_in_cloud_is_an_error_naming_both() {
    let error = prefer_provided(&list("I 10.1.1.1, E 55.55.55.55"), "10.2.2.2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the annotation alpha.kubernetes.io/provided-node-ip names the address 10.2.2.2, which the \
         cloud does not list for this machine; it lists InternalIP 10.1.1.1, ExternalIP 55.55.55.55"
    );
    // dual request, single-stack cloud
    assert!(prefer_provided(&list("I 10.1.1.1, H host"), "10.1.1.1,fc01::5678").is_err());
    // A single unspecified address parses and can never match.
    assert!(matches!(
        prefer_provided(&list("I 10.1.1.1"), "0.0.0.0"),
        Err(AddressError::NotOffered { .. })
    ));
}

#[test]
fn the_annotation_is_read_as_upstream_reads_it() {
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    for (value, expected) in [
        ("10.0.0.1", vec![ip("10.0.0.1")]),
        ("010.000.00.001", vec![ip("10.0.0.1")]),
        ("0.0.0.0", vec![ip("0.0.0.0")]),
        ("fc01::1", vec![ip("fc01::1")]),
        ("::ffff:10.0.0.01", vec![ip("10.0.0.1")]),
        ("10.0.0.1,fc01::1", vec![ip("10.0.0.1"), ip("fc01::1")]),
        ("fc01::1,10.0.0.1", vec![ip("fc01::1"), ip("10.0.0.1")]),
    ] {
        assert_eq!(parse_provided(value), Ok(expected), "{value:?}");
    }
    for value in [
        "",
        "invalid-ip",
        "10.0.0.1, fc01::1",
        " 10.0.0.1",
        "10.0.0.1,",
        "10.0.0",
        "10.0.0.1.1",
        "10.0.0.256",
        "10.0.0.+1",
        "10.0.0.0x1",
        "fe80::1%eth0",
        "10.0.0.1/24",
        "10.0.0.1,10.0.0.2",
        "fc01::1,fc01::2",
        "10.0.0.1,::ffff:10.0.0.2",
        "0.0.0.0,fc01::1",
        "10.0.0.1,::",
        "10.0.0.1,fc01::1,10.0.0.2",
    ] {
        let error = parse_provided(value).expect_err(value);
        assert!(error.to_string().contains(&format!("{value:?}")), "{error}");
    }
}

#[test]
fn addresses_are_added_only_once() {
    for (name, existing, more, expected) in [
        ("add nothing to nothing", "", "", ""),
        ("add two to nothing", "", "E 1.1.1.1, H host", "E 1.1.1.1, H host"),
        (
            "the same twice in what is added",
            "",
            "E 1.1.1.1, E 1.1.1.1",
            "E 1.1.1.1",
        ),
        (
            "one new, one known",
            "E 1.1.1.1, I 10.1.1.1",
            "E 1.1.1.1, H host",
            "E 1.1.1.1, I 10.1.1.1, H host",
        ),
    ] {
        let mut addresses = list(existing);
        add_all(&mut addresses, list(more));
        assert_eq!(addresses, list(expected), "{name}");
    }
}

#[test]
fn change_is_seen_and_a_mere_reordering_of_kinds_is_none() {
    for (name, old, new, expected) in [
        (
            "the same",
            "I 10.0.0.1, E 132.143.154.163",
            "I 10.0.0.1, E 132.143.154.163",
            false,
        ),
        (
            "another external address",
            "I 10.0.0.1, E 132.143.154.164",
            "I 10.0.0.1, E 132.143.154.163",
            true,
        ),
        (
            "one fewer",
            "I 10.0.0.1, E 132.143.154.163, H h",
            "I 10.0.0.1, E 132.143.154.163",
            true,
        ),
        (
            "one more",
            "I 10.0.0.1, E 132.143.154.163",
            "I 10.0.0.1, E 132.143.154.163, H h",
            true,
        ),
        (
            "kinds swapped",
            "E 10.0.0.1, I 132.143.154.163",
            "I 10.0.0.1, E 132.143.154.163",
            true,
        ),
        (
            "kinds reordered",
            "E 1.1.1.1, I 10.0.0.1, H h",
            "H h, I 10.0.0.1, E 1.1.1.1",
            false,
        ),
        (
            "dual stack without change: no empty patch",
            "I 10.0.0.1, I fc01::1",
            "I 10.0.0.1, I fc01::1",
            false,
        ),
        (
            "dual stack, another primary",
            "I 10.0.0.1, I fc01::1",
            "I fc01::1, I 10.0.0.1",
            true,
        ),
        (
            "two of a kind become the same twice",
            "I 10.0.0.1, I 10.0.0.2",
            "I 10.0.0.2, I 10.0.0.2",
            true,
        ),
        ("none at all", "", "", false),
    ] {
        assert_eq!(changed(&list(old), &list(new)), expected, "{name}");
    }
}

#[test]
fn the_kubelets_hostname_stays_where_the_cloud_reports_none() {
    let wanted = |current: &str, offered: &str| wanted(&list(current), &cloud(offered), None).unwrap();
    assert_eq!(
        wanted("H kubelet", "H cloud, I 10.0.0.1"),
        Some(list("H cloud, I 10.0.0.1"))
    );
    assert_eq!(
        wanted("H kubelet, I 10.9.9.9", "I 10.0.0.1, E 1.1.1.1"),
        Some(list("I 10.0.0.1, E 1.1.1.1, H kubelet"))
    );
    assert_eq!(
        wanted("H one, H two", "I 10.0.0.1"),
        Some(list("I 10.0.0.1, H one, H two"))
    );
    assert_eq!(wanted("H kubelet, I 10.0.0.1", ""), None, "addresses are never cleared");
    assert_eq!(
        wanted("", "I 10.0.0.1, I 10.0.0.1"),
        Some(list("I 10.0.0.1")),
        "the API server refuses duplicates"
    );
}

#[test]
fn a_provided_ip_without_any_address_from_the_cloud_is_an_error() {
    let error = wanted(&list("I 10.0.0.1"), &[], Some("10.0.0.1")).unwrap_err();
    assert!(error.to_string().ends_with("it lists none"), "{error}");
}

thread_local! {
    /// How many keys were compared on this thread.
    static COMPARED: Cell<usize> = const { Cell::new(0) };
}

/// A key that counts how often it is compared.
#[derive(Debug)]
struct Counted(String);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.with(|compared| compared.set(compared.get() + 1));
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl std::hash::Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        COMPARED.with(|compared| compared.set(compared.get() + 1));
        self.0.cmp(&other.0)
    }
}

fn compared(run: impl FnOnce()) -> usize {
    COMPARED.with(|compared| compared.set(0));
    run();
    COMPARED.with(Cell::get)
}

#[test]
fn work_on_long_lists_is_linear() {
    let many = |from: u32| -> Vec<NodeAddress> {
        let kinds = ["InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"];
        let address = |number: u32| node_address(kinds[number as usize % 5], &Ipv4Addr::from(number).to_string());
        (from..from + 20_000).map(address).collect()
    };
    let mut all = many(0);
    let added = compared(|| append_new(&mut all, many(10_000), |one| Counted(one.address.clone())));
    assert_eq!(all.len(), 30_000);
    assert!(added < 2 * 40_000, "{added} comparisons");
    let grouped = compared(|| drop(by_kind(&all, |one| Counted(one.type_.clone()))));
    assert!(grouped < 5 * 30_000, "{grouped} comparisons");
}

#[test]
fn a_message_names_a_few_of_many_addresses() {
    let many: Vec<Address> = (0..1000_u32)
        .map(|number| Address::new(AddressKind::InternalIP, Ipv4Addr::from(number).to_string()))
        .collect();
    let error = wanted(&[], &many, Some("192.0.2.1")).unwrap_err().to_string();
    assert!(error.ends_with("InternalIP 0.0.0.15, 984 more"), "{error}");
}

/// As the controllers had it before, and as upstream has it: each address is compared with each.
fn changed_slowly(old: &[NodeAddress], new: &[NodeAddress]) -> bool {
    let of_kind = |list: &[NodeAddress], kind: &str| -> Vec<String> {
        let same = list.iter().filter(|address| address.type_ == kind);
        same.map(|address| address.address.clone()).collect()
    };
    let differs = |address: &NodeAddress| of_kind(old, &address.type_) != of_kind(new, &address.type_);
    old.len() != new.len() || new.iter().any(differs)
}

fn any_addresses() -> impl Strategy<Value = Vec<NodeAddress>> {
    let address = ("[IEH]", "[ab]").prop_map(|(kind, value)| node_address(&kind, &value));
    prop::collection::vec(address, 0..7)
}

proptest! {
    #[test]
    fn lists_come_out_as_when_each_is_compared_with_each(old in any_addresses(), new in any_addresses()) {
        prop_assert_eq!(changed(&old, &new), changed_slowly(&old, &new));
        let (mut quick, mut slow) = (old.clone(), old);
        add_all(&mut quick, new.clone());
        for address in new {
            if !slow.contains(&address) {
                slow.push(address);
            }
        }
        prop_assert_eq!(quick, slow);
    }
}
