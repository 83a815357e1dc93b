//! A service account for each controller, on an API server with RBAC.

use cloudwit_test_support::scenes::rig::ingress;
use cloudwit_test_support::{ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::DeleteParams;

use crate::audit::writes;
use crate::replicas::{QUICK, SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn each_controller_uses_its_own_account_and_rights() {
    let stage = Stage::new().await;
    let flags: Vec<&str> = QUICK.into_iter().chain(["--use-service-account-credentials"]).collect();
    let (process, _to_cloud, _) = stage.start_directly(&flags).await;
    stage.work_is_done().await;
    ServiceBuilder::new("web").create(&stage.client).await.unwrap();
    eventually(SOON, "the Service has its address", || async {
        let service = stage.services().get("web").await.map_err(|error| error.to_string())?;
        if ingress(&service).is_empty() {
            Err(process.log_end())
        } else {
            Ok(())
        }
    })
    .await;
    // With the account go its tokens, as soon as the API server's cache has forgotten them; the account is made anew.
    let accounts: Api<ServiceAccount> = Api::namespaced(stage.client.clone(), "kube-system");
    let before = accounts.get("node-controller").await.unwrap().metadata.uid;
    accounts
        .delete("node-controller", &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, "the account is there again", || async {
        stage.join_node().await;
        let account = accounts
            .get("node-controller")
            .await
            .map_err(|error| error.to_string())?;
        if account.metadata.uid == before {
            Err("it is the old one".to_owned())
        } else {
            Ok(())
        }
    })
    .await;
    stage.work_is_done().await;

    let writes = writes(&stage.server.audit_log());
    let users = |resource: &str| {
        let of = writes.iter().filter(|write| write.resource == resource);
        let mut users: Vec<&str> = of.map(|write| write.user.as_str()).collect();
        users.sort_unstable();
        users.dedup();
        users
    };
    let node_controller = ["system:serviceaccount:kube-system:node-controller"];
    assert_eq!(users("nodes/status"), node_controller);
    assert_eq!(users("nodes"), node_controller);
    assert_eq!(
        users("services/status"),
        ["system:serviceaccount:kube-system:service-controller"]
    );
}
