use super::testing::{balancer, ensured, in_pass, nodes, of_type, point};
use cloudwit_model::AnnotationChange;

use super::*;
use crate::options::classes::Classes;
use crate::service::plan::{Step, next_step};

#[test]
fn token_is_kept_for_same_operation_and_dropped_on_change() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc(), &Classes::default());
    assert_eq!(record.start(Operation::Ensure), None);
    assert!(
        record.note_pending("t1".into(), "building".into(), nodes(&["a"])),
        "a new reason to wait"
    );
    assert_eq!(record.waits_for(), Some("building"));
    assert_eq!(record.start(Operation::Ensure).as_deref(), Some("t1"));
    assert!(
        !record.note_pending("t2".into(), "building".into(), nodes(&["a"])),
        "the same reason"
    );
    record.observe(service.clone().ingress("9.9.9.9").arc());
    assert_eq!(
        record.start(Operation::Ensure).as_deref(),
        Some("t2"),
        "a change without meaning keeps it"
    );
    record.observe(service.clone().port(80).arc());
    assert_eq!(record.start(Operation::Ensure), None, "a change with meaning does not");

    record.note_pending("t3".into(), "building".into(), nodes(&["a"]));
    assert_eq!(record.start(Operation::Delete), None, "another operation");
    assert_eq!(record.waits_for(), None);
    record.note_pending("t4".into(), "draining".into(), nodes(&[]));
    assert_eq!(record.start(Operation::Delete).as_deref(), Some("t4"));
}

#[test]
fn nodes_joining_during_cloud_build_are_added_afterwards() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc(), &Classes::default());
    record.start(Operation::Ensure);
    record.note_pending("t".into(), "building".into(), nodes(&["a"]));
    assert_eq!(record.start(Operation::Ensure).as_deref(), Some("t"));
    record.note_ensured(nodes(&["a", "b"]), vec![point("1.1.1.1")], Vec::new());
    record.note_written();
    assert_eq!(
        next_step(&record, Some(&service.0), &in_pass(&["a", "b"])),
        Step::UpdateTargets
    );
}

#[test]
fn an_update_of_nodes_that_finds_nothing_leads_to_a_new_ensure() {
    let service = balancer().finalizer();
    let mut record = ensured(&service);
    record.start(Operation::UpdateTargets);
    record.forget_ensured();
    assert_eq!(
        next_step(&record, Some(&service.0), &in_pass(&["a", "b"])),
        Step::Ensure
    );
}

#[test]
fn annotations_are_removed_with_the_load_balancer() {
    let service = of_type("ClusterIP").finalizer().annotation("id", "lb-1");
    let mut record = Record::new(service.arc(), &Classes::default());
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
        next_step(&record, Some(&without_finalizer.0), &in_pass(&[])),
        Step::PatchStatus
    );
}

#[test]
fn provider_answers_are_written_before_next_request() {
    let service = balancer().finalizer();
    let mut record = Record::new(service.arc(), &Classes::default());
    record.start(Operation::Ensure);
    let change = AnnotationChange {
        key: "id".into(),
        value: Some("lb-1".into()),
    };
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], vec![change]);
    assert_eq!(
        next_step(&record, Some(&service.0), &in_pass(&["b"])),
        Step::PatchStatus
    );
    let written = service.clone().ingress("1.1.1.1").annotation("id", "lb-1");
    assert_eq!(
        next_step(&record, Some(&written.0), &in_pass(&["a"])),
        Step::Ensure,
        "an annotation not known to be ours is a change"
    );
    record.note_written();
    assert_eq!(
        next_step(&record, Some(&written.0), &in_pass(&["a"])),
        Step::Nothing,
        "our own annotation is no change"
    );
    assert_eq!(
        next_step(
            &record,
            Some(&written.clone().annotation("user", "x").0),
            &in_pass(&["a"])
        ),
        Step::Ensure,
        "an annotation that a user set at the same time is"
    );
}

#[test]
fn an_answer_that_changes_nothing_is_not_written() {
    let service = balancer().finalizer().ingress("1.1.1.1");
    let mut record = Record::new(service.arc(), &Classes::default());
    record.start(Operation::Ensure);
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], Vec::new());
    assert_eq!(next_step(&record, Some(&service.0), &in_pass(&["a"])), Step::Nothing);
}
