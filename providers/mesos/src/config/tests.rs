use cloudwit_guest_sdk::Severity;
use cloudwit_guest_sdk::testing::{FakeHost, keys_of};

use super::*;
use crate::Mesos;

/// Where each problem is, with `!` where it is only a warning.
fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(format!("[mesos-cloud]\n{text}"));
    let place = |problem: &Problem| match problem.severity {
        Severity::Error => problem.at.replace("mesos-cloud.", ""),
        Severity::Warning => format!("{}!", problem.at.replace("mesos-cloud.", "")),
    };
    host.check::<Mesos>().iter().map(place).collect()
}

#[test]
fn the_in_tree_providers_file_is_read() {
    assert_eq!(problems(""), [""; 0]);
    let text = "mesos-master = 10.0.0.1:5050\nhttp-client-timeout = 500ms\nstate-cache-ttl = 1h\n";
    assert_eq!(problems(text), ["http-client-timeout!", "state-cache-ttl!"]);
    for (text, seconds, found) in [
        ("1ms", 1, &["http-client-timeout!"][..]),
        ("1s", 1, &[]),
        ("20s", 20, &[]),
        ("1m30s", 20, &["http-client-timeout!"]),
        ("0ms", 10, &["http-client-timeout"]),
        ("soon", 10, &["http-client-timeout"]),
    ] {
        let masters = Masters {
            http_client_timeout: Some(text.into()),
            ..Masters::default()
        };
        assert_eq!(masters.timeout(), Duration::from_secs(seconds), "{text}");
        assert_eq!(problems(&format!("http-client-timeout = {text}\n")), found, "{text}");
    }
    assert_eq!(Masters::default().urls(), ["http://localhost:5050"]);
}

#[test]
fn mistakes_are_reported_with_their_keys() {
    assert_eq!(problems("mesos-master = zk://10.0.0.1:2181/mesos\n"), ["mesos-master"]);
    assert_eq!(problems("mesos-master = 10.0.0.1:5050, a b\n"), ["mesos-master"]);
    assert_eq!(
        problems(&format!("mesos-master = {}m:1\n", "m:1,".repeat(9))),
        ["mesos-master"]
    );
    assert_eq!(problems("auth = kerberos\n"), ["auth"]);
    assert_eq!(problems("auth = dcos\n"), ["uid"]);
    assert_eq!(problems("uid = me\n"), ["uid"]);
    assert_eq!(problems("auth = dcos-password\nuid = me\n"), [""; 0]);
    assert_eq!(problems("mesos-masters = x\n"), ["mesos-masters"]);
}

#[test]
fn requests_follow_from_masters_and_authentication() {
    let told = |auth: &str| {
        let host = FakeHost::new();
        host.config(format!(
            "[mesos-cloud]\nmesos-master = 10.0.0.1:5050,https://m.test/mesos/\n{auth}"
        ));
        let told = host.describe::<Mesos>();
        let hosts: Vec<String> = told.http.iter().map(HttpWish::binding).collect();
        assert_eq!(hosts, ["10.0.0.1:5050", "m.test"]);
        let secrets = told.secrets.iter().map(|wish| (wish.name.clone(), wish.uses.clone()));
        (told.http[0].methods.join(" "), secrets.collect::<Vec<_>>())
    };
    let placeholder = |name: &str| (name.to_owned(), vec![SecretUse::Placeholder]);
    assert_eq!(told(""), ("GET".into(), Vec::new()));
    assert_eq!(
        told("auth = basic\n"),
        ("GET".into(), vec![placeholder("principal"), placeholder("secret")])
    );
    let key = vec![("private-key".to_owned(), vec![SecretUse::Sign])];
    assert_eq!(told("auth = dcos\nuid = me\n"), ("GET POST".into(), key));
    assert_eq!(
        told("auth = dcos-password\nuid = me\n"),
        ("GET POST".into(), vec![placeholder("password")])
    );
}

#[test]
fn the_readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<Masters>() {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}
