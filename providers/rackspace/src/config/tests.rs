use cloudwit_guest_sdk::testing::FakeHost;

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
    assert!(found[0].starts_with("loadbalancer: has no effect"), "{found:?}");
    assert!(found[1].starts_with("global.domain-id: has no effect"), "{found:?}");
}

#[test]
fn all_mistakes_are_told_at_once() {
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
fn what_is_asked_for_follows_from_the_region() {
    let host = FakeHost::new();
    host.config("[Global]\nusername = u\nregion = LON\nauth-url = https://lon.identity.api.rackspacecloud.com\n");
    let description = host.describe::<Rackspace>();
    let hosts: Vec<&str> = description.http.iter().map(|wish| wish.host.as_str()).collect();
    assert_eq!(
        hosts,
        [
            "lon.identity.api.rackspacecloud.com",
            "lon.servers.api.rackspacecloud.com"
        ]
    );
    let secrets: Vec<&str> = description.secrets.iter().map(|wish| wish.name.as_str()).collect();
    assert_eq!(secrets, ["api-key"]);
}
