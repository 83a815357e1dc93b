use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use super::*;
use crate::Rancher;

fn host(text: &str) -> FakeHost {
    let host = FakeHost::new();
    host.config(text);
    host
}

/// Where each problem is.
fn problems(text: &str) -> Vec<String> {
    let problems = host(text).check::<Rancher>();
    problems.iter().map(|problem| problem.at.clone()).collect()
}

#[test]
fn keys_of_upstream_are_read_and_secrets_refused() {
    let url = "[Global]\ncattle-url = https://rancher.test/v2-beta/projects/1a5\n";
    assert_eq!(problems(url), [""; 0]);
    assert_eq!(problems(""), ["global.cattle-url"]);
    assert_eq!(problems("[Global]\ncattle-url = rancher\n"), ["global.cattle-url"]);
    assert_eq!(
        problems(&format!("{url}cattle-access-key = A\ncattle-secret-key = S\n")),
        ["global.cattle-access-key", "global.cattle-secret-key"]
    );
    assert_eq!(
        problems(r#"{"global": {"cattle-url": "https://rancher.test"}}"#),
        [""; 0]
    );
    assert!(!problems(&format!("{url}cattle-ulr = x\n")).is_empty());
}

#[test]
fn url_is_that_of_version_two_as_upstreams_client_makes_it() {
    for (given, url) in [
        ("https://rancher.test", "https://rancher.test/v2-beta"),
        ("https://rancher.test/", "https://rancher.test/v2-beta"),
        ("https://rancher.test:8080/v1", "https://rancher.test:8080/v2-beta"),
        (
            "https://rancher.test/v1/projects/1a5/",
            "https://rancher.test/v2-beta/projects/1a5",
        ),
        (
            "https://rancher.test/v1/projects/1a5/schemas",
            "https://rancher.test/v2-beta/projects/1a5",
        ),
        (
            "https://rancher.test/v2-beta/projects/1a5",
            "https://rancher.test/v2-beta/projects/1a5",
        ),
        ("https://rancher.test/v17", "https://rancher.test/v17"),
        ("https://test/rancher/v2-beta", "https://test/rancher/v2-beta"),
    ] {
        let global = Global {
            cattle_url: Some(given.into()),
            ..Global::default()
        };
        assert_eq!(global.url(), url, "{given}");
    }
}

#[test]
fn grants_follow_from_the_url() {
    let told = host("[Global]\ncattle-url = http://rancher.test:8080/v1\n").describe::<Rancher>();
    let hosts: Vec<String> = told.http.iter().map(HttpWish::binding).collect();
    assert_eq!(hosts, ["rancher.test:8080"]);
    for (secret, name) in told.secrets.iter().zip([ACCESS_KEY, SECRET_KEY]) {
        assert_eq!((secret.name.as_str(), &secret.hosts), (name, &hosts));
    }
    assert_eq!(host("").describe::<Rancher>().secrets.len(), 0);
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<Global>() {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}
