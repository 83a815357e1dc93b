//! Answers of guests about clusters, DNS and location: forms, limits, secrets.

use cloudwit_model::Resolver;

use super::*;
use crate::call::answer::limits;
use crate::call::answer::{Checked, Screen};
use crate::call::walk::Walk;
use crate::contract::v0_1::answers::tests::{SECRET, pair, redactor, run};
use crate::contract::v0_1::generated::cloudwit::provider::common::Instance;
use crate::contract::v0_1::generated::exports::cloudwit::provider::{clusters as exported, dns, location};

fn known(name: &str, host: Option<&str>, port: Option<u16>) -> exported::KnownCluster {
    exported::KnownCluster {
        name: name.into(),
        host: host.map(str::to_owned),
        port,
        extra: Vec::new(),
    }
}

fn scrubbed(nameservers: &[&str], searches: &[&str]) -> Checked<Resolver> {
    let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
    let redactor = redactor();
    let found = dns::Resolver {
        nameservers: owned(nameservers),
        searches: owned(searches),
        extra: Vec::new(),
    };
    resolver(Screen(&redactor), found)
}

fn here(node: &str, provider_id: &str, zone: &str) -> location::Machine {
    location::Machine {
        node: node.into(),
        instance: Instance {
            provider_id: provider_id.into(),
            instance_type: None,
            zone: Some(zone.into()),
            region: None,
            addresses: Vec::new(),
            labels: Vec::new(),
            extra: Vec::new(),
        },
    }
}

#[test]
fn cluster_without_good_name_or_host_is_left_out() {
    let redactor = redactor();
    let listed = |found| run(clusters(Screen(&redactor), &mut Walk::default(), found));
    let found = vec![
        known("good", Some("203.0.113.7"), None),
        known("v6", Some("2001:db8::7"), Some(6443)),
        known("building", Some(""), None),
        known("", None, None),
        known("two\nlines", None, None),
        known("shell", Some("$(reboot)"), None),
        known("url", Some("https://x"), None),
        known("port", Some("x"), Some(0)),
        known(SECRET, None, None),
    ];
    let listed = listed(found).unwrap();
    let names: Vec<_> = listed
        .items
        .iter()
        .map(|one| (one.name.as_str(), one.address()))
        .collect();
    assert_eq!(
        names,
        [
            ("good", Some("203.0.113.7:443".to_owned())),
            ("v6", Some("[2001:db8::7]:6443".to_owned())),
            ("building", None)
        ]
    );
    assert_eq!(listed.left_out, 6);
    let many = vec![known("a", None, None); limits::CLUSTERS + 1];
    assert!(run(clusters(Screen(&redactor), &mut Walk::default(), many)).is_err());
}

#[test]
fn resolver_takes_addresses_and_domains_alone() {
    let good = scrubbed(&["10.0.0.2", "fe80::1%eth0"], &["a.example.com.", "b"]).unwrap();
    assert_eq!((good.nameservers.len(), good.searches.len()), (2, 2));
    assert_eq!(scrubbed(&[], &[]), Ok(Resolver::default()));
    assert!(scrubbed(&["dns.example.com"], &[]).is_err());
    assert!(scrubbed(&["10.0.0.2\noptions rotate"], &[]).is_err());
    assert!(scrubbed(&[], &["a b"]).is_err());
    assert!(scrubbed(&[], &[""]).is_err());
    assert!(scrubbed(&[], &[SECRET]).is_err());
    assert!(scrubbed(&["10.0.0.2"; limits::NAMESERVERS + 1], &[]).is_err());
    assert!(scrubbed(&[], &["a"; limits::SEARCHES + 1]).is_err());
}

#[test]
fn name_that_is_no_nodes_is_refused_in_words() {
    let redactor = redactor();
    let located = |found| machine(Screen(&redactor), found);
    assert_eq!(located(here("node-1", "sim://1", "a")).unwrap().node, "node-1");
    for bad in ["Node-1", "node_1", "-a", "a;reboot", "", &"a".repeat(254)] {
        let wrong = located(here(bad, "sim://1", "a")).unwrap_err().0;
        assert!(wrong.contains("this machine"), "{wrong}");
    }
    let wrong = located(here("Node_1", "sim://1", "a")).unwrap_err().0;
    assert!(wrong.contains("\"Node_1\"") && wrong.contains("lower-case"), "{wrong}");
    assert!(located(here("node-1", "", "a")).is_err());
    assert!(located(here("node-1", "sim://1\n", "a")).is_err());
    assert!(located(here("node-1", "sim://1", "a\nX=1")).is_err());
    assert!(located(here("node-1", &format!("sim://{SECRET}"), "a")).is_err());
    let mut many = here("node-1", "sim://1", "a");
    many.instance.extra = vec![pair("k", "v"); limits::EXTRA + 1];
    assert!(located(many).is_err());
}
