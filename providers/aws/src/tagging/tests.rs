//! Tags on instances, with EC2's refusals as moto words them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use crate::Aws;
use crate::testing::{host, node, refusal};

const DONE: &str = "<CreateTagsResponse><return>true</return></CreateTagsResponse>";

fn nodes(count: usize) -> Vec<NodeRef> {
    let id = |number| format!("aws:///us-east-1a/i-{number:017x}");
    (0..count)
        .map(|number| node(&format!("n{number}"), &id(number)))
        .collect()
}

fn tags() -> [Pair; 2] {
    [Pair::new("team", "blue"), Pair::new("empty", "")]
}

fn resources(request: &SentRequest) -> Vec<String> {
    let form = request.form().into_iter();
    form.filter(|(name, _)| name.starts_with("ResourceId."))
        .map(|(_, id)| id)
        .collect()
}

/// EC2 that has all instances but these, and words its refusals as it does for one and for several.
fn serve(host: &FakeHost, missing: &'static [&'static str], code: &'static str) {
    host.serve(move |request| {
        let asked = resources(request);
        let unknown: Vec<&str> = asked
            .iter()
            .map(String::as_str)
            .filter(|id| missing.contains(id))
            .collect();
        match unknown.as_slice() {
            [] => FakeAnswer::xml(200, DONE),
            [one] => FakeAnswer::xml(400, &refusal(code, &format!("The instance ID '{one}' does not exist"))),
            all => {
                let message = format!("The instance IDs '{}' do not exist", all.join(", "));
                FakeAnswer::xml(400, &refusal(code, &message))
            }
        }
    });
}

fn actions(host: &FakeHost) -> Vec<(String, usize)> {
    let action = |request: &SentRequest| (request.field("Action").unwrap(), resources(request).len());
    host.requests().iter().map(action).collect()
}

#[test]
fn fifty_instances_share_a_call_as_upstream_batches_them() {
    let host = host();
    serve(&host, &[], "");
    let results = host.provider::<Aws>().tag(&nodes(120), &tags()).unwrap();
    assert_eq!(results, vec![Ok(()); 120]);
    let create = |count| ("CreateTags".to_owned(), count);
    assert_eq!(actions(&host), [create(50), create(50), create(20)]);
    let form = host.requests()[0].form();
    let field = |name: &str| {
        form.iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(
        ["Tag.1.Key", "Tag.1.Value", "Tag.2.Key", "Tag.2.Value"].map(field),
        [Some("team"), Some("blue"), Some("empty"), Some("")]
    );
}

#[test]
fn missing_instance_costs_no_other_and_is_not_found() {
    let host = host();
    serve(
        &host,
        &["i-00000000000000003", "i-00000000000000004"],
        "InvalidInstanceID.NotFound",
    );
    let results = host.provider::<Aws>().tag(&nodes(10), &tags()).unwrap();
    let failed: Vec<usize> = (0..10).filter(|at| results[*at].is_err()).collect();
    assert_eq!(failed, [3, 4]);
    assert!(results[3].as_ref().unwrap_err().is_not_found());
    assert_eq!(
        actions(&host).len(),
        2,
        "AWS names both, and the others are asked for once more"
    );
}

#[test]
fn malformed_id_is_invalid_and_costs_no_other() {
    let host = host();
    serve(&host, &["i-bad"], "InvalidID");
    let mut asked = nodes(2);
    asked.push(node("kwok", "aws:///z/i-bad"));
    let results = host.provider::<Aws>().tag(&asked, &tags()).unwrap();
    assert_eq!(results[..2], [Ok(()), Ok(())]);
    assert_eq!(results[2].as_ref().unwrap_err().kind, FailureKind::Invalid);
}

#[test]
fn untagged_instance_that_is_gone_is_success() {
    let host = host();
    serve(&host, &["i-00000000000000001"], "InvalidInstanceID.NotFound");
    let results = host.provider::<Aws>().untag(&nodes(2), &tags()).unwrap();
    assert_eq!(results, [Ok(()), Ok(())]);
    assert_eq!(actions(&host)[0].0, "DeleteTags");
    let form = host.requests()[0].form();
    assert!(
        form.contains(&("Tag.1.Value".to_owned(), "blue".to_owned())),
        "only where the tag has this value: {form:?}"
    );
}

#[test]
fn fargate_and_foreign_ids_are_not_asked_about() {
    let host = host();
    let asked = [
        node("f", "aws:///z/abc/fargate-ip-10-0-0-1.ec2.internal"),
        node("g", "gce://p/z/n"),
    ];
    let results = host.provider::<Aws>().tag(&asked, &tags()).unwrap();
    let kinds: Vec<FailureKind> = results.into_iter().map(|result| result.unwrap_err().kind).collect();
    assert_eq!(kinds, [FailureKind::ImplementedElsewhere, FailureKind::Invalid]);
    assert!(host.requests().is_empty());
}

#[test]
fn throttled_call_fails_what_is_left_and_keeps_what_is_done() {
    let host = host();
    let mut calls = 0;
    host.serve(move |_| {
        calls += 1;
        match calls {
            1 => FakeAnswer::xml(200, DONE),
            _ => FakeAnswer::xml(503, &refusal("RequestLimitExceeded", "slow down")),
        }
    });
    let results = host.provider::<Aws>().tag(&nodes(150), &tags()).unwrap();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 50);
    let limited = |result: &Result<(), Failure>| {
        let failure = result.as_ref().unwrap_err();
        failure.kind == FailureKind::RateLimited
    };
    assert!(results[50..].iter().all(limited), "{:?}", results[50]);
    assert_eq!(actions(&host).len(), 2, "the third call is not made");
}

#[test]
fn missing_right_fails_the_whole_call() {
    let host = host();
    host.serve(|_| FakeAnswer::xml(403, &refusal("UnauthorizedOperation", "no")));
    let failure = host.provider::<Aws>().tag(&nodes(60), &tags()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert_eq!(actions(&host).len(), 1);
}
