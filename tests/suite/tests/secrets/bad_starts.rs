//! Files with a mistake beside a secret, or in it: the message names the file and no secret.

use std::path::Path;

use cloudwit_test_support::programs::guests;
use cloudwit_test_support::{ApiServer, eventually};

use crate::search;
use crate::stage::{BEARER, Files, KUBECONFIG, PASSWORD, SOON, TOKEN, owned, pair};

/// A file, what is in it, the flags that it is read with, and a word of the message.
struct Wrong {
    flag: &'static str,
    text: String,
    told: &'static str,
}

fn wrong(flag: &'static str, text: impl Into<String>, told: &'static str) -> Wrong {
    let text = text.into();
    Wrong { flag, text, told }
}

fn mistakes() -> Vec<Wrong> {
    let provider = |lines: &str| {
        let head = "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: sim\n    component: sim.wasm\n";
        format!("{head}{lines}")
    };
    vec![
        wrong(
            "kubeconfig",
            format!("users: [{{user: {{token: {KUBECONFIG}}}\nclusters: ["),
            "line",
        ),
        wrong("kubeconfig", format!("users: {KUBECONFIG}\n"), "line"),
        wrong(
            "kubeconfig",
            format!("users:\n- name: a\n  user:\n    token: [{KUBECONFIG}]\n"),
            "line",
        ),
        wrong(
            "authentication-kubeconfig",
            format!("users: [{{user: {{token: {KUBECONFIG}}}\n"),
            "line",
        ),
        wrong(
            "provider-settings",
            format!("grants:\n  secrets:\n    - {{name: token, value: {TOKEN}, hosts: [a]}}\n"),
            "value",
        ),
        wrong(
            "provider-settings",
            format!("grants:\n  secrets: {TOKEN}\n"),
            ":2: grants.secrets",
        ),
        wrong(
            "provider-settings",
            format!("values:\n  password: \"{PASSWORD}\n"),
            "line",
        ),
        wrong(
            "config",
            provider(&format!(
                "    cloudConfig: |\n      password: {PASSWORD}\n   component: [\n"
            )),
            "line",
        ),
        wrong(
            "config",
            provider(&format!("    cloudConfig: {{password: {PASSWORD}}}\n")),
            "cloudConfig",
        ),
        wrong(
            "config",
            provider(&format!("    grants: {{secrets: {TOKEN}}}\n")),
            "secrets",
        ),
        wrong("config", provider(&format!("    values: [{PASSWORD}]\n")), "values"),
        wrong(
            "cloud-config",
            format!("{{\"endpoint\": 5, \"password\": \"{PASSWORD}\"}}"),
            "endpoint",
        ),
        wrong(
            "cloud-config",
            format!("{{\"endpoint\": \"http://a:1\", \"password\": \"{PASSWORD}\", \"pageSize\": \"{PASSWORD}\"}}"),
            "pageSize",
        ),
        wrong("cloud-config", format!("{{\"password\": \"{PASSWORD}\" oops"), "JSON"),
        wrong("cloud-config", format!("[Global]\npassword = {PASSWORD}\n"), "JSON"),
        wrong(
            "tls-private-key-file",
            format!("-----BEGIN PRIVATE KEY-----\n{BEARER}\n-----END PRIVATE KEY-----\n"),
            "no private key",
        ),
        wrong("tracing-ca-file", BEARER, "certificate"),
        wrong(
            "leader-migration-config",
            format!("leaderName: {BEARER}: {BEARER}\n"),
            "line",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_of_a_bad_start_holds_a_secret() {
    let server = ApiServer::shared().await;
    let files = Files::new(|| guests::provider("sim")).await;
    files.configure("http://127.0.0.1:1", "");
    for (number, mistake) in mistakes().into_iter().enumerate() {
        let file = files.write("wrong", &mistake.text);
        let mut process = files.start(&format!("{number}.log"), &flags(server, &files, mistake.flag, &file));
        let look = || std::future::ready(process.ended().unwrap());
        let status = eventually(SOON, "it has ended", look).await;
        let said = std::fs::read_to_string(process.log()).unwrap();
        assert_eq!(status.code(), Some(1), "{number}: {said}");
        assert!(said.contains(mistake.told), "{number}: no {} in {said}", mistake.told);
        search(&format!("what is said of {}: {:?}", mistake.flag, mistake.text), &said);
    }
}

/// Good ones for all but this flag.
fn flags(server: &ApiServer, files: &Files, flag: &str, wrong: &Path) -> Vec<String> {
    let mut flags = owned(&[
        "--admin-address=off",
        "--secure-port=0",
        "-v=10",
        "--leader-elect=false",
    ]);
    let mut give = |name: &str, file: &Path| flags.push(format!("--{name}={}", file.display()));
    if flag != "kubeconfig" {
        give("kubeconfig", server.kubeconfig());
    }
    if flag != "config" {
        give("provider-dir", &files.path("providers"));
        give("cache-dir", &files.path("cache"));
        give("cloud-provider", Path::new("sim"));
    }
    if !["cloud-config", "config"].contains(&flag) {
        give("cloud-config", &files.path("sim.json"));
    }
    match flag {
        "tls-private-key-file" => give("tls-cert-file", &files.write("tls.crt", &pair().0)),
        "tracing-ca-file" => give("tracing-endpoint", Path::new("https://127.0.0.1:1")),
        _ => {}
    }
    give(flag, wrong);
    match flag {
        "leader-migration-config" => flags.extend(owned(&["--enable-leader-migration", "--leader-elect=true"])),
        "authentication-kubeconfig" | "tls-private-key-file" => {
            flags.push("--secure-port=1".into());
        }
        _ => {}
    }
    flags
}
