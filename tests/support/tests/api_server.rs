//! The API server of the tests does what its documentation says.

use std::time::Duration;

use anyhow::Result;
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::{Api, Client};

#[tokio::test]
async fn a_node_keeps_what_kubelet_registers() -> Result<()> {
    let server = ApiServer::shared().await;
    let client = server.client();
    NodeBuilder::new("kept")
        .node_ip("192.0.2.7")
        .system_uuid("u-7")
        .pod_cidr("10.244.7.0/24")
        .create(&client)
        .await?;
    let node: Node = Api::all(client).get("kept").await?;
    assert!(is_uninitialised(&node));
    let status = node.status.unwrap_or_default();
    assert_eq!(status.node_info.map(|info| info.system_uuid), Some("u-7".into()));
    let kinds: Vec<String> = status
        .addresses
        .unwrap_or_default()
        .into_iter()
        .map(|address| address.type_)
        .collect();
    assert_eq!(kinds, ["InternalIP", "Hostname"]);
    Ok(())
}

#[tokio::test]
async fn a_service_gets_a_node_port_from_the_real_api_server() -> Result<()> {
    let client = ApiServer::shared().await.client();
    let service: Service = ServiceBuilder::new("web").create(&client).await?;
    let ports = service.spec.unwrap_or_default().ports.unwrap_or_default();
    assert!(ports[0].node_port.is_some_and(|port| port >= 30000), "{ports:?}");
    Ok(())
}

#[tokio::test]
async fn rights_are_checked() -> Result<()> {
    let mut config = ApiServer::shared().await.config();
    config.auth_info.impersonate = Some("nobody".into());
    let refused = Api::<Node>::all(Client::try_from(config)?)
        .get("kept")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("forbidden"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_restart_keeps_data_address_and_kubeconfig() -> Result<()> {
    let server = ApiServer::start().await?;
    let client = server.client();
    NodeBuilder::new("survivor").create(&client).await?;
    server.stop().await?;
    let nodes = Api::<Node>::all(client);
    assert!(
        nodes.get("survivor").await.is_err(),
        "the API server answers although it is stopped"
    );
    server.restart().await?;
    eventually(Duration::from_secs(60), "the old client works again", || {
        nodes.get("survivor")
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn dropping_it_ends_the_process_and_removes_its_data() -> Result<()> {
    let server = ApiServer::start().await?;
    let (client, log) = (server.client(), server.log().to_owned());
    assert!(log.is_file());
    drop(server);
    assert!(!log.exists(), "{} is still there", log.display());
    assert!(
        Api::<Node>::all(client).get("any").await.is_err(),
        "the API server still answers"
    );
    Ok(())
}
