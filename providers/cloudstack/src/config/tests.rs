use cloudwit_guest_sdk::Severity;
use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use super::*;
use crate::CloudStack;

/// Where each problem is, with `!` where it is only a warning.
fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let found = host.check::<CloudStack>();
    let place = |problem: &Problem| match problem.severity {
        Severity::Error => problem.at.clone(),
        Severity::Warning => format!("{}!", problem.at),
    };
    found.iter().map(place).collect()
}

#[test]
fn upstream_file_is_read_with_a_hint_for_the_secret_key() {
    let sound = "[Global]\napi-url = https://cloud.test/client/api\napi-key = K\nproject-id = p\nregion = north\n";
    assert_eq!(problems(sound), [""; 0]);
    assert_eq!(problems(&format!("{sound}zone = z\n")), ["global.zone!"]);
    let upstreams = format!("{sound}secret-key = S3CRET\nssl-no-verify = true\n");
    assert_eq!(problems(&upstreams), ["global.secret-key", "global.ssl-no-verify"]);
    let host = FakeHost::new();
    host.config(upstreams);
    let told = format!("{:?}", host.check::<CloudStack>());
    assert!(!told.contains("S3CRET") && told.contains("uses: [hmac]"), "{told}");
    let json = r#"{"global": {"api-url": "https://cloud.test/client/api", "api-key": "K"}}"#;
    assert_eq!(problems(json), [""; 0]);
}

#[test]
fn all_mistakes_are_reported_together() {
    assert_eq!(
        problems("[Global]\napi-url = cloud\n"),
        ["global.api-url", "global.api-key"]
    );
    assert_eq!(problems("[Global]\napi-uri = x\n"), ["global.api-uri"]);
    assert_eq!(problems(""), ["global.api-url", "global.api-key"]);
}

#[test]
fn what_is_requested_follows_from_the_url() {
    let host = FakeHost::new();
    host.config("[Global]\napi-url = https://cloud.test:8443/client/api/\napi-key = K\n");
    let told = host.describe::<CloudStack>();
    let http = &told.http[0];
    assert_eq!((http.host.as_str(), http.port), ("cloud.test", Some(8443)));
    assert_eq!(http.methods, ["POST"]);
    assert_eq!(told.secrets[0].uses, [SecretUse::Hmac]);
    assert_eq!(told.provider_id_prefixes, ["external-cloudstack://", "cloudstack://"]);
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<Global>() {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}
