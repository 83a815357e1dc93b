use super::*;

/// A plugin that counts its runs in `runs` and gives tokens by number.
fn plugin(folder: &Path, script: &str) -> ExecConfig {
    let file = folder.join("plugin");
    std::fs::write(
        &file,
        format!("#!/bin/sh\necho run >> {}/runs\n{script}\n", folder.display()),
    )
    .unwrap();
    // Read by a shell and not started itself: a process that another test starts meanwhile may have it open for writing for a moment.
    serde_json::from_value(serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": [file], "interactiveMode": "Never",
    }))
    .unwrap()
}

fn user(exec: ExecConfig) -> AuthInfo {
    AuthInfo {
        exec: Some(exec),
        ..AuthInfo::default()
    }
}

#[tokio::test]
async fn a_plugin_runs_once_however_many_clients_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let answer =
        r#"echo '{"kind":"ExecCredential","status":{"token":"a","expirationTimestamp":"2999-01-01T00:00:00Z"}}'"#;
    let mut user = user(plugin(folder.path(), answer));
    let bearer = Bearer::take("--a-test-of-once", &mut user).await.unwrap().unwrap();
    assert!(user.exec.is_none(), "the library would run it for each client, twice");
    assert_eq!(bearer.clone().header(), "Bearer a");
    assert!(bearer.header().is_sensitive());
    assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap(), "run\n");
}

/// The plugin sleeps until the test lets it go; the only thread of the test runs meanwhile.
#[tokio::test]
async fn a_slow_plugin_holds_up_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "while ! [ -e {}/go ]; do sleep 0.02; done\necho '{{\"status\":{{\"token\":\"slow\"}}}}'",
        folder.path().display()
    );
    let mut user = user(plugin(folder.path(), &script));
    let (bearer, ()) = tokio::join!(Bearer::take("--a-test-of-slow", &mut user), async {
        while !folder.path().join("runs").exists() {
            tokio::task::yield_now().await;
        }
        std::fs::write(folder.path().join("go"), "").unwrap();
    });
    assert_eq!(bearer.unwrap().unwrap().header(), "Bearer slow");
}

#[tokio::test]
async fn bad_plugin_is_reported_without_its_output() {
    let folder = tempfile::tempdir().unwrap();
    for script in ["echo '{\"status\": \"s3cret\"}'", "echo s3cret; exit 3", "echo '{}'"] {
        let mut user = user(plugin(folder.path(), script));
        let error = Bearer::take("--a-test-of-bad", &mut user).await.err().unwrap();
        let text = format!("{error:#}");
        assert!(text.contains("exec plugin") && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn credentials_of_the_kubeconfig_itself_come_first() {
    let mut user = AuthInfo {
        token: Some("inline".to_owned().into()),
        token_file: Some("/nowhere".into()),
        ..AuthInfo::default()
    };
    assert!(Bearer::take("--a-test-of-order", &mut user).await.unwrap().is_none());
    assert!(user.token_file.is_none() && user.token.is_some());
}

#[test]
fn a_token_is_renewed_a_minute_before_its_end() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let after = |seconds: i64| now + jiff::SignedDuration::from_secs(seconds);
    assert_eq!(rest(after(3600), now), Duration::from_secs(3540));
    assert_eq!(rest(after(30), now), Duration::ZERO);
    assert_eq!(rest(after(-30), now), Duration::ZERO);
}
