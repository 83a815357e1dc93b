//! Each rule is needed: with any one of them taken away something stays undone that an operator notices, and it is done when the rule is back.

use std::collections::BTreeSet;
use std::time::Instant;

use cloudwit_test_support::{eventually, within};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::accounts::of_installed_roles;
use crate::cluster::{Cluster, Running, SOON, USER};
use crate::deeds::{Asked, Deed, clean, make_a_lease, may, serves};
use crate::rights::{Right, Since, rules};

/// How often the process has to have tried in vain, so that nothing can be done any more by what it asked for before. A Node whose deletion
/// fails is left alone for a minute.
fn attempts(deed: Deed) -> usize {
    if deed == Deed::DeletesNode { 1 } else { 2 }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_removed_right_blocks_work_until_restored() {
    let cluster = Cluster::new(&[]).await;
    let all = of_installed_roles(&cluster).await;
    assert!(all.len() > 15, "{all:?}");
    for right in &all {
        without(&cluster, &all, right).await;
        clean(&cluster).await;
    }
}

async fn without(cluster: &Cluster, all: &BTreeSet<Right>, right: &Right) {
    let deed = Deed::that_needs(right);
    println!("without {right}: {deed:?}");
    let log = cluster.server.audit_log();
    let since = Since::now(&log);
    if right.resource == "leases" && right.verb == "update" {
        // As a process leaves it that has ended in good order.
        make_a_lease(cluster, "", 1).await;
    }
    grant(cluster, all.iter().filter(|one| *one != right)).await;
    eventually(SOON, "the right is gone", || async { !may(cluster, right).await }).await;

    let before = match deed.is_about_a_running_process() {
        true => None,
        false => Some(deed.ask(cluster).await),
    };
    let lists = right.verb == "list" && !right.in_role;
    let mut running = match lists {
        true => cluster.start_on_older_api_server().await,
        false => cluster.start().await,
    };
    let asked = match before {
        Some(asked) => asked,
        None => {
            // Without the right to read the authorities it does not even start.
            let started = within(SOON, || async {
                serves(&running).await.is_ok() || tried(&since, right) > 0
            });
            started.await.unwrap();
            deed.ask(cluster).await
        }
    };
    stays_undone(cluster, &since, right, &asked, &mut running).await;

    grant(cluster, all).await;
    eventually(SOON, "the right is back", || may(cluster, right)).await;
    if deed == Deed::DeletesNode || running.process.ended().unwrap().is_some() {
        drop(running);
        running = cluster.start().await;
    }
    let what = format!("{deed:?}, with {right} again");
    eventually(SOON, &what, || asked.done(cluster, &running)).await;
}

/// Waits until it has tried in vain, and sees that nothing is done all the while.
async fn stays_undone(cluster: &Cluster, since: &Since<'_>, right: &Right, asked: &Asked, running: &mut Running) {
    let log = running.process.log().to_owned();
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        let done = asked.done(cluster, running).await;
        assert!(done.is_err(), "done without the right to {right}");
        let tried = tried(since, right);
        if tried >= attempts(Deed::that_needs(right)) || (tried > 0 && running.process.ended().unwrap().is_some()) {
            return;
        }
    }
    let log = std::fs::read_to_string(log).unwrap();
    panic!("nothing asks for {right}; the log:\n{log}");
}

/// How often the right was asked for and refused.
fn tried(since: &Since<'_>, right: &Right) -> usize {
    let requests = since.requests(USER);
    requests
        .iter()
        .filter(|request| !request.allowed && request.needs(right))
        .count()
}

/// Lets the roles grant exactly these.
async fn grant<'a>(cluster: &Cluster, rights: impl IntoIterator<Item = &'a Right>) {
    let (here, everywhere): (Vec<&Right>, Vec<&Right>) = rights.into_iter().partition(|right| right.in_role);
    let (of, client) = (PatchParams::default(), || cluster.client.clone());
    let patch = |rights: Vec<&Right>| Patch::Merge(json!({ "rules": rules(rights) }));
    Api::<ClusterRole>::all(client())
        .patch("cloudwit", &of, &patch(everywhere))
        .await
        .unwrap();
    Api::<Role>::namespaced(client(), "kube-system")
        .patch("cloudwit", &of, &patch(here))
        .await
        .unwrap();
}
