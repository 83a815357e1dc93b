//! AWS's codes as failures, in the shapes that moto answers with.

use cloudwit_guest_sdk::prelude::*;

use crate::Aws;
use crate::testing::{EC2, host, instances, no_topology, refusal};

/// What the probe says to an answer.
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
        assert!(matches!(by_code(code), Failure::Denied(_)), "{code}");
    }
    for code in [
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "SlowDown",
    ] {
        assert!(matches!(by_code(code), Failure::RateLimited(_)), "{code}");
    }
    for code in [
        "InvalidVpcID.NotFound",
        "InvalidRouteTableID.NotFound",
        "LoadBalancerNotFound",
    ] {
        assert!(matches!(by_code(code), Failure::NotFound(_)), "{code}");
    }
    for code in [
        "DependencyViolation",
        "ResourceInUse",
        "InvalidGroup.Duplicate",
        "RouteAlreadyExists",
    ] {
        assert!(matches!(by_code(code), Failure::Conflict(_)), "{code}");
    }
    for code in ["InternalError", "ServiceUnavailable", "Unavailable"] {
        assert!(matches!(by_code(code), Failure::Unavailable(_)), "{code}");
    }
    for code in [
        "RouteLimitExceeded",
        "TooManyLoadBalancers",
        "RulesPerSecurityGroupLimitExceeded",
    ] {
        assert!(
            matches!(by_code(code), Failure::Other(_)),
            "a quota may be raised: {code}"
        );
    }
    assert!(matches!(by_code("InvalidParameterValue"), Failure::Invalid(_)));
}

#[test]
fn the_failure_says_action_code_and_message_in_one_line() {
    let failure = probe(400, &[], &refusal("InvalidVpcID.NotFound", "no such VPC"));
    let text =
        "DescribeAvailabilityZones: POST https://ec2.us-east-1.amazonaws.com/: InvalidVpcID.NotFound: no such VPC";
    assert_eq!(failure.message(), text);
}

#[test]
fn retry_after_is_kept() {
    let busy = refusal("RequestLimitExceeded", "slow down");
    let after = |failure| match failure {
        Failure::RateLimited(throttle) => throttle.after_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(after(probe(503, &[("retry-after", "7")], &busy)), Some(7_000));
    assert_eq!(after(probe(503, &[], &busy)), None);
    assert_eq!(after(probe(429, &[("retry-after", "2")], "")), Some(2_000));
}

#[test]
fn an_answer_without_xml_goes_by_its_status() {
    assert!(matches!(probe(500, &[], no_topology()), Failure::Unavailable(_)));
    assert!(matches!(probe(403, &[], "{}"), Failure::Denied(_)));
    assert!(matches!(probe(503, &[], "<html>busy"), Failure::Unavailable(_)));
}

#[test]
fn an_answer_that_is_cut_is_no_answer() {
    let whole = instances();
    for part in [whole.len() / 2, whole.len() - 5, 60] {
        let failure = probe(200, &[], &whole[..part]);
        assert!(
            matches!(&failure, Failure::Unavailable(text) if text.contains("no whole XML")),
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
