use cloudwit_guest_sdk::Severity;
use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use super::*;
use crate::Ovirt;

const URI: &str = "[connection]\nuri = https://engine.test:8443/ovirt-engine/api/\n";

/// Where each problem is, with `!` where it is only a warning.
fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let place = |problem: &Problem| match problem.severity {
        Severity::Error => problem.at.clone(),
        Severity::Warning => format!("{}!", problem.at),
    };
    host.check::<Ovirt>().iter().map(place).collect()
}

#[test]
fn the_in_tree_providers_file_is_read() {
    let text = format!("{URI}username = admin@internal\npassword = S3CRET\n[filters]\nvms = tag=kubernetes\n");
    assert_eq!(problems(&text), ["connection.password!"]);
    let host = FakeHost::new();
    host.config(text);
    assert!(!format!("{:?}", host.check::<Ovirt>()).contains("S3CRET"));
    assert!(host.describe::<Ovirt>().secrets.is_empty());
    assert_eq!(problems(URI), [""; 0]);
    let json = r#"{"connection": {"uri": "https://engine.test/ovirt-engine/api"}, "zones": {"label-prefix": "zone-"}}"#;
    assert_eq!(problems(json), [""; 0]);
}

#[test]
fn all_mistakes_are_reported_together() {
    let text = "[connection]\nuri = engine\nauth = kerberos\n[filters]\nvms = sortby name\n[zones]\ndisabled = true\nregion = r\n";
    let expected = ["connection.uri", "connection.auth", "filters.vms", "zones.disabled"];
    let mut found = problems(text);
    found.sort_by_key(|at| expected.iter().position(|known| known == at));
    assert_eq!(found, expected);
    assert_eq!(problems(""), ["connection.uri"]);
    assert_eq!(
        problems("[connection]\nuri = https://a:b@e.test/ovirt-engine/api\n"),
        ["connection.uri"]
    );
    assert_eq!(
        problems("[connection]\nuri = https://e.test/ovirt-engine\n"),
        ["connection.uri"]
    );
    assert_eq!(problems(&format!("{URI}user = x\n")), ["connection.user"]);
    assert_eq!(
        problems(&format!("{URI}auth = basic\nusername = x\n")),
        ["connection.username!"]
    );
}

#[test]
fn what_is_requested_follows_from_the_way_to_authenticate() {
    let told = |auth: &str| {
        let host = FakeHost::new();
        host.config(format!("{URI}{auth}"));
        host.describe::<Ovirt>()
    };
    let sso = told("");
    assert_eq!(
        (sso.http[0].host.as_str(), sso.http[0].port),
        ("engine.test", Some(8443))
    );
    assert_eq!(sso.http[0].methods, ["GET", "POST"]);
    assert_eq!((sso.secrets.len(), sso.secrets[0].name.as_str()), (1, "password"));
    assert_eq!(sso.secrets[0].hosts, ["engine.test:8443"]);
    assert_eq!(sso.provider_id_prefixes, ["ovirt:///"]);
    let basic = told("auth = basic");
    assert_eq!(basic.http[0].methods, ["GET"]);
    let names: Vec<&str> = basic.secrets.iter().map(|wish| wish.name.as_str()).collect();
    assert_eq!(names, ["username", "password"]);
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    let keys = [keys_of::<Connection>(), keys_of::<Filters>(), keys_of::<Zones>()].concat();
    assert_eq!(keys.len(), 8);
    for key in keys {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}
