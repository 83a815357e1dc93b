//! AWS's codes as failures, in the shapes that moto answers with.

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::testing::{EC2, host, instances, no_topology, refusal};

/// The probe's result for an answer.
fn probe(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    let host = host();
    host.expect("POST", EC2).answers_with(status, headers, body);
    host.provider::<Aws>().probe().unwrap_err()
}

fn by_code(code: &str) -> Failure {
    probe(400, &[], &refusal(code, "no"))
}

#[test]
fn the_code_decides_the_case() {
    for code in [
        "AuthFailure",
        "UnauthorizedOperation",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "RequestExpired",
        "OptInRequired",
    ] {
        assert!(by_code(code).kind == FailureKind::Denied, "{code}");
    }
    for code in [
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "SlowDown",
    ] {
        assert!(by_code(code).kind == FailureKind::RateLimited, "{code}");
    }
    for code in [
        "InvalidVpcID.NotFound",
        "InvalidRouteTableID.NotFound",
        "LoadBalancerNotFound",
    ] {
        assert!(by_code(code).kind == FailureKind::NotFound, "{code}");
    }
    for code in ["DependencyViolation", "ResourceInUse"] {
        assert!(by_code(code).kind == FailureKind::Conflict, "{code}");
    }
    for code in ["InvalidGroup.Duplicate", "RouteAlreadyExists"] {
        assert!(by_code(code).kind == FailureKind::AlreadyExists, "{code}");
    }
    for code in ["InternalError", "ServiceUnavailable", "Unavailable"] {
        assert!(by_code(code).kind == FailureKind::Unavailable, "{code}");
    }
    for code in [
        "RouteLimitExceeded",
        "TooManyLoadBalancers",
        "RulesPerSecurityGroupLimitExceeded",
    ] {
        assert!(
            by_code(code).kind == FailureKind::Exhausted,
            "a quota may be raised: {code}"
        );
    }
    assert_eq!(by_code("InvalidParameterValue").kind, FailureKind::Invalid);
}

#[test]
fn failure_reports_action_code_and_message_in_one_line() {
    let failure = probe(400, &[], &refusal("InvalidVpcID.NotFound", "no such VPC"));
    let text =
        "DescribeAvailabilityZones: POST https://ec2.us-east-1.amazonaws.com/: InvalidVpcID.NotFound: no such VPC";
    assert_eq!(failure.message(), text);
}

#[test]
fn retry_after_is_kept() {
    let busy = refusal("RequestLimitExceeded", "slow down");
    let after = |failure| match failure {
        Failure {
            kind: FailureKind::RateLimited,
            retry_after,
            ..
        } => retry_after,
        other => panic!("{other:?}"),
    };
    assert_eq!(after(probe(503, &[("retry-after", "7")], &busy)), Some(7_000));
    assert_eq!(after(probe(503, &[], &busy)), None);
    assert_eq!(after(probe(429, &[("retry-after", "2")], "")), Some(2_000));
}

#[test]
fn answer_without_xml_goes_by_its_status() {
    assert!(matches!(
        probe(500, &[], no_topology()),
        Failure {
            kind: FailureKind::Unavailable,
            ..
        }
    ));
    assert_eq!(probe(403, &[], "{}").kind, FailureKind::Denied);
    assert_eq!(probe(503, &[], "<html>busy").kind, FailureKind::Unavailable);
}

#[test]
fn an_answer_that_is_cut_is_no_answer() {
    let whole = instances();
    for part in [whole.len() / 2, whole.len() - 5, 60] {
        let failure = probe(200, &[], &whole[..part]);
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("no whole XML")),
            "{failure:?}"
        );
    }
}

#[test]
fn the_session_token_that_aws_quotes_is_not_passed_on() {
    let quoted = "The request signature does not match.\n\nThe Canonical String for this request should have been\n'POST\n/\n\n\
                  x-amz-security-token:FQoGZXIvYXdzEBYaD'";
    let text = probe(403, &[], &refusal("SignatureDoesNotMatch", quoted))
        .message()
        .to_owned();
    assert!(
        text.ends_with("The request signature does not match.") && !text.contains("FQoG"),
        "{text}"
    );
}
