//! Rows of upstream's `controllers/service/controller_test.go` that are decisions, and those upstream does not have.

use cloudwit_model::Failure;

use super::*;
use crate::service::state::Operation;
use crate::service::state::testing::{Build, balancer, ensured, in_pass, nodes, of_type};

/// The step for a Service that this process sees for the first time.
fn first(service: &Build) -> Step {
    next_step(
        &Record::new(service.arc(), &Classes::default()),
        Some(&service.0),
        &in_pass(&["a"]),
    )
}

#[test]
fn service_seen_for_the_first_time_gets_the_right_first_step() {
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
fn cleanup_needs_our_finalizer_and_no_reason_to_keep() {
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
        assert_eq!(needs_cleanup(&service.0, &Classes::default()), expected, "{why}");
    }
}

#[test]
fn only_what_concerns_the_load_balancer_is_worth_a_check() {
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
        assert_eq!(
            needs_sync(old.as_ref().map(|old| &old.0), &new.0, &Classes::default()),
            expected,
            "{why}"
        );
    }
}

#[test]
fn ensured_service_needs_nothing_until_a_change() {
    let service = balancer().finalizer();
    let record = ensured(&service);
    let step = |service: &Build, targets: &[&str]| next_step(&record, Some(&service.0), &in_pass(targets));
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

/// A failed call may have changed the load balancer, so that what the Service asked for before is not what there is.
#[test]
fn failed_call_is_repeated_also_when_the_wish_is_as_before() {
    let service = balancer().finalizer();
    let step = |record: &Record| next_step(record, Some(&service.0), &in_pass(&["a"]));
    let half_done = || Failure::Unavailable("the cloud failed in the middle".into()).into();
    let mut record = ensured(&service);
    record.start(Operation::UpdateTargets);
    record.fail(&half_done());
    assert_eq!(step(&record), Step::UpdateTargets);
    record.note_updated(nodes(&["a"]), Vec::new());
    assert_eq!(step(&record), Step::Nothing);
    record.start(Operation::Ensure);
    record.fail(&half_done());
    record.start(Operation::UpdateTargets);
    record.note_updated(nodes(&["a"]), Vec::new());
    assert_eq!(step(&record), Step::Ensure, "giving nodes does not make up for it");
    record.note_ensured(nodes(&["a"]), Vec::new(), Vec::new());
    record.note_written();
    assert_eq!(step(&record), Step::Nothing);
}

#[test]
fn deleting_goes_from_the_cloud_to_the_finalizer_to_nothing() {
    for service in [
        balancer().finalizer().dying().ingress("1.1.1.1"),
        of_type("ClusterIP").finalizer().ingress("1.1.1.1"),
    ] {
        let mut record = Record::new(service.arc(), &Classes::default());
        record.start(Operation::Delete);
        record.note_deleted(Vec::new());
        assert_eq!(
            next_step(&record, Some(&service.0), &in_pass(&[])),
            Step::RemoveFinalizer
        );
        let mut gone = service.clone();
        gone.0.metadata.finalizers = None;
        gone.0.status = None;
        record.note_written();
        assert_eq!(next_step(&record, Some(&gone.0), &in_pass(&[])), Step::Nothing);
        assert_eq!(next_step(&record, None, &in_pass(&[])), Step::Nothing);
    }
}

#[test]
fn a_type_change_there_and_back_builds_a_new_load_balancer() {
    let service = balancer().finalizer();
    let mut record = ensured(&service);
    record.observe(of_type("ClusterIP").finalizer().arc());
    record.start(Operation::Delete);
    record.note_deleted(Vec::new());
    record.observe(service.arc());
    assert_eq!(next_step(&record, Some(&service.0), &in_pass(&["a"])), Step::Ensure);
    record.start(Operation::Ensure);
    assert!(!record.is_deleted() && record.is_touched());
}

/// A failed delete may have taken parts of the load balancer away.
#[test]
fn half_deleted_load_balancer_is_ensured_when_wanted_again() {
    let service = balancer().finalizer();
    let mut record = ensured(&service);
    record.observe(of_type("ClusterIP").finalizer().arc());
    record.start(Operation::Delete);
    record.fail(&Failure::Unavailable("the cloud failed in the middle".into()).into());
    assert!(!record.is_settled() && record.is_touched());
    record.observe(service.arc());
    assert_eq!(next_step(&record, Some(&service.0), &in_pass(&["a"])), Step::Ensure);
    assert_eq!(next_step(&record, None, &in_pass(&["a"])), Step::Delete);
}

#[test]
fn service_gone_without_cleanup_is_deleted_from_memory() {
    let service = balancer().finalizer();
    assert_eq!(
        next_step(&Record::new(service.arc(), &Classes::default()), None, &in_pass(&[])),
        Step::Nothing,
        "never touched"
    );
    let mut failed = Record::new(service.arc(), &Classes::default());
    failed.start(Operation::Ensure);
    assert_eq!(
        next_step(&failed, None, &in_pass(&[])),
        Step::Delete,
        "a failed ensure may have left something"
    );
    let mut record = ensured(&service);
    assert_eq!(next_step(&record, None, &in_pass(&[])), Step::Delete);
    assert_eq!(
        next_step(&record, Some(&service.clone().uid("u2").0), &in_pass(&["a"])),
        Step::Delete,
        "the old one first"
    );
    record.note_deleted(Vec::new());
    assert_eq!(next_step(&record, None, &in_pass(&[])), Step::Nothing);
}

#[test]
fn foreign_class_finalizer_survives_type_change() {
    let mut record = Record::new(balancer().class().finalizer().arc(), &Classes::default());
    let changed = of_type("ClusterIP").finalizer();
    record.observe(changed.arc());
    assert_eq!(next_step(&record, Some(&changed.0), &in_pass(&["a"])), Step::Nothing);
    let ours = balancer().finalizer();
    record.observe(ours.arc());
    assert_eq!(
        next_step(&record, Some(&ours.0), &in_pass(&["a"])),
        Step::Ensure,
        "without a class it is ours"
    );
    record.observe(changed.arc());
    assert_eq!(
        next_step(&record, Some(&changed.0), &in_pass(&["a"])),
        Step::Delete,
        "and stays ours"
    );
}

#[test]
fn implemented_elsewhere_is_retried_on_service_change_only() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc(), &Classes::default());
    record.start(Operation::Ensure);
    record.note_elsewhere(nodes(&["a"]));
    assert_eq!(
        next_step(&record, Some(&service.0), &in_pass(&["a", "b"])),
        Step::Nothing
    );
    assert_eq!(
        next_step(&record, Some(&service.clone().port(80).0), &in_pass(&["a"])),
        Step::Ensure
    );
}
