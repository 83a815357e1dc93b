use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::testing::FakeHost;

use super::*;

fn failure(status: u16, reason: &str, headers: &[(&str, &str)]) -> Failure {
    let host = FakeHost::new();
    host.config(r#"{"global": {"token-url": "nil", "api-endpoint": "https://gce.test/v1", "project-id": "p", "local-zone": "us-central1-a", "network-name": "n"}}"#);
    let body = json!({ "error": { "code": status, "message": "words", "errors": [{ "reason": reason }] } });
    // A read that fails on the cloud's side is sent once more.
    for _ in 0..if status >= 500 { 2 } else { 1 } {
        host.expect("GET", "https://gce.test/v1/x")
            .answers_with(status, headers, &body.to_string());
    }
    host.provider::<crate::Gce>().api.get::<Value>("/x", &[]).unwrap_err()
}

#[test]
fn reasons_decide_and_not_only_the_status() {
    for (status, reason, kind) in [
        (404, "notFound", FailureKind::NotFound),
        (409, "alreadyExists", FailureKind::AlreadyExists),
        (400, "resourceInUseByAnotherResource", FailureKind::FailedPrecondition),
        (400, "resourceNotReady", FailureKind::Conflict),
        (412, "conditionNotMet", FailureKind::Conflict),
        (403, "rateLimitExceeded", FailureKind::RateLimited),
        (403, "quotaExceeded", FailureKind::Exhausted),
        (403, "forbidden", FailureKind::Denied),
        (503, "backendError", FailureKind::Unavailable),
        (400, "invalid", FailureKind::Invalid),
    ] {
        assert_eq!(failure(status, reason, &[]).kind, kind, "{reason}");
    }
    let slow = failure(403, "userRateLimitExceeded", &[("retry-after", "7")]);
    assert_eq!((slow.kind, slow.retry_after), (FailureKind::RateLimited, Some(7_000)));
    assert_eq!(slow.code.as_deref(), Some("userRateLimitExceeded"));
}

#[test]
fn only_compute_engines_word_about_this_machine_is_a_denial() {
    let not_found = |text: &str| Failure::not_found(text);
    assert!(errors::denies_instance(
        &not_found("The resource 'projects/p/zones/z/instances/n' was not found"),
        "n"
    ));
    assert!(!errors::denies_instance(
        &not_found("The resource 'projects/p/zones/z' was not found"),
        "n"
    ));
    assert!(!errors::denies_instance(
        &not_found("The resource 'projects/p/zones/z/instances/nn' was not found"),
        "n"
    ));
    assert!(!errors::denies_instance(&Failure::denied("'/instances/n'"), "n"));
}

#[test]
fn operation_that_failed_reports_why() {
    let operation = |json| serde_json::from_value::<Operation>(json).unwrap();
    let running = operation(json!({ "status": "RUNNING", "selfLink": "https://h/v1/projects/p/global/operations/o" }));
    assert_eq!(running.running(), Ok(Some("projects/p/global/operations/o".into())));
    assert_eq!(operation(json!({ "status": "DONE" })).running(), Ok(None));
    let failed = json!({
        "status": "DONE", "operationType": "insert", "targetLink": "https://h/v1/projects/p/regions/r/addresses/a",
        "error": { "errors": [{ "code": "QUOTA_EXCEEDED", "message": "7 of 7" }] },
    });
    let failure = operation(failed).running().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Exhausted);
    assert_eq!(
        failure.message(),
        "insert of projects/p/regions/r/addresses/a: QUOTA_EXCEEDED: 7 of 7"
    );
}
