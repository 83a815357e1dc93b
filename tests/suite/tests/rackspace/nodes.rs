//! Nodes get what their servers are, and go with them.

use std::collections::BTreeMap;

use cloudwit_model::{Cloud, NodeRef, Presence};
use cloudwit_suite::hosting::{Hosting, node, settings};
use cloudwit_test_support::clouds::mimic::{Mimic, REGION};
use cloudwit_test_support::programs::guests;

use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_follow_their_servers_through_all_states() {
    let mut scene = Scene::new().await;
    scene.start(&[]).await;
    let (stays, stops, goes) = (
        scene.joins("stays").await,
        scene.joins("stops").await,
        scene.joins("goes").await,
    );
    for (name, id) in [("stays", &stays), ("stops", &stops), ("goes", &goes)] {
        let node = scene.initialised(name).await;
        let spec = node.spec.unwrap_or_default();
        assert_eq!(spec.provider_id, Some(format!("rackspace://{id}")));
        let labels = node.metadata.labels.unwrap_or_default();
        assert_eq!(labels["topology.kubernetes.io/region"], REGION);
        assert_eq!(labels["node.kubernetes.io/instance-type"], "general1-1");
        let server = scene.account().await.look(id).await.unwrap();
        let address = |network: &str| server["addresses"][network][0]["addr"].as_str().unwrap().to_owned();
        let status = node.status.unwrap_or_default();
        let told: BTreeMap<String, String> = status
            .addresses
            .into_iter()
            .flatten()
            .filter(|address| !address.address.contains(':'))
            .map(|address| (address.type_, address.address))
            .collect();
        assert_eq!(told["InternalIP"], address("private"));
        assert_eq!(told["ExternalIP"], address("public"));
        assert_eq!(told["Hostname"], name);
    }

    let account = scene.account().await;
    account.set_status(&stops, "SHUTOFF").await.unwrap();
    account.end(&goes).await.unwrap();
    scene.falls_silent("stops").await;
    scene.falls_silent("goes").await;
    scene
        .settled("the Node of the server that ended is gone", || async {
            match scene.node("goes").await {
                None => Ok(()),
                Some(_) => Err("it is there".to_owned()),
            }
        })
        .await;
    scene
        .settled("the Node of the stopped server has the taint", || async {
            let node = scene.node("stops").await.ok_or("it is gone")?;
            let taints = node.spec.unwrap_or_default().taints.unwrap_or_default();
            let is_shutdown = |key: &str| key == "node.cloudprovider.kubernetes.io/shutdown";
            match taints.iter().any(|taint| is_shutdown(&taint.key)) {
                true => Ok(()),
                false => Err(format!("{taints:?}")),
            }
        })
        .await;
    assert!(scene.node("stays").await.is_some());
}

/// Cloud Servers gives at most 1,000 servers in a page.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_and_more_servers_are_two_pages() {
    const SERVERS: usize = 1_100;
    let mimic = Mimic::start().await.unwrap();
    let account = mimic.account("many").await.unwrap();
    let names = (0..SERVERS).map(|number| format!("node-{number}"));
    let ids = account.servers(names).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let hosting = Hosting::new(cloudwit_host::HostOptions::default());
    let settings = cloudwit_host::ProviderSettings {
        config_text: mimic_config(&mimic, "many"),
        grants: mimic_grants(&mimic, folder.path()),
        ..settings()
    };
    let component = tokio::task::spawn_blocking(|| guests::provider("rackspace"))
        .await
        .unwrap();
    let provider = hosting.load_file(&component, settings).await.unwrap();
    mimic.cloud.forget_calls().await.unwrap();
    let nodes: Vec<NodeRef> = (0..SERVERS).map(|number| node(&format!("node-{number}"))).collect();
    let mut answers = Vec::new();
    // The host asks about at most 1,000 Nodes in a call.
    for nodes in nodes.chunks(1_000) {
        answers.extend(provider.lookup(nodes).await.unwrap());
    }
    assert_eq!(answers.len(), SERVERS);
    for (answer, id) in answers.iter().zip(&ids) {
        let Ok(Presence::Running(instance)) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(instance.provider_id, format!("rackspace://{id}"));
    }
    let calls = mimic.cloud.calls().await.unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    let page = "GET servers/detail";
    assert_eq!(
        names,
        ["POST /identity/v2.0/tokens", page, page, page, page],
        "two pages for each call"
    );
}

fn mimic_config(mimic: &Mimic, user: &str) -> String {
    let url = mimic.cloud.url();
    format!("[Global]\nauth-url = {url}/identity/v2.0\nusername = {user}\nregion = {REGION}\n")
}

fn mimic_grants(mimic: &Mimic, folder: &std::path::Path) -> cloudwit_host::grants::Grants {
    use cloudwit_host::destination::Scheme;
    use cloudwit_host::grants::{Grants, HttpGrant, SecretGrant, SecretUse};

    let port = mimic.cloud.url().rsplit_once(':').unwrap().1;
    let file = folder.join("api-key");
    std::fs::write(&file, "key").unwrap();
    Grants {
        http: vec![HttpGrant {
            scheme: Scheme::Http,
            host: "127.0.0.1".into(),
            port: Some(port.parse().unwrap()),
            allow_loopback: true,
            ..HttpGrant::default()
        }],
        secrets: vec![SecretGrant {
            name: "api-key".into(),
            file,
            hosts: vec![format!("127.0.0.1:{port}")],
            uses: vec![SecretUse::Placeholder],
        }],
        ..Grants::default()
    }
}
