//! Rows of upstream's `controllers/service/controller_test.go` that are decisions, and those upstream does not have.

use std::sync::Arc;

use cloudwit_model::AnnotationChange;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Node, ServiceSpec, ServiceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::service_helpers::CLEANUP_FINALIZER;
use crate::service_record::Operation;

#[derive(Clone)]
struct Build(Service);

fn of_type(kind: &str) -> Build {
    let mut service = Service {
        spec: Some(ServiceSpec {
            type_: Some(kind.into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    service.metadata.uid = Some("u1".into());
    Build(service)
}

fn balancer() -> Build {
    of_type("LoadBalancer")
}

impl Build {
    fn finalizer(mut self) -> Self {
        self.0.metadata.finalizers = Some(vec!["other/keep".into(), CLEANUP_FINALIZER.into()]);
        self
    }

    fn dying(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        self
    }

    fn class(mut self) -> Self {
        self.0.spec.as_mut().unwrap().load_balancer_class = Some("example.com/other".into());
        self
    }

    fn uid(mut self, uid: &str) -> Self {
        self.0.metadata.uid = Some(uid.into());
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    fn port(mut self, port: i32) -> Self {
        let port = k8s_openapi::api::core::v1::ServicePort {
            port,
            ..Default::default()
        };
        self.0.spec.as_mut().unwrap().ports = Some(vec![port]);
        self
    }

    fn ingress(mut self, ip: &str) -> Self {
        let status = LoadBalancerStatus {
            ingress: Some(vec![point(ip)]),
        };
        self.0.status = Some(ServiceStatus {
            load_balancer: Some(status),
            conditions: None,
        });
        self
    }

    fn arc(&self) -> Arc<Service> {
        Arc::new(self.0.clone())
    }
}

fn point(ip: &str) -> LoadBalancerIngress {
    LoadBalancerIngress {
        ip: Some(ip.into()),
        ..LoadBalancerIngress::default()
    }
}

fn nodes(names: &[&str]) -> TargetSet {
    let nodes: Vec<Node> = names
        .iter()
        .map(|name| Node {
            metadata: kube::api::ObjectMeta {
                name: Some((*name).into()),
                ..Default::default()
            },
            ..Default::default()
        })
        .collect();
    TargetSet::of(&nodes)
}

/// The step for a Service that this process sees for the first time.
fn first(service: &Build) -> Step {
    next_step(&Record::new(service.arc()), Some(&service.0), &nodes(&["a"]))
}

/// A record after a successful ensure with node `a` and address 1.1.1.1, all written.
fn ensured(service: &Build) -> Record {
    let mut record = Record::new(service.arc());
    record.start(Operation::Ensure);
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], Vec::new());
    record.note_written();
    record
}

#[test]
fn a_service_seen_for_the_first_time_gets_the_right_first_step() {
    for (service, step, why) in [
        (of_type("ClusterIP"), Step::Nothing, "ClusterIP, nothing there"),
        (
            balancer(),
            Step::AddFinalizer,
            "the finalizer comes before the first call",
        ),
        (balancer().class(), Step::Nothing, "a class: somebody else's"),
        (
            of_type("ClusterIP").finalizer().ingress("8.8.8.8"),
            Step::Delete,
            "was a load balancer",
        ),
        (of_type("ExternalName").finalizer(), Step::Delete, "was a load balancer"),
        (balancer().finalizer().dying(), Step::Delete, "being deleted"),
        (balancer().finalizer(), Step::Ensure, "has the finalizer already"),
        (balancer().dying(), Step::Nothing, "never a finalizer on a dying object"),
        (
            balancer().class().finalizer().dying(),
            Step::Nothing,
            "the finalizer is the other controller's",
        ),
    ] {
        assert_eq!(first(&service), step, "{why}");
    }
}

#[test]
fn cleanup_is_needed_with_our_finalizer_and_without_a_reason_for_it() {
    for (service, expected, why) in [
        (of_type("NodePort"), false, "no finalizer"),
        (of_type("NodePort").finalizer(), true, "finalizer on a NodePort"),
        (balancer().finalizer(), false, "finalizer on a LoadBalancer"),
        (balancer().finalizer().dying(), true, "finalizer and deletion timestamp"),
        (
            balancer().class().finalizer().dying(),
            false,
            "of another class: upstream takes this one over",
        ),
    ] {
        assert_eq!(needs_cleanup(&service.0), expected, "{why}");
    }
}

#[test]
fn only_what_concerns_the_load_balancer_is_worth_a_look() {
    let alive = balancer().finalizer();
    for (old, new, expected, why) in [
        (None, balancer(), true, "a new LoadBalancer"),
        (None, of_type("ClusterIP"), false, "a new ClusterIP"),
        (
            None,
            of_type("ClusterIP").finalizer(),
            true,
            "a leftover of a type change while we were away",
        ),
        (None, balancer().class(), false, "somebody else's"),
        (Some(alive.clone()), alive.clone(), false, "nothing"),
        (
            Some(alive.clone()),
            alive.clone().ingress("1.1.1.1"),
            false,
            "our own status patch",
        ),
        (Some(balancer()), alive.clone(), false, "our own finalizer"),
        (
            Some(alive.clone()),
            balancer(),
            true,
            "the finalizer was taken off a living Service",
        ),
        (Some(alive.clone()), alive.clone().port(80), true, "a port"),
        (Some(alive.clone()), alive.clone().dying(), true, "deletion begins"),
        (
            Some(balancer()),
            balancer().dying(),
            true,
            "deletion begins without the finalizer",
        ),
        (
            Some(alive.clone().dying()),
            alive.clone().dying(),
            false,
            "deletion goes on: its retries have their own pace",
        ),
        (
            Some(alive.clone()),
            of_type("ClusterIP").finalizer(),
            true,
            "type change",
        ),
        (Some(of_type("ClusterIP")), balancer(), true, "type change"),
        (
            Some(alive.clone()),
            alive.clone().uid("u2"),
            true,
            "created anew under the same name",
        ),
        (
            Some(alive.clone()),
            of_type("ClusterIP").uid("u2"),
            true,
            "created anew as another type",
        ),
    ] {
        assert_eq!(worth_a_look(old.as_ref().map(|old| &old.0), &new.0), expected, "{why}");
    }
}

#[test]
fn a_service_that_was_ensured_needs_nothing_until_something_changes() {
    let service = balancer().finalizer();
    let record = ensured(&service);
    let step = |service: &Build, targets: &[&str]| next_step(&record, Some(&service.0), &nodes(targets));
    assert_eq!(step(&service, &["a"]), Step::Nothing);
    assert_eq!(
        step(&service.clone().ingress("9.9.9.9"), &["a"]),
        Step::Nothing,
        "another writer's status is not fought over"
    );
    assert_eq!(step(&service, &["a", "b"]), Step::UpdateTargets);
    assert_eq!(step(&service, &[]), Step::UpdateTargets, "no node is left");
    assert_eq!(step(&service.clone().port(80), &["a"]), Step::Ensure);
    assert_eq!(
        step(&service.clone().port(80), &["b"]),
        Step::Ensure,
        "ensure carries the nodes as well"
    );
    assert_eq!(
        step(&balancer(), &["a"]),
        Step::AddFinalizer,
        "somebody took the finalizer off"
    );
    assert_eq!(step(&service.clone().dying(), &["a"]), Step::Delete);
    assert_eq!(step(&of_type("ClusterIP").finalizer(), &["a"]), Step::Delete);
    assert_eq!(
        step(&balancer().dying(), &["a"]),
        Step::Delete,
        "our load balancer, though the finalizer was taken off"
    );
    assert_eq!(
        step(&of_type("ClusterIP"), &["a"]),
        Step::Delete,
        "the same after a type change"
    );
    assert_eq!(
        step(&balancer().class(), &["a"]),
        Step::Delete,
        "given to another controller by type change and back"
    );
}

#[test]
fn answers_of_the_provider_are_written_before_anything_else_is_asked() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc());
    record.start(Operation::Ensure);
    let change = AnnotationChange {
        key: "id".into(),
        value: Some("lb-1".into()),
    };
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], vec![change]);
    assert_eq!(next_step(&record, Some(&service.0), &nodes(&["b"])), Step::PatchStatus);
    let written = service.clone().ingress("1.1.1.1").annotation("id", "lb-1");
    assert_eq!(
        next_step(&record, Some(&written.0), &nodes(&["a"])),
        Step::Ensure,
        "an annotation not known to be ours is a change"
    );
    record.note_written();
    assert_eq!(
        next_step(&record, Some(&written.0), &nodes(&["a"])),
        Step::Nothing,
        "our own annotation is no change"
    );
    assert_eq!(
        next_step(
            &record,
            Some(&written.clone().annotation("user", "x").0),
            &nodes(&["a"])
        ),
        Step::Ensure,
        "an annotation that a user set at the same time is"
    );
}

#[test]
fn an_answer_that_changes_nothing_is_not_written() {
    let service = balancer().finalizer().ingress("1.1.1.1");
    let mut record = Record::new(service.arc());
    record.start(Operation::Ensure);
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], Vec::new());
    assert_eq!(next_step(&record, Some(&service.0), &nodes(&["a"])), Step::Nothing);
}

#[test]
fn deleting_goes_from_the_cloud_to_the_finalizer_to_nothing() {
    for service in [
        balancer().finalizer().dying().ingress("1.1.1.1"),
        of_type("ClusterIP").finalizer().ingress("1.1.1.1"),
    ] {
        let mut record = Record::new(service.arc());
        record.start(Operation::Delete);
        record.note_deleted(Vec::new());
        assert_eq!(next_step(&record, Some(&service.0), &nodes(&[])), Step::RemoveFinalizer);
        let mut gone = service.clone();
        gone.0.metadata.finalizers = None;
        gone.0.status = None;
        record.note_written();
        assert_eq!(next_step(&record, Some(&gone.0), &nodes(&[])), Step::Nothing);
        assert_eq!(next_step(&record, None, &nodes(&[])), Step::Nothing);
    }
}

#[test]
fn a_type_change_there_and_back_builds_a_new_load_balancer() {
    let service = balancer().finalizer();
    let mut record = ensured(&service);
    record.see(of_type("ClusterIP").finalizer().arc());
    record.start(Operation::Delete);
    record.note_deleted(Vec::new());
    record.see(service.arc());
    assert_eq!(next_step(&record, Some(&service.0), &nodes(&["a"])), Step::Ensure);
    record.start(Operation::Ensure);
    assert!(!record.is_deleted() && record.is_touched());
}

#[test]
fn a_service_that_is_gone_without_cleanup_is_deleted_from_memory() {
    let service = balancer().finalizer();
    assert_eq!(
        next_step(&Record::new(service.arc()), None, &nodes(&[])),
        Step::Nothing,
        "never touched"
    );
    let mut failed = Record::new(service.arc());
    failed.start(Operation::Ensure);
    assert_eq!(
        next_step(&failed, None, &nodes(&[])),
        Step::Delete,
        "a failed ensure may have left something"
    );
    let mut record = ensured(&service);
    assert_eq!(next_step(&record, None, &nodes(&[])), Step::Delete);
    assert_eq!(
        next_step(&record, Some(&service.clone().uid("u2").0), &nodes(&["a"])),
        Step::Delete,
        "the old one first"
    );
    record.note_deleted(Vec::new());
    assert_eq!(next_step(&record, None, &nodes(&[])), Step::Nothing);
}

#[test]
fn a_finalizer_of_another_class_is_left_alone_also_after_a_type_change() {
    let mut record = Record::new(balancer().class().finalizer().arc());
    let changed = of_type("ClusterIP").finalizer();
    record.see(changed.arc());
    assert_eq!(next_step(&record, Some(&changed.0), &nodes(&["a"])), Step::Nothing);
    let ours = balancer().finalizer();
    record.see(ours.arc());
    assert_eq!(
        next_step(&record, Some(&ours.0), &nodes(&["a"])),
        Step::Ensure,
        "without a class it is ours"
    );
    record.see(changed.arc());
    assert_eq!(
        next_step(&record, Some(&changed.0), &nodes(&["a"])),
        Step::Delete,
        "and stays ours"
    );
}

#[test]
fn implemented_elsewhere_is_asked_again_only_when_the_service_changes() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc());
    record.start(Operation::Ensure);
    record.note_elsewhere(nodes(&["a"]));
    assert_eq!(next_step(&record, Some(&service.0), &nodes(&["a", "b"])), Step::Nothing);
    assert_eq!(
        next_step(&record, Some(&service.clone().port(80).0), &nodes(&["a"])),
        Step::Ensure
    );
}

#[test]
fn a_token_is_kept_for_the_same_operation_and_dropped_when_the_service_changes() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc());
    assert_eq!(record.start(Operation::Ensure), None);
    assert!(
        record.wait(Operation::Ensure, "t1".into(), "building".into(), nodes(&["a"])),
        "a new reason to wait"
    );
    assert_eq!(record.waits_for(), Some("building"));
    assert_eq!(record.start(Operation::Ensure).as_deref(), Some("t1"));
    assert!(
        !record.wait(Operation::Ensure, "t2".into(), "building".into(), nodes(&["a"])),
        "the same reason"
    );
    record.see(service.clone().ingress("9.9.9.9").arc());
    assert_eq!(
        record.start(Operation::Ensure).as_deref(),
        Some("t2"),
        "a change without meaning keeps it"
    );
    record.see(service.clone().port(80).arc());
    assert_eq!(record.start(Operation::Ensure), None, "a change with meaning does not");

    record.wait(Operation::Ensure, "t3".into(), "building".into(), nodes(&["a"]));
    assert_eq!(record.start(Operation::Delete), None, "another operation");
    assert_eq!(record.waits_for(), None);
    record.wait(Operation::Delete, "t4".into(), "draining".into(), nodes(&[]));
    assert_eq!(record.start(Operation::Delete).as_deref(), Some("t4"));
}

#[test]
fn nodes_that_came_while_the_cloud_was_building_are_given_afterwards() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc());
    record.start(Operation::Ensure);
    record.wait(Operation::Ensure, "t".into(), "building".into(), nodes(&["a"]));
    assert_eq!(record.start(Operation::Ensure).as_deref(), Some("t"));
    record.note_ensured(nodes(&["a", "b"]), vec![point("1.1.1.1")], Vec::new());
    record.note_written();
    assert_eq!(
        next_step(&record, Some(&service.0), &nodes(&["a", "b"])),
        Step::UpdateTargets
    );
}

#[test]
fn an_update_of_nodes_that_finds_nothing_leads_to_a_new_ensure() {
    let service = balancer().finalizer();
    let mut record = ensured(&service);
    record.start(Operation::UpdateTargets);
    record.forget_ensured();
    assert_eq!(next_step(&record, Some(&service.0), &nodes(&["a", "b"])), Step::Ensure);
}

#[test]
fn annotations_are_removed_with_the_load_balancer() {
    let service = of_type("ClusterIP").finalizer().annotation("id", "lb-1");
    let mut record = Record::new(service.arc());
    record.start(Operation::Delete);
    record.note_deleted(vec![AnnotationChange {
        key: "id".into(),
        value: None,
    }]);
    assert_eq!(
        record.unwritten().annotations_for(&service.0),
        [("id".to_owned(), None)].into()
    );
    let mut without_finalizer = service.clone();
    without_finalizer.0.metadata.finalizers = None;
    assert_eq!(
        next_step(&record, Some(&without_finalizer.0), &nodes(&[])),
        Step::PatchStatus
    );
}
