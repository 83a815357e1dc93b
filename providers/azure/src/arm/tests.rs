use super::*;

#[test]
fn ids_are_taken_apart_without_regard_to_case() {
    let id = "/subscriptions/S/resourcegroups/RG/providers/Microsoft.Network/networkInterfaces/n";
    assert_eq!(ids::part(id, "resourceGroups"), Some("RG"));
    assert_eq!(ids::part(id, "subnets"), None);
    assert_eq!(ids::part("/subscriptions", "subscriptions"), None);
    assert_eq!(ids::name(id), "n");
    let small = "/subscriptions/S/resourcegroups/rg/providers/Microsoft.Network/networkInterfaces/n";
    assert_eq!(ids::with_small_group(id), small);
}

#[test]
fn links_of_the_cloud_are_followed_at_the_configured_endpoint() {
    assert_eq!(path_of("https://management.azure.com/a?b=c"), "/a?b=c");
    assert_eq!(path_of("/a"), "/a");
    assert_eq!(path_of("https://management.azure.com"), "/");
}

fn answer(status: u16, code: &str) -> Failure {
    let host = cloudwit_guest_sdk::testing::FakeHost::new();
    let body = serde_json::json!({ "error": { "code": code, "message": "words" } }).to_string();
    host.expect("GET", "https://a.test/")
        .answers_with(status, &[("retry-after", "7")], &body);
    let answer = host.context().http().get("https://a.test/").send_any();
    errors::failure(&answer.unwrap())
}

#[test]
fn codes_decide_when_the_host_tries_again() {
    for (status, code, kind) in [
        (404, "ResourceNotFound", FailureKind::NotFound),
        (404, "SubscriptionNotFound", FailureKind::Invalid),
        (403, "AuthorizationFailed", FailureKind::Denied),
        (412, "PreconditionFailedEtagMismatch", FailureKind::Conflict),
        (409, "AnotherOperationInProgress", FailureKind::Conflict),
        (429, "OperationNotAllowed", FailureKind::RateLimited),
        (400, "PublicIPCountLimitReached", FailureKind::Exhausted),
        (409, "QuotaExceeded", FailureKind::Exhausted),
        (400, "InvalidRequestFormat", FailureKind::Invalid),
    ] {
        assert_eq!(answer(status, code).kind, kind, "{status} {code}");
    }
    assert_eq!(answer(429, "TooManyRequests").retry_after, Some(7_000));
}

#[test]
fn only_the_resource_managers_own_404_is_an_absence() {
    assert!(errors::denies_resource(&answer(404, "ResourceNotFound")));
    for code in ["SubscriptionNotFound", "", "InvalidPath"] {
        assert!(!errors::denies_resource(&answer(404, code)), "{code}");
    }
}

#[test]
fn operation_that_failed_is_not_looked_at_for_ever() {
    for (code, kind) in [
        ("", FailureKind::Other),
        ("Canceled", FailureKind::Other),
        ("RetryableErrorDueToAnotherOperation", FailureKind::Other),
        ("SubscriptionRequestsThrottled", FailureKind::Other),
        ("QuotaExceeded", FailureKind::Exhausted),
        ("InvalidResourceReference", FailureKind::FailedPrecondition),
    ] {
        let error = serde_json::from_value(serde_json::json!({ "code": code })).unwrap();
        assert_eq!(errors::of_operation(&error, "Failed").kind, kind, "{code}");
    }
}
