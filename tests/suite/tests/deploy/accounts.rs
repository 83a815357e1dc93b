//! The rules are enough, and each is used: what the audit log says was asked for is what is granted, no more and no less.

use std::collections::BTreeSet;

use cloudwit_test_support::eventually;
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::Api;

use crate::cluster::{Cluster, SOON, USER};
use crate::deeds::{Deed, follows, serves};
use crate::rights::{Request, Right, Since, granted};

/// All that the installed roles grant.
pub async fn of_installed_roles(cluster: &Cluster) -> BTreeSet<Right> {
    let everywhere = Api::<ClusterRole>::all(cluster.client.clone())
        .get("cloudwit")
        .await
        .unwrap();
    let here = Api::<Role>::namespaced(cluster.client.clone(), "kube-system")
        .get("cloudwit")
        .await
        .unwrap();
    let mut rights = granted(&everywhere.rules.unwrap(), false);
    rights.extend(granted(&here.rules.unwrap(), true));
    rights
}

/// Has everything done, and gives what the process asked of the API server for it.
async fn a_days_work(cluster: &Cluster) -> Vec<Request> {
    let log = cluster.server.audit_log();
    let since = Since::now(&log);
    let mut asked = Vec::new();
    for deed in Deed::ALL.into_iter().filter(|deed| !deed.is_about_a_running_process()) {
        asked.push((deed, deed.ask(cluster).await));
    }
    let running = cluster.start().await;
    eventually(SOON, "it serves", || serves(&running)).await;
    for deed in Deed::ALL.into_iter().filter(|deed| deed.is_about_a_running_process()) {
        asked.push((deed, deed.ask(cluster).await));
    }
    for (deed, asked) in &asked {
        eventually(SOON, &format!("{deed:?}"), || asked.done(cluster, &running)).await;
    }
    let waiting = cluster.start().await;
    eventually(SOON, "another follows it", || async { follows(&waiting) }).await;
    drop((running, waiting));
    let older = cluster.start_on_older_api_server().await;
    let asked = Deed::InitialisesNode.ask(cluster).await;
    eventually(SOON, "a Node on an older API server", || asked.done(cluster, &older)).await;
    since.requests(USER)
}

fn compare(granted: &BTreeSet<Right>, requests: &[Request]) {
    let denied: Vec<&Request> = requests.iter().filter(|request| !request.allowed).collect();
    assert!(denied.is_empty(), "not granted: {denied:#?}");
    let idle = granted
        .iter()
        .filter(|right| !requests.iter().any(|request| request.needs(right)));
    let idle: Vec<String> = idle.map(Right::to_string).collect();
    assert!(idle.is_empty(), "granted, but nothing asks for it: {idle:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_account_has_the_used_rights_and_no_others() {
    let cluster = Cluster::new(&[]).await;
    let requests = a_days_work(&cluster).await;
    compare(&of_installed_roles(&cluster).await, &requests);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_controller_accounts_process_cannot_write_itself() {
    let cluster = Cluster::new(&["--controller-accounts"]).await;
    let requests = a_days_work(&cluster).await;
    let granted = of_installed_roles(&cluster).await;
    let writes = |right: &&Right| !["get", "list", "watch"].contains(&right.verb.as_str());
    let written: BTreeSet<&str> = granted
        .iter()
        .filter(writes)
        .map(|right| right.resource.as_str())
        .collect();
    let wanted = [
        "events",
        "leases",
        "serviceaccounts",
        "serviceaccounts/token",
        "subjectaccessreviews",
        "tokenreviews",
    ];
    assert_eq!(written, wanted.into());
    compare(&granted, &requests);
}
