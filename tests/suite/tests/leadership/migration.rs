//! Controllers that move from another manager run only while this one holds the Lease of the migration.

use cloudwit_test_support::scenes::rig::{ingress, is_kept};
use cloudwit_test_support::{ServiceBuilder, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::replicas::{QUICK, SOON, Stage, ended};

const LEASE: &str = "cloud-provider-extraction-migration";

#[tokio::test(flavor = "multi_thread")]
async fn migrated_controllers_wait_for_the_other_manager_alone() {
    let stage = Stage::new().await;
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), "kube-system");
    let held: Lease = serde_json::from_value(json!({
        "metadata": { "name": LEASE },
        "spec": { "holderIdentity": "kube-controller-manager", "leaseDurationSeconds": 3600 },
    }))
    .unwrap();
    leases.create(&PostParams::default(), &held).await.unwrap();
    ServiceBuilder::new("web").create(&stage.client).await.unwrap();
    let flags: Vec<&str> = QUICK.into_iter().chain(["--enable-leader-migration"]).collect();
    let (mut process, _to_cloud, _) = stage.start_directly(&flags).await;
    stage.work_is_done().await;
    assert!(
        !is_kept(&stage.services().get("web").await.unwrap()),
        "the other manager still has it"
    );
    assert!(stage.cloud.load_balancers().is_empty());

    let holder = |name: &str| Patch::Merge(json!({ "spec": { "holderIdentity": name } }));
    leases.patch(LEASE, &PatchParams::default(), &holder("")).await.unwrap();
    eventually(SOON, "the Service has its address", || async {
        let service = stage.services().get("web").await.map_err(|error| error.to_string())?;
        if ingress(&service).is_empty() {
            Err("none".to_owned())
        } else {
            Ok(())
        }
    })
    .await;

    leases
        .patch(LEASE, &PatchParams::default(), &holder("kube-controller-manager"))
        .await
        .unwrap();
    assert_eq!(
        ended(&mut process).await.code(),
        Some(1),
        "a process that loses one of its Leases ends"
    );
}
