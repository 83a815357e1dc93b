//! Files as upstream reads them, and the errors for those that cannot be honoured.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeHost;

use crate::OpenStack;

/// Every key that upstream's documentation has, as an operator may have it who comes from there.
const UPSTREAM: &str = r#"
[Global]
auth-url="https://keystone.example.com:5000/v3"
username="k8s"
password="pa#ss;word"
tenant-name=kube
domain-name=Default
region=RegionOne
os-endpoint-type=internal
ca-file=/etc/ssl/cloud.pem
[Networking]
ipv6-support-disabled=true
public-network-name=public
public-network-name=dmz
internal-network-name=nodes
address-sort-order=10.0.0.0/8, fd00::/8
[Route]
router-id=r-1
[LoadBalancer]
enabled=true
floating-network-id=f-1
floating-subnet=public*
subnet-id=s-1
lb-method=ROUND_ROBIN
lb-provider=amphora
manage-security-groups=true
create-monitor=yes
monitor-delay=5s
monitor-timeout=3s
monitor-max-retries=1
internal-lb=false
cascade-delete=true
max-shared-lb=2
[LoadBalancerClass "internet"]
floating-network-id=f-2
[Metadata]
search-order="metadataService,configDrive"
[BlockStorage]
bs-version=v3
ignore-volume-az=true
"#;

fn check(text: &str) -> Vec<Problem> {
    let host = FakeHost::new();
    host.config(text);
    host.check::<OpenStack>()
}

#[test]
fn a_file_of_upstreams_is_taken_as_it_is() {
    let host = FakeHost::new();
    host.config(UPSTREAM);
    assert_eq!(host.check::<OpenStack>(), []);
    let config = host.provider::<OpenStack>().config;
    assert_eq!(config.global.password.as_deref(), Some("pa#ss;word"));
    assert_eq!(config.networking.public_network_name, ["public", "dmz"]);
    assert_eq!(config.route.router_id.as_deref(), Some("r-1"));
    assert_eq!(config.loadbalancer.enabled, Some(true));
    assert_eq!(
        config
            .loadbalancerclass
            .get("internet")
            .unwrap()
            .floating_network_id
            .as_deref(),
        Some("f-2")
    );
}

#[test]
fn description_requests_keystone_and_places_its_ca() {
    let host = FakeHost::new();
    host.config(UPSTREAM);
    let description = host.describe::<OpenStack>();
    let wish = &description.http[0];
    assert_eq!((wish.host.as_str(), wish.port), ("keystone.example.com", Some(5000)));
    assert!(wish.reason.contains("ca: /etc/ssl/cloud.pem"), "{}", wish.reason);
    assert_eq!(
        (description.secrets.len(), description.provider_id_prefixes),
        (0, vec!["openstack://".into()])
    );
}

#[test]
fn unsupported_keys_are_refused_together_with_the_fix() {
    let problems = check(
        "[Global]\nauth-url = keystone\nuser-id = u\ntenant-id = p\ntls-insecure = true\ncert-file = /c\nkey-file = /k\n\
         use-clouds = true\ncloud = lab\nos-endpoint-type = secret\nregional-provider-id = true\n\
         [Networking]\naddress-sort-order = ten\n[Route]\nrouter-id = r\nauto-config-security-group = true\n",
    );
    let told = |at: &str| {
        problems
            .iter()
            .find(|problem| problem.at == at)
            .map(|problem| problem.message.as_str())
    };
    for (at, word) in [
        ("global.auth-url", "\"keystone\" is no URL"),
        ("global.tls-insecure", "`ca: FILE`"),
        ("global.cert-file", "application credential"),
        ("global.use-clouds", "\"lab\""),
        ("global.os-endpoint-type", "\"secret\""),
        ("global.regional-provider-id", "region"),
        ("networking.address-sort-order", "\"ten\""),
        ("route.auto-config-security-group", "security group"),
    ] {
        assert!(
            told(at).is_some_and(|message| message.contains(word)),
            "{at}: {problems:?}"
        );
    }
    assert_eq!(problems.len(), 8, "{problems:?}");
}

#[test]
fn unusable_settings_are_reported_before_creation() {
    let who = "[Global]\nauth-url = https://k\nuser-id = u\ntenant-id = p\n[LoadBalancer]\n";
    let problems = check(&format!(
        "{who}lb-method = random\nmonitor-delay = soon\nmonitor-timeout = 100ms\nmonitor-max-retries = 0\nuse-octavia = false\n\
                container-store = shelf\nfloating-subnet = ~(a\n[LoadBalancerClass \"x\"]\nfloating-subnet = ~b)\n"
    ));
    let told = |at: &str| {
        problems
            .iter()
            .find(|problem| problem.at == at)
            .map(|problem| problem.message.as_str())
    };
    for (at, word) in [
        ("loadbalancer.lb-method", "LEAST_CONNECTIONS"),
        ("loadbalancer.monitor-delay", "\"soon\""),
        ("loadbalancer.monitor-timeout", "100ms"),
        ("loadbalancer.monitor-max-retries", "1 to 10"),
        ("loadbalancer.use-octavia", "Octavia"),
        ("loadbalancer.container-store", "barbican"),
        ("loadbalancer.floating-subnet", "(a"),
        ("loadbalancerclass.x.floating-subnet", "b)"),
    ] {
        assert!(
            told(at).is_some_and(|message| message.contains(word)),
            "{at}: {problems:?}"
        );
    }
    assert_eq!(problems.len(), 8, "{problems:?}");
    assert_eq!(
        check(&format!(
            "{who}use-octavia = true\nlb-version = v2\nmonitor-delay = 1m30s\n"
        )),
        []
    );
}

#[test]
fn a_key_with_a_slip_of_the_pen_is_named_with_the_right_one() {
    let problems =
        check("[Global]\nauth-url = https://k\nuser-id = u\ntenant-id = p\nregoin = a\n[Routes]\nrouter-id = r\n");
    let told: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect();
    assert!(
        told.iter()
            .any(|one| one.starts_with("global.regoin") && one.contains("\"region\"")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|one| one.starts_with("routes") && one.contains("\"route\"")),
        "{told:?}"
    );
}

#[test]
fn keystones_url_is_taken_in_all_spellings() {
    for url in [
        "https://k.test",
        "https://k.test/",
        "https://k.test/v3",
        "https://k.test/v3/",
        "https://k.test/v2.0/",
    ] {
        let global = crate::config::Global {
            auth_url: Some(url.into()),
            ..Default::default()
        };
        assert_eq!(global.keystone(), "https://k.test/v3", "{url}");
    }
}

#[test]
fn nothing_shows_the_configuration() {
    let global = crate::config::Global {
        password: Some("canary-7391".into()),
        ..Default::default()
    };
    assert_eq!(format!("{global:?}"), "Global");
}

#[test]
fn readme_reports_every_key() {
    use cloudwit_guest_sdk::testing::keys_of;

    use crate::balancers::config::{BalancerClass, BalancerConfig};
    use crate::config::{Global, Networking, RouteConfig};
    let readme = include_str!("../../README.md");
    let keys = [
        keys_of::<Global>(),
        keys_of::<Networking>(),
        keys_of::<RouteConfig>(),
        keys_of::<BalancerConfig>(),
        keys_of::<BalancerClass>(),
    ]
    .concat();
    let untold: Vec<_> = keys
        .iter()
        .filter(|key| !readme.contains(&format!("`{key}`")))
        .collect();
    assert!(untold.is_empty(), "{untold:?}");
}
