//! Conformance of `tagging`: idempotence, failures of single machines, a failing cloud.

use cloudwit_model::{Cloud as _, NodeRef, TagChange, Tags};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

const PART: &str = "tagging";

/// Tries it on the known machines, which lose the tag in the end.
pub async fn run(trial: &Trial, report: &mut Report) {
    let tags = Tags::from([("cloudwit-conformance".to_owned(), "1".to_owned())]);
    let prefixes = &trial.provider.description().provider_id_prefixes;
    let stranger = NodeRef {
        name: "conformance-odd".into(),
        provider_id: Some(format!("{}%/ \u{1}", prefixes.first().map_or("", String::as_str))),
        ..NodeRef::default()
    };
    let with_stranger: Vec<NodeRef> = [stranger].into_iter().chain(trial.nodes.iter().cloned()).collect();

    let mut promise = Promise::of(PART, "machines get tags, and those that have them keep them");
    for _ in 0..2 {
        changed(trial, (TagChange::Add, &trial.nodes, &tags), &mut promise).await;
    }
    report.add(promise);

    let mut promise = Promise::of(
        PART,
        "a malformed provider id fails, and does no harm to the machines beside it",
    );
    let answers = trial.provider.change_tags(TagChange::Add, &with_stranger, &tags).await;
    if let Some([odd, others @ ..]) = promise.answered(answers).as_deref() {
        promise.holds(odd.is_err(), || "a machine that cannot exist was tagged".to_owned());
        promise.holds(others.iter().all(Result::is_ok), || format!("{others:?}"));
    }
    report.add(promise);

    let mut promise = Promise::of(PART, "a cloud that fails has changed nothing");
    trial.faults.always(500, None, "internal error");
    let answer = trial.provider.change_tags(TagChange::Remove, &trial.nodes, &tags).await;
    trial.faults.none();
    if let Ok(results) = answer {
        promise.holds(results.iter().all(Result::is_err), || format!("{results:?}"));
    }
    report.add(promise);

    let mut promise = Promise::of(PART, "tags are taken off, and taking them off again is success");
    for _ in 0..2 {
        changed(trial, (TagChange::Remove, &trial.nodes, &tags), &mut promise).await;
    }
    report.add(promise);
}

async fn changed(trial: &Trial, (change, nodes, tags): (TagChange, &[NodeRef], &Tags), promise: &mut Promise) {
    let results = promise.answered(trial.provider.change_tags(change, nodes, tags).await);
    for (node, result) in nodes.iter().zip(results.unwrap_or_default()) {
        promise.holds(result.is_ok(), || format!("{}: {result:?}", node.name));
    }
}
