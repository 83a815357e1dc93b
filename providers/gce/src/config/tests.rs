use cloudwit_guest_sdk::testing::FakeHost;

use crate::Gce;

fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let problems = host.check::<Gce>();
    problems
        .into_iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect()
}

#[test]
fn upstreams_file_is_read() {
    let text = "[global]\nproject-id = my-project\nnetwork-name = default\nsubnetwork-name = default\nsecondary-range-name = pods\n\
         node-tags = node-a\nnode-tags = node-b\nnode-instance-prefix = node\nmultizone = true\nregional = false\n\
         stack-type = IPV4_IPV6\nlocal-zone = us-central1-b\napi-endpoint = https://compute.example.com/compute/v1/\n\
         container-api-endpoint = https://container.example.com/\ntoken-url = nil\n";
    assert_eq!(problems(text), Vec::<String>::new());
    let host = FakeHost::new();
    host.config(text);
    let gce = host.provider::<Gce>();
    assert_eq!(gce.config.global.node_tags, ["node-a", "node-b"]);
    assert_eq!(gce.config.global.api(), "https://compute.example.com/compute/v1");
}

#[test]
fn every_mistake_is_reported_together() {
    let text = "[global]\nlocal-zone = us\nstack-type = both\nnode-tags = UPPER\ncluster-id = Not_A_Name\napi-endpoint = compute\n\
         client-email = nobody\n";
    let problems = problems(text);
    for part in [
        "local-zone",
        "stack-type",
        "node-tags",
        "cluster-id",
        "api-endpoint",
        "client-email",
    ] {
        assert!(
            problems.iter().any(|problem| problem.contains(part)),
            "{part}: {problems:?}"
        );
    }
    let unknown = self::problems("[global]\nprojekt-id = p\n");
    assert!(unknown[0].contains("project-id"), "{unknown:?}");
    let wrong =
        self::problems("[global]\ntoken-url = https://t.example.com/\nclient-email = a@b\nprivate-key-id = k\n");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
}

#[test]
fn nothing_configured_is_all_from_the_metadata_server() {
    assert_eq!(problems(""), Vec::<String>::new());
    let description = FakeHost::new().describe::<Gce>();
    let hosts: Vec<&str> = description.http.iter().map(|wish| wish.host.as_str()).collect();
    assert_eq!(hosts, ["compute.googleapis.com", "metadata.google.internal"]);
    assert!(description.secrets.is_empty());
}

#[test]
fn alpha_features_are_warned_of() {
    let warned = problems("[global]\nalpha-features = ILBSubsets\n");
    assert!(
        warned.iter().all(|problem| problem.contains("alpha-features")) && warned.len() == 1,
        "{warned:?}"
    );
}
