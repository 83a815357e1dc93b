//! Whatever is wrong with what an operator rolls out, the last good one goes on, and says what is wrong.

use std::fs;

use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::Deployment;
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, programs};
use k8s_openapi::api::core::v1::Node;
use kube::Api;

use crate::stack::{SOON, Stack};

/// What is rolled out wrongly, what the metric calls it, and what the Event says.
async fn refused(stack: &Stack, change: impl FnOnce(), result: &str, says: &[&str]) {
    // Counted before the change: it may be followed before anything else is asked.
    let before = stack.swaps(result).await.unwrap();
    change();
    stack.until_swaps(result, before + 1).await;
    for part in says {
        stack.until_event("ProviderSwapRefused", part).await;
    }
    let gauge = "cloudwit_provider_refused{provider=\"sim\"} 1";
    assert!(stack.metrics().await.contains(gauge), "{gauge} is missing");
    stack.initialises_a_node().await;
}

/// All is put back: what runs is what the files say again.
async fn withdrawn(stack: &Stack) {
    let before = stack.swaps("unchanged").await.unwrap();
    let (sim, settings) = stack.configuration();
    stack.configure(&sim, &settings);
    stack.secret.write(&[("token", b"token-0")]);
    stack.components.write(&[("sim.wasm", &stack.component)]);
    stack.until_swaps("unchanged", before + 1).await;
    let gauge = "cloudwit_provider_refused{provider=\"sim\"} 0";
    assert!(stack.metrics().await.contains(gauge), "{gauge} is missing");
}

fn exporting(names: &[&str]) -> Vec<u8> {
    let exports: String = names
        .iter()
        .map(|name| format!("(export \"{name}\" (instance $empty))"))
        .collect();
    wat::parse_str(format!("(component (instance $empty) {exports})")).unwrap()
}

async fn guest(name: &'static str) -> Vec<u8> {
    let file = tokio::task::spawn_blocking(move || guests::test_guest(name))
        .await
        .unwrap();
    fs::read(file).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubewarden_374_unloadable_update_keeps_last_good_one() {
    let stack = Stack::start().await;
    stack.initialises_a_node().await;
    let (sim, settings) = stack.configuration();

    let components: [(&str, Vec<u8>, &str, &[&str]); 5] = [
        (
            "broken",
            stack.component[..stack.component.len() / 2].to_vec(),
            "load",
            &["is not a valid WebAssembly component"],
        ),
        (
            "text",
            b"apiVersion: v1\n".to_vec(),
            "load",
            &["is not WebAssembly but starts with"],
        ),
        (
            "another contract",
            exporting(&["cloudwit:provider/info@0.2.0", "cloudwit:provider/instances@0.2.0"]),
            "load",
            &["speaks cloudwit:provider 0.2"],
        ),
        (
            "trapping",
            guest("crashes_early").await,
            "load",
            &["does not start", "forgot who I am"],
        ),
        (
            "without routes",
            guest("only_instances").await,
            "abilities",
            &["no longer exports `load-balancers`, `routes`"],
        ),
    ];
    for (what, component, result, says) in components {
        println!("{what}");
        let change = || stack.components.write(&[("sim.wasm", &component)]);
        refused(&stack, change, result, says).await;
    }
    withdrawn(&stack).await;

    let change = || stack.configure(&sim.replace('}', ",\"pageSize\":0}"), &settings);
    refused(&stack, change, "check", &["pageSize: 0 is not between 1 and 1000"]).await;
    let change = || stack.configure(&sim, &settings.replace("GET, POST, PUT, DELETE", "GET"));
    refused(
        &stack,
        change,
        "grants",
        &["missing grants; add to grants.http: - {scheme: http, host: \"127.0.0.1\", port: "],
    )
    .await;
    let change = || stack.configure(&sim, &settings.replace("grants:", "grant:"));
    refused(&stack, change, "settings", &["settings.yaml"]).await;
    withdrawn(&stack).await;

    let change = || stack.secret.write(&[("token", b"")]);
    refused(&stack, change, "settings", &["is empty; put the secret"]).await;
    let change = || stack.secret.write(&[("token", b"wrong-token")]);
    refused(&stack, change, "probe", &["cannot use the cloud: denied"]).await;
    withdrawn(&stack).await;
    stack.until_event("ProviderSwapWithdrawn", "nothing changed").await;
    let said = stack.events("ProviderSwapRefused").await.join("\n");
    assert!(!said.contains("wrong-token") && !said.contains("token-0"), "{said}");
    assert!(stack.events("ProviderSwapped").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubewarden_368_start_with_broken_component_changes_nothing() {
    let program = tokio::task::spawn_blocking(programs::cloudwit).await.unwrap();
    let server = ApiServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.wasm");
    fs::write(&broken, b"apiVersion: v1\n").unwrap();
    let deployment = Deployment::new(&folder.path().join("start"), program.parent().unwrap(), &broken).unwrap();
    NodeBuilder::new("waiting").create(&server.client()).await.unwrap();
    let started = deployment.start_cloudwit(server.kubeconfig(), "http://127.0.0.1:1", &[]);
    let (mut cloudwit, _) = started.unwrap();
    let status = eventually(SOON, "it ends", || {
        let ended = cloudwit.ended().unwrap();
        async move { ended }
    })
    .await;
    assert!(!status.success());
    let said = cloudwit.log_end();
    assert!(
        said.contains("is not WebAssembly but starts with \"apiVersi\""),
        "{said}"
    );
    let node = Api::<Node>::all(server.client()).get("waiting").await.unwrap();
    assert!(is_uninitialised(&node));
}
