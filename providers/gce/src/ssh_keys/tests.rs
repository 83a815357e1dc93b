use cloudwit_guest_sdk::testing::FakeHost;

use super::*;

const PROJECT: &str = "https://gce.test/v1/projects/p";
const READ: &str = "https://gce.test/v1/projects/p?fields=commonInstanceMetadata%28fingerprint%2Citems%29";

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config(r#"{"global": {"token-url": "nil", "api-endpoint": "https://gce.test/v1", "project-id": "p", "local-zone": "us-central1-a", "network-name": "n"}}"#);
    host
}

fn key() -> SshKey {
    SshKey {
        user: "core".into(),
        public_key: "ssh-ed25519 AAAA".into(),
        extra: Vec::new(),
    }
}

fn metadata(items: &[(&str, &str)]) -> Metadata {
    let item = |(key, value): &(&str, &str)| Item {
        key: (*key).into(),
        value: (*value).into(),
    };
    Metadata {
        fingerprint: "f1".into(),
        items: items.iter().map(item).collect(),
    }
}

#[test]
fn key_is_added_to_those_there_are_and_nothing_else_changes() {
    let seen = metadata(&[
        ("startup-script", "#!/bin/sh\n"),
        ("ssh-keys", "ann:ssh-rsa BBBB ann\n"),
    ]);
    let wanted = with_key(seen.clone(), &key()).unwrap().unwrap();
    assert_eq!(
        (&wanted.fingerprint, &wanted.items[0]),
        (&seen.fingerprint, &seen.items[0])
    );
    assert_eq!(
        wanted.items[1].value,
        "ann:ssh-rsa BBBB ann\ncore:ssh-ed25519 AAAA core"
    );
    assert_eq!(with_key(wanted, &key()), Ok(None), "the second time it is there");
    let first = with_key(metadata(&[]), &key()).unwrap().unwrap();
    assert_eq!(
        first.items,
        metadata(&[("ssh-keys", "core:ssh-ed25519 AAAA core")]).items
    );
}

#[test]
fn key_of_another_user_or_with_an_end_does_not_count() {
    let there = |line: &str, name: &str| with_key(metadata(&[(name, line)]), &key()).unwrap().is_none();
    assert!(there("core:ssh-ed25519 AAAA core@host", "ssh-keys"));
    assert!(there("x:ssh-rsa B\ncore:ssh-ed25519 AAAA", "sshKeys"), "upstream's");
    assert!(!there("ann:ssh-ed25519 AAAA", "ssh-keys"));
    assert!(!there("core:ssh-ed25519 AAAAB", "ssh-keys"));
    let ends = "core:ssh-ed25519 AAAA google-ssh {\"userName\":\"core\",\"expireOn\":\"2030-01-01T00:00:00+0000\"}";
    assert!(!there(ends, "ssh-keys"));
}

#[test]
fn os_login_and_full_metadata_are_told() {
    let wrong = with_key(metadata(&[("enable-oslogin", "TRUE")]), &key()).unwrap_err();
    assert_eq!(wrong.kind, FailureKind::FailedPrecondition);
    let full = "x".repeat(MOST_BYTES - 5);
    let wrong = with_key(metadata(&[("ssh-keys", &full)]), &key()).unwrap_err();
    assert_eq!(wrong.kind, FailureKind::Exhausted);
}

#[test]
fn change_is_made_by_fingerprint_and_waited_for() {
    let host = host();
    let seen = |items: Value| json!({"commonInstanceMetadata": {"fingerprint": "f1", "items": items}});
    host.expect("GET", READ).answers(200, seen(json!([])));
    host.expect("POST", &format!("{PROJECT}/setCommonInstanceMetadata"))
        .with_json(json!({"fingerprint": "f1", "items": [{"key": "ssh-keys", "value": "core:ssh-ed25519 AAAA core"}]}))
        .answers(
            200,
            json!({"name": "o1", "status": "RUNNING", "selfLink": format!("{PROJECT}/global/operations/o1")}),
        );
    let FailureKind::Pending(token) = host.provider::<Gce>().ensure_ssh_key(&key(), None).unwrap_err().kind else {
        panic!("it is done at once")
    };
    let operation = format!("{PROJECT}/global/operations/o1");
    host.expect("GET", &operation)
        .answers(200, json!({"name": "o1", "status": "DONE", "selfLink": operation}));
    host.expect("GET", READ).answers(
        200,
        seen(json!([{"key": "ssh-keys", "value": "core:ssh-ed25519 AAAA core"}])),
    );
    let ensured = host.provider::<Gce>().ensure_ssh_key(&key(), Some(&token));
    assert_eq!(ensured, Ok(EnsuredKey::Added));
}

#[test]
fn change_of_somebody_else_is_a_conflict() {
    let host = host();
    host.expect("GET", READ)
        .answers(200, json!({"commonInstanceMetadata": {"fingerprint": "f1"}}));
    let refused =
        json!({"error": {"code": 412, "message": "Invalid fingerprint.", "errors": [{"reason": "conditionNotMet"}]}});
    host.expect("POST", &format!("{PROJECT}/setCommonInstanceMetadata"))
        .answers(412, refused);
    let failure = host.provider::<Gce>().ensure_ssh_key(&key(), None).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Conflict);
}
