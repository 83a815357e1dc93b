use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use crate::Rackspace;

fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let problems = host.check::<Rackspace>();
    problems
        .into_iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect()
}

#[test]
fn a_file_of_the_in_tree_provider_is_taken_with_warnings() {
    let text = "[Global]\nauth-url = https://identity.api.rackspacecloud.com/v2.0/\nUsername = u\nPassword = p\ntenant-id = 1\n\
                domain-name = d\nRegion = IAD\n[LoadBalancer]\nsubnet-id = s\ncreate-monitor = yes\n";
    let found = problems(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("global.domain-id: has no effect"), "{found:?}");
    assert!(
        found[1].starts_with("loadbalancer.subnet-id: has no effect"),
        "{found:?}"
    );
}

#[test]
fn all_mistakes_are_reported_together() {
    let found = problems("[Global]\nauth-url = identity\nuser-id = 7\napi-key = k\npassword = p\n");
    let parts = [
        "global.auth-url: \"identity\" is no URL",
        "global.username: this key is missing; write the name of the user; identity v2 knows no user-id",
        "global.password: stands beside api-key",
        "global.region: this key is missing",
    ];
    assert_eq!(found.len(), parts.len(), "{found:?}");
    for part in parts {
        assert!(
            found.iter().any(|one| one.starts_with(part)),
            "{part} is missing in {found:?}"
        );
    }
    assert!(problems("[Global]\nusername = u\nregion = a/b\n")[0].contains("\"a/b\" is no region"));
}

#[test]
fn what_is_requested_follows_from_the_region() {
    let host = FakeHost::new();
    host.config("[Global]\nusername = u\nregion = LON\nauth-url = https://lon.identity.api.rackspacecloud.com\n");
    let description = host.describe::<Rackspace>();
    let hosts: Vec<&str> = description.http.iter().map(|wish| wish.host.as_str()).collect();
    assert_eq!(
        hosts,
        [
            "lon.identity.api.rackspacecloud.com",
            "lon.servers.api.rackspacecloud.com",
            "lon.loadbalancers.api.rackspacecloud.com"
        ]
    );
    assert_eq!(description.http[2].methods, ["GET", "POST", "PUT", "DELETE"]);
    let secrets: Vec<&str> = description.secrets.iter().map(|wish| wish.name.as_str()).collect();
    assert_eq!(secrets, ["api-key"]);
}

#[test]
fn monitor_and_node_limit_are_checked_against_the_clouds_bounds() {
    let global = "[Global]\nusername = u\nregion = DFW\n[LoadBalancer]\n";
    for (line, part) in [
        (
            "monitor-delay = 3601s",
            "loadbalancer.monitor-delay: \"3601s\" is no duration from 1s to 3600s",
        ),
        (
            "monitor-timeout = soon",
            "loadbalancer.monitor-timeout: \"soon\" is no duration",
        ),
        (
            "monitor-max-retries = 11",
            "loadbalancer.monitor-max-retries: 11 is no number from 1 to 10",
        ),
        (
            "node-limit = 0",
            "loadbalancer.node-limit: 0 is no number from 1 to 1000",
        ),
    ] {
        let found = problems(&format!("{global}{line}\n"));
        assert!(found.len() == 1 && found[0].starts_with(part), "{line}: {found:?}");
    }
    let right =
        "create-monitor = true\nmonitor-delay = 1m\nmonitor-timeout = 300\nmonitor-max-retries = 10\nnode-limit = 50\n";
    assert_eq!(problems(&format!("{global}{right}")), [""; 0]);
}

#[test]
fn without_load_balancers_their_api_is_not_requested() {
    let host = FakeHost::new();
    host.config("[Global]\nusername = u\nregion = DFW\n[LoadBalancer]\nenabled = false\n");
    let hosts: Vec<String> = host
        .describe::<Rackspace>()
        .http
        .into_iter()
        .map(|wish| wish.host)
        .collect();
    assert_eq!(
        hosts,
        ["identity.api.rackspacecloud.com", "dfw.servers.api.rackspacecloud.com"]
    );
}

#[test]
fn readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<super::Global>()
        .iter()
        .chain(&keys_of::<super::BalancerConfig>())
    {
        assert!(readme.contains(&format!("`{key}`")), "{key} is missing in the README");
    }
}
