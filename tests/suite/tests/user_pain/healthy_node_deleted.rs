//! Theme 1: a healthy Node is deleted, or one whose machine is gone is not. The brake is open and the grace is nought in most of these
//! tests, and each ends with a Node that does go: so it is the answer's meaning that keeps the others.

use std::time::Duration;

use cloudwit_controllers::NodeDeletion;
use cloudwit_sim_cloud::{Fault, FaultKind, MachineState, NewMachine, Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::{ApiServer, NodeBuilder};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::harness::{alone, until};
use crate::sim_provider::load_sim;
use crate::stack::*;

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Events that say more than that nothing is known: the machine is gone, or the Node is deleted.
async fn verdicts(stack: &Stack, name: &str) -> Vec<String> {
    let mut events = stack.events(name).await;
    events.retain(|event| !event.starts_with("MachineLookupFailed: "));
    events
}

fn lifecycle() -> cloudwit_controllers::Options {
    quick([NODES[1]])
}

#[tokio::test(flavor = "multi_thread")]
async fn oci_57_unreachable_cloud_never_means_absence() {
    let stack = Stack::start().await;
    for name in ["oci-1", "oci-2", "oci-3"] {
        stack.member(name, None).await;
    }
    stack.cloud.delete_machines(["oci-3"]);
    stack.cloud.set_faults([Fault::new(FaultKind::Cut)]);
    let running = stack.run(lifecycle());
    // Every way in which an API can be away. 404 is the cruel one: a gateway that does not know the way to the API.
    let away = [
        (FaultKind::Cut, "unavailable"),
        (FaultKind::Garbage, "other"),
        (status(500), "unavailable"),
        (status(404), "not_found"),
        (status(403), "denied"),
    ];
    for (fault, result) in away {
        stack.cloud.set_faults([Fault::new(fault)]);
        looked_again(&running, result, 1.0).await;
    }
    for name in ["oci-1", "oci-2", "oci-3"] {
        assert!(!stack.is_gone(name).await, "{name}");
        assert_eq!(verdicts(&stack, name).await, Vec::<String>::new(), "{name}");
    }
    stack.cloud.set_faults([]);
    until("the one that is really gone goes", || stack.is_gone("oci-3")).await;
    assert!(!stack.is_gone("oci-1").await && !stack.is_gone("oci-2").await);
}

fn status(status: u16) -> FaultKind {
    FaultKind::Status {
        status,
        retry_after: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vsphere_479_wrong_password_never_means_absence() {
    let stack = Stack::with(SimCloudOptions::default(), "a wrong one", |_| {}).await;
    stack.member("vsphere-there", None).await;
    stack.member("vsphere-gone", None).await;
    stack.cloud.delete_machines(["vsphere-gone"]);
    let running = stack.run(lifecycle());
    until("five look-ups over more than the confirmation", || async {
        lookups(&running, LIFECYCLE, "denied") >= 5.0
    })
    .await;
    running.stop().await;
    for name in ["vsphere-there", "vsphere-gone"] {
        assert!(!stack.is_gone(name).await, "{name}");
        assert_eq!(verdicts(&stack, name).await, Vec::<String>::new(), "{name}");
    }
    let right = load_sim(&stack.cloud, TOKEN, |_| {}).await;
    let _running = stack.alone.run_all(right.provider.clone(), lifecycle());
    until("with the right one, what is gone goes", || {
        stack.is_gone("vsphere-gone")
    })
    .await;
    assert!(!stack.is_gone("vsphere-there").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn vsphere_501_replaced_node_is_looked_up_by_its_own_id() {
    let stack = Stack::start().await;
    stack.member("replaced", None).await;
    stack.member("witness", None).await;
    stack.cloud.delete_machines(["replaced", "witness"]);
    let mut options = quick(NODES);
    // Two absences of the old machine are known, and a third would do, when the new machine takes the name over.
    options.lifecycle.confirm_after = Duration::from_secs(2);
    let running = stack.run(options);
    stack.told("replaced", "MachineNotFound").await;
    // Where this takes longer than the confirmation it is gone already.
    match stack.alone.nodes().delete("replaced", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        deleted => drop(deleted.unwrap()),
    }
    let new = stack.joins("replaced").await;
    until("the new Node is initialised", || stack.is_initialised("replaced")).await;
    stack.set_ready("replaced", None).await;
    until("the witness of the same age goes", || stack.is_gone("witness")).await;
    looked_again(&running, "success", 10.0).await;
    let node = stack.node("replaced").await.unwrap();
    assert_eq!(node.uid(), new.uid());
    assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("sim://vm-3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_2062_long_reboot_never_removes_a_node() {
    let stack = Stack::start().await;
    let without = NodeBuilder::new("reboot-without-id").initialised().ready(None);
    without.create(&stack.alone.client).await.unwrap();
    let id = stack.member("reboot-with-id", None).await.spec.unwrap().provider_id;
    stack.member("reboot-control", None).await;
    stack.cloud.delete_machines(["reboot-control"]);
    stack.cloud.set_state(["reboot-with-id"], MachineState::Stopped);
    let running = stack.run(lifecycle());
    until("the Node whose machine is gone goes", || {
        stack.is_gone("reboot-control")
    })
    .await;
    looked_again(&running, "success", 10.0).await;
    assert!(
        !stack.is_gone("reboot-without-id").await,
        "a search by name proves nothing"
    );
    let node = stack.node("reboot-with-id").await.unwrap().spec.unwrap();
    assert_eq!(node.provider_id, id);
    assert!(node.taints.unwrap().iter().any(|taint| taint.key == SHUTDOWN));
    stack.cloud.set_state(["reboot-with-id"], MachineState::Running);
    stack.set_ready("reboot-with-id", Some(true)).await;
    until("it is as before", || async {
        let taints = stack.node("reboot-with-id").await.unwrap().spec.unwrap().taints;
        taints.iter().flatten().all(|taint| taint.key != SHUTDOWN)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_58334_fresh_unlisted_node_is_left_alone() {
    let stack = Stack::start().await;
    let fresh = NodeBuilder::new("fresh-58334").initialised().provider_id("sim://vm-77");
    fresh.ready(None).create(&stack.alone.client).await.unwrap();
    let mut options = lifecycle();
    options.lifecycle.registration_grace = Duration::from_secs(300);
    let running = stack.run(options);
    looked_again(&running, "success", 20.0).await;
    assert!(!stack.is_gone("fresh-58334").await);
    assert_eq!(stack.events("fresh-58334").await, Vec::<String>::new());
    running.stop().await;
    let _running = stack.run(lifecycle());
    until("without the grace it would go", || stack.is_gone("fresh-58334")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_63226_node_is_not_judged_before_initialisation() {
    let stack = Stack::start().await;
    stack.member("judged", None).await;
    let late = NodeBuilder::new("late-63226").ready(Some(false));
    late.create(&stack.alone.client).await.unwrap();
    stack.cloud.delete_machines(["judged"]);
    let running = stack.run(lifecycle());
    until("the other one is judged", || stack.is_gone("judged")).await;
    // The last call may be under way still.
    until("each call is about the initialised Node alone", || async {
        let asked = running.metric("cloudwit_node_lookup_nodes_total{purpose=\"lifecycle\"}");
        asked == lookups(&running, LIFECYCLE, "success")
    })
    .await;
    running.stop().await;
    assert!(!stack.is_gone("late-63226").await);
    stack.machine("late-63226");
    let _running = stack.run(quick(NODES));
    until("it is initialised", || stack.is_initialised("late-63226")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cloudstack_37_joining_nodes_stay_and_deletion_has_a_switch() {
    let stack = Stack::start().await;
    let mut options = quick(NODES);
    options.lifecycle.registration_grace = Duration::from_secs(300);
    let running = stack.run(options);
    // Its machine is named otherwise in the cloud: nothing is found, and nothing follows but words.
    let misnamed = NodeBuilder::new("cs-misnamed.example.com").ready(Some(false));
    misnamed.create(&stack.alone.client).await.unwrap();
    let joined = stack.joins("cs-joins").await;
    until("it is initialised", || stack.is_initialised("cs-joins")).await;
    // The list that is asked by id lags behind for a while.
    stack.cloud.delete_machines(["cs-joins"]);
    looked_again(&running, "success", 20.0).await;
    stack.cloud.add_machines([NewMachine {
        id: Some("vm-1".into()),
        ..NewMachine::named("cs-joins")
    }]);
    stack.set_ready("cs-joins", Some(true)).await;
    let told = stack.told("cs-misnamed.example.com", "InitializationFailed").await;
    assert!(told.contains("no machine that matches this Node's name"), "{told}");
    assert_eq!(stack.node("cs-joins").await.unwrap().uid(), joined.uid());
    running.stop().await;

    // What was done in production by taking a right away is a setting.
    stack.member("cs-kept", None).await;
    stack.cloud.delete_machines(["cs-kept"]);
    let mut options = lifecycle();
    options.lifecycle.node_deletion = NodeDeletion::Off;
    let running = stack.run(options);
    let told = stack.told("cs-kept", "MachineNotFound").await;
    assert!(told.contains("deletion is switched off"), "{told}");
    looked_again(&running, "success", 20.0).await;
    assert!(!stack.is_gone("cs-kept").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn outscale_83_missing_machine_is_cleaned_up_naming_blockers() {
    let stack = Stack::start().await;
    stack.member("osc-gone", None).await;
    // About this one the provider can only answer with a failure. Others must not wait for it, and it must not wait in silence.
    stack.machine("osc-twice");
    stack.machine("osc-twice");
    let twice = NodeBuilder::new("osc-twice").initialised().ready(None);
    twice.create(&stack.alone.client).await.unwrap();
    stack.cloud.delete_machines(["osc-gone"]);
    let _running = stack.run(lifecycle());
    until("the gone one is cleaned up", || stack.is_gone("osc-gone")).await;
    let told = stack.told("osc-gone", "DeletedNode").await;
    assert!(told.contains("sim://vm-1"), "the evidence: {told}");
    let told = stack.told("osc-twice", "MachineLookupFailed").await;
    assert!(
        told.contains("so the Node is kept: invalid: several machines fit osc-twice: vm-2, vm-3; rename all but one"),
        "{told}"
    );
    assert!(!stack.is_gone("osc-twice").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_3225_missing_delete_right_names_the_rule() {
    let mut alone = alone().await;
    let admin = alone.client.clone();
    let rules = |verbs: &[&str]| {
        json!([
            { "apiGroups": [""], "resources": ["nodes"], "verbs": verbs },
            { "apiGroups": [""], "resources": ["nodes/status", "services", "services/status", "events"],
              "verbs": ["get", "list", "watch", "create", "patch"] },
        ])
    };
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": { "name": "openstack-3225" }, "rules": rules(&["get", "list", "watch", "patch"]),
    }))
    .unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "openstack-3225" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "openstack-3225" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "openstack-3225" }],
    }))
    .unwrap();
    let (roles, params) = (Api::<ClusterRole>::all(admin.clone()), PostParams::default());
    roles.create(&params, &role).await.unwrap();
    let bindings = Api::<ClusterRoleBinding>::all(admin.clone());
    bindings.create(&params, &binding).await.unwrap();
    let mut config = ApiServer::shared().await.config();
    config.auth_info.impersonate = Some("openstack-3225".into());

    let cloud = SimCloud::start(SimCloudOptions::default()).await.unwrap();
    let sim = load_sim(&cloud, TOKEN, |_| {}).await;
    alone.client = Client::try_from(config).unwrap();
    let running = alone.run_all(sim.provider.clone(), lifecycle());
    alone.client = admin;
    let stack = Stack { alone, cloud, sim };
    stack.member("without-right", None).await;
    stack.member("asked-about", None).await;
    stack.cloud.delete_machines(["without-right"]);
    let told = stack.told("without-right", "DeletingNodeFailed").await;
    let (refusal, rule) = told
        .split_once("add this rule to the ClusterRole of this controller: - ")
        .unwrap();
    assert!(refusal.contains("cannot delete resource \"nodes\""), "{told}");
    looked_again(&running, "success", 20.0).await;
    let refused = "cloudwit_api_writes_total{resource=\"nodes\",verb=\"delete\",result=\"refused\"}";
    assert_eq!(running.metric(refused), 1.0, "it is not tried in each period");
    running.stop().await;

    // What the Event says is what helps.
    let mut wider = roles.get("openstack-3225").await.unwrap();
    let granted: serde_json::Value = serde_saphyr::from_str(rule).unwrap();
    let granted = serde_json::from_value(granted).unwrap();
    wider.rules.get_or_insert_default().push(granted);
    roles
        .replace("openstack-3225", &PostParams::default(), &wider)
        .await
        .unwrap();
    let mut config = ApiServer::shared().await.config();
    config.auth_info.impersonate = Some("openstack-3225".into());
    let mut stack = stack;
    let admin = std::mem::replace(&mut stack.alone.client, Client::try_from(config).unwrap());
    let _running = stack.run(lifecycle());
    stack.alone.client = admin;
    until("with the rule it is deleted", || stack.is_gone("without-right")).await;
    assert!(stack.requests(&[Operation::ListInstances]) > 0);
}
