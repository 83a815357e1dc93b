use cloudwit_guest_sdk::Severity;
use cloudwit_guest_sdk::testing::FakeHost;

use super::*;
use crate::Baidu;
use crate::testing::CONFIG;

/// Where each problem is, with `!` where it is only a warning.
fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let found = host.check::<Baidu>();
    let place = |problem: &Problem| match problem.severity {
        Severity::Error => problem.at.clone(),
        Severity::Warning => format!("{}!", problem.at),
    };
    found.iter().map(place).collect()
}

fn with(more: &str) -> String {
    CONFIG.replacen('{', &format!("{{{more}, "), 1)
}

#[test]
fn file_of_baidus_controller_is_read() {
    assert_eq!(problems(CONFIG), [""; 0]);
    let theirs = with(
        r#""ClusterName": "c", "MasterId": "m", "Endpoint": "cce.bj.baidubce.com", "NodeName": "n", "Debug": false, "SecretAccessKey": "S3CRET""#,
    );
    assert_eq!(
        problems(&theirs),
        [
            "SecretAccessKey",
            "ClusterName!",
            "MasterId!",
            "Endpoint!",
            "NodeName!",
            "Debug!"
        ]
    );
    let host = FakeHost::new();
    host.config(theirs);
    let told = format!("{:?}", host.check::<Baidu>());
    assert!(!told.contains("S3CRET") && told.contains("uses: [hmac]"), "{told}");
}

#[test]
fn keys_are_read_in_whatever_case() {
    assert_eq!(problems(&CONFIG.to_lowercase().replace("vpc-1", "vpc-2")), [""; 0]);
    assert_eq!(problems(&with(r#""VpcIdd": "x""#)), ["VpcIdd"]);
}

#[test]
fn all_mistakes_are_reported_together() {
    assert_eq!(problems(""), ["AccessKeyID", "Region", "ClusterId", "VpcId"]);
    let odd = with(r#""BlbEndpoint": "blb", "EipEndpoint": "https://eip.test/?x""#);
    assert_eq!(
        problems(&odd.replace("\"bj\"", "\"b j\"")),
        ["Region", "BlbEndpoint", "EipEndpoint"]
    );
}

#[test]
fn hosts_follow_from_the_region_or_are_written() {
    let hosts = |text: &str| {
        let host = FakeHost::new();
        host.config(text);
        let told = host.describe::<Baidu>();
        assert_eq!(told.secrets[0].uses, [SecretUse::Hmac]);
        assert_eq!(told.provider_id_prefixes, ["cce://", "i-"]);
        let shown = |wish: &HttpWish| format!("{} {}", wish.binding(), wish.methods.join(","));
        told.http.iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(
        hosts(CONFIG),
        [
            "bcc.bj.baidubce.com DELETE,GET,POST",
            "blb.bj.baidubce.com DELETE,GET,POST,PUT",
            "eip.bj.baidubce.com DELETE,GET,POST,PUT",
        ]
    );
    let one = r#""BccEndpoint": "http://gate.test:80", "BlbEndpoint": "http://gate.test:80/", "EipEndpoint": "http://gate.test:80""#;
    assert_eq!(hosts(&with(one)), ["gate.test:80 DELETE,GET,POST,PUT"]);
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in KEYS {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}
