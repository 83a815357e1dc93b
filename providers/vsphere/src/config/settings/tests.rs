//! Both spellings of the cloud config, what is refused, and what is wished for.

use cloudwit_guest_sdk::testing::{FakeHost, basic};

use super::*;
use crate::Vsphere;

/// Upstream's documented example in YAML, with a little of everything.
const YAML: &str = "# Global properties are used by all vCenters\nglobal:\n  port: 443\n  user: \"k8s@vsphere.local\"\n  password: 'p4ss: #1'\n  \
    soapRoundtripCount: 4\n  thumbprint: \"AA:BB\"\n  ipFamily: [ipv6, IPv4]\n\nvcenter:\n  tenant-finance:\n    server: 10.1.1.1\n    datacenters:\n      \
    - finance\n      - east\n  vc.example.com:\n    secretName: creds\n    secretNamespace: kube-system\n    port: 8443\n    caFile: /ca.pem\n    \
    ipFamily: [ipv4]\n\nlabels:\n  region: k8s-region\n  zone: k8s-zone\nnodes:\n  internalNetworkSubnetCidr: 10.0.0.0/8,fd00::/8\n  externalVmNetworkName: Public\n";

/// The same in INI.
const INI: &str = "; the same\n[Global]\nport = \"443\"\nuser = \"k8s@vsphere.local\"\npassword = \"p4ss: #1\"\nsoap-roundtrip-count = 4\n\
    thumbprint = \"AA:BB\"\nip-family = ipv6, IPv4\n\n[VirtualCenter \"tenant-finance\"]\nserver = 10.1.1.1\ndatacenters = finance, east\n\
    [VirtualCenter \"vc.example.com\"]\nsecret-name = creds\nsecret-namespace = kube-system\nport = 8443\nca-file = /ca.pem\nip-family = ipv4\n\
    [Labels]\nregion = k8s-region\nzone = k8s-zone\n[Nodes]\ninternal-network-subnet-cidr = 10.0.0.0/8, fd00::/8\nexternal-vm-network-name = Public\n";

fn host(config: &str) -> FakeHost {
    let host = FakeHost::new();
    host.config(config);
    host
}

fn problems(config: &str) -> Vec<String> {
    let problems = host(config).check::<Vsphere>();
    problems
        .into_iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect()
}

#[test]
fn yaml_and_ini_are_equal_and_global_defaults_hold() {
    let mut shown = Vec::new();
    for config in [YAML, INI] {
        let host = host(config);
        assert_eq!(host.check::<Vsphere>(), []);
        host.secret("vc.example.com.username", "u")
            .secret("vc.example.com.password", "p");
        let keys = host.context().keys();
        let settings = host.provider::<Vsphere>().settings;
        let [finance, other] = settings.vcenters.as_slice() else {
            panic!("{settings:?}")
        };
        assert_eq!(
            (finance.url().as_str(), finance.datacenters.len()),
            ("https://10.1.1.1:443", 2)
        );
        assert_eq!(
            (finance.attempts, finance.families.as_slice()),
            (4, [Family::V6, Family::V4].as_slice())
        );
        assert_eq!(finance.trust.as_deref(), Some("thumbprints: [\"AA:BB\"]"));
        assert_eq!(
            finance.credentials.basic(keys).unwrap(),
            format!("Basic {}", data_encoding::BASE64.encode(b"k8s@vsphere.local:p4ss: #1"))
        );
        assert_eq!(
            (other.url().as_str(), other.families.as_slice()),
            ("https://vc.example.com:8443", [Family::V4].as_slice())
        );
        assert_eq!(
            other.credentials.basic(keys).unwrap(),
            basic("vc.example.com.username", "vc.example.com.password")
        );
        shown.push(format!("{settings:?}"));
    }
    assert_eq!(shown[0], shown[1]);
    assert!(!shown[0].contains("p4ss"), "{}", shown[0]);
}

#[test]
fn global_server_suffices_and_ports_and_brackets_parse() {
    let of = |config: &str| host(config).provider::<Vsphere>().settings;
    for (config, url, secret) in [
        ("global: {server: vc}", "https://vc:443", "vc.username"),
        (
            "[Global]\nserver = \"[fd00::1]\"\nport = 8443\n",
            "https://[fd00::1]:8443",
            "fd00--1.username",
        ),
        (
            "[VirtualCenter \"10.0.0.1\"]\n",
            "https://10.0.0.1:443",
            "10.0.0.1.username",
        ),
        (
            "global:\nlabels:\nvcenter:\n  vc:\n    port: 443\n    datacenters:\n",
            "https://vc:443",
            "vc.username",
        ),
        ("{\"vcenter\": {\"vc\": null}}", "https://vc:443", "vc.username"),
    ] {
        let settings = of(config);
        assert_eq!(settings.vcenters.len(), 1, "{config}");
        assert_eq!(settings.vcenters[0].url(), url);
        let credentials = format!("{:?}", settings.vcenters[0].credentials);
        assert!(credentials.contains(secret), "{config}");
        assert_eq!(
            (settings.vcenters[0].attempts, settings.vcenters[0].families.len()),
            (3, 1)
        );
    }
    let both = of("global: {server: a}\nvcenter: {a: {port: 1}, b: {}}\n");
    let urls: Vec<String> = both.vcenters.iter().map(VCenterSettings::url).collect();
    assert_eq!(
        urls,
        ["https://a:1", "https://b:443"],
        "a server in global that is a vCenter of its own is that one"
    );
}

#[test]
fn everything_that_is_wrong_is_reported_together() {
    let found = problems(
        "global:\n  insecureFlag: true\n  user: me\n  apiBinding: ':43001'\n  apiDisable: false\n  nodeLabels: [a=b, c]\n  soapRoundtripCount: 99\n\
         vcenter:\n  a:\n    server: https://a\n    secretsDirectory: /x\n  b:\n    ipFamily: [ipv5]\nlabels:\n  zone: z\n\
         nodes:\n  internalNetworkSubnetCidr: 10.0.0.0/99\n  excludeExternalNetworkSubnetCidr: [x, 10.0.0.0/8]\n\
         nsxt: {host: x}\nroute: {routerPath: /x}\n",
    );
    for part in [
        "global.insecureFlag: the server's certificate is always checked; take this key out and write `thumbprints: [...]`",
        "vcenter.b.password: this is missing; write it beside user",
        "global.apiBinding: ",
        "global.apiDisable: ",
        "global.nodeLabels: \"c\" is no label",
        "vcenter.b.soapRoundtripCount: 99 is too many",
        "vcenter.a.server: \"https://a\" is no server",
        "vcenter.a.secretsDirectory: this key belongs into global",
        "vcenter.b.ipFamily: \"ipv5\" is no IP family",
        "labels.region: this is missing",
        "nodes.internalNetworkSubnetCidr: \"10.0.0.0/99\" is no network",
        "nodes.excludeExternalNetworkSubnetCidr: \"x\" is no network",
        "route.routerPath: \"/x\" is no path of a tier-1 gateway",
    ] {
        assert!(
            found.iter().any(|problem| problem.starts_with(part)),
            "{part} is missing in {found:#?}"
        );
    }
    assert_eq!(found.len(), 13, "{found:#?}");
}

#[test]
fn unknown_keys_are_told_what_they_may_have_meant() {
    let found = problems("[Global]\nserver = a\nca-fiel = x\n[Lables]\nzone = a\n");
    assert_eq!(
        found,
        [
            "lables: there is no such key; did you mean \"labels\"?",
            "global.caFiel: there is no such key; did you mean \"caFile\"?",
        ]
    );
}

#[test]
fn no_vcenter_at_all_is_reported() {
    for config in ["", "global: {}", "[Labels]\nzone = a\nregion = b\n"] {
        let found = problems(config);
        assert!(
            found[0].starts_with("global.server: no vCenter is named"),
            "{config:?}: {found:?}"
        );
    }
}

#[test]
fn each_vcenter_is_requested_with_its_trust_settings() {
    let host = host(YAML);
    let description = host.describe::<Vsphere>();
    assert_eq!(description.provider_id_prefixes, ["vsphere://"]);
    let wish = &description.http[1];
    assert_eq!(
        (wish.scheme.as_str(), wish.host.as_str(), wish.port),
        ("https", "vc.example.com", Some(8443))
    );
    assert_eq!(wish.methods, ["GET", "POST"]);
    // The thumbprint of global holds for all, and a thumbprint is nearer than an authority.
    assert!(wish.reason.contains("thumbprints: [\"AA:BB\"]"), "{}", wish.reason);
    let names: Vec<&str> = description.secrets.iter().map(|secret| secret.name.as_str()).collect();
    assert_eq!(names, ["vc.example.com.username", "vc.example.com.password"]);
    drop(host);
    assert_eq!(self::host("global: [").describe::<Vsphere>().http.len(), 0);
}
