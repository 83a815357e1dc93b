//! The sources of credentials, with moto's answers.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeHost;

use crate::Aws;
use crate::testing::{CONFIG, EC2, NOW, host, profile, profile_roles, refusal, role, web_identity, zones};

const STS: &str = "https://sts.us-east-1.amazonaws.com/";
const METADATA: &str = "http://169.254.169.254";

fn configured(more: &str) -> FakeHost {
    let host = host();
    host.config(CONFIG.to_owned() + more);
    host.secret("web-identity-token", "eyJ.token");
    host
}

fn key_of_last(host: &FakeHost) -> String {
    let header = host
        .requests()
        .pop()
        .unwrap()
        .header("authorization")
        .unwrap()
        .to_owned();
    header
        .split("Credential=")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned()
}

fn given<'a>(answer: &'a str, name: &str) -> &'a str {
    answer
        .split(&format!("<{name}>"))
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap()
}

#[test]
fn the_session_token_of_static_keys_is_sent_and_signed() {
    let host = configured("[Credentials]\nSessionToken = true\n");
    host.secret("session-token", "session\n");
    host.expect("POST", EC2)
        .with_header("x-amz-security-token", "session")
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    let header = host.requests()[0].header("authorization").unwrap().to_owned();
    assert!(
        header.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,"),
        "{header}"
    );
}

#[test]
fn web_identity_is_exchanged_unsigned_with_token_in_host() {
    let host = configured("[Credentials]\nSource = web-identity\nWebIdentityRoleARN = arn:aws:iam::1:role/r\n");
    host.expect("POST", STS)
        .with_text(
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=cloudwit\
             &WebIdentityToken=cloudwit-placeholder-web-identity-token.form",
        )
        .answers_xml(200, web_identity());
    host.expect("POST", EC2)
        .with_header("x-amz-security-token", given(web_identity(), "SessionToken"))
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    assert_eq!(host.requests()[0].header("authorization"), None);
    assert_eq!(key_of_last(&host), given(web_identity(), "AccessKeyId"));
    // The next call finds them.
    host.expect("POST", EC2).answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
}

#[test]
fn instance_profile_is_read_by_imdsv2() {
    let host = configured("[Credentials]\nSource = instance-profile\n");
    host.expect("PUT", &format!("{METADATA}/latest/api/token"))
        .with_header("x-amz-ec2-metadata-token-ttl-seconds", "21600")
        .answers_with(200, &[], "session-of-imds");
    let roles = format!("{METADATA}/latest/meta-data/iam/security-credentials/");
    host.expect("GET", &roles)
        .with_header("x-aws-ec2-metadata-token", "session-of-imds")
        .answers_with(200, &[], profile_roles());
    host.expect("GET", &(roles.clone() + "default-role"))
        .with_header("x-aws-ec2-metadata-token", "session-of-imds")
        .answers_with(200, &[], profile());
    host.expect("POST", EC2)
        .with_header("x-amz-security-token", "test-session-token")
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    assert_eq!(key_of_last(&host), "test-key");
}

#[test]
fn what_is_wrong_with_an_instance_profile_is_reported() {
    let host = configured("[Credentials]\nSource = instance-profile\n");
    let url = |path: &str| format!("{METADATA}/latest/{path}");
    host.expect("PUT", &url("api/token")).breaks();
    let failure = host.provider::<Aws>().probe().unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.contains("hop limit")),
        "{failure:?}"
    );

    host.expect("PUT", &url("api/token")).answers_with(200, &[], "t");
    host.expect("GET", &url("meta-data/iam/security-credentials/"))
        .answers_with(404, &[], "");
    let failure = host.provider::<Aws>().probe().unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::NotFound, message: text, .. } if text.contains("no role")),
        "{failure:?}"
    );

    host.expect("PUT", &url("api/token")).answers_with(200, &[], "t");
    host.expect("GET", &url("meta-data/iam/security-credentials/"))
        .answers_with(200, &[], "r");
    let answer = r#"{"Code": "AssumeRoleUnauthorizedAccess", "Message": "EC2 cannot assume the role r"}"#;
    host.expect("GET", &url("meta-data/iam/security-credentials/r"))
        .answers_with(200, &[], answer);
    let failure = host.provider::<Aws>().probe().unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Denied, message: text, .. } if text.contains("EC2 cannot assume")),
        "{failure:?}"
    );
}

#[test]
fn role_is_assumed_with_confused_deputy_source() {
    let host = configured(
        "RoleARN = arn:aws:iam::123456789012:role/cloudwit\nSourceARN = arn:aws:eks:us-east-1:210987654321:cluster/c\n\
         [Credentials]\nRoleSessionName = me\n",
    );
    host.expect("POST", STS)
        .with_header("x-amz-source-arn", "arn:aws:eks:us-east-1:210987654321:cluster/c")
        .with_header("x-amz-source-account", "210987654321")
        .with_form(&[
            ("Action", "AssumeRole"),
            ("Version", "2011-06-15"),
            ("RoleArn", "arn:aws:iam::123456789012:role/cloudwit"),
            ("RoleSessionName", "me"),
        ])
        .answers_xml(200, role());
    host.expect("POST", EC2)
        .with_header("x-amz-security-token", given(role(), "SessionToken"))
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    let header = host.requests()[0].header("authorization").unwrap().to_owned();
    assert!(
        header.contains("Credential=cloudwit-placeholder-access-key-id.plain/20261121/us-east-1/sts/"),
        "{header}"
    );
    assert!(
        header.contains("x-amz-date;x-amz-source-account;x-amz-source-arn,"),
        "{header}"
    );
    assert_eq!(key_of_last(&host), given(role(), "AccessKeyId"));
}

#[test]
fn temporary_credentials_are_renewed_before_they_end() {
    let host = configured("RoleARN = arn:aws:iam::123456789012:role/cloudwit\n");
    let until = |time: &str| role().replace(given(role(), "Expiration"), time);
    host.expect("POST", STS)
        .answers_xml(200, &until("2026-11-21T10:00:00Z"));
    host.expect("POST", EC2).answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    host.now(NOW + 54 * 60);
    host.expect("POST", EC2).answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    host.now(NOW + 56 * 60);
    host.expect("POST", STS)
        .answers_xml(200, &until("2026-11-21T11:00:00Z"));
    host.expect("POST", EC2).answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
}

#[test]
fn a_role_that_may_not_be_taken_on_is_denied_in_words() {
    let host = configured("RoleARN = arn:aws:iam::123456789012:role/cloudwit\n");
    host.expect("POST", STS).answers_xml(
        403,
        &refusal("AccessDenied", "User: me is not authorized to perform: sts:AssumeRole"),
    );
    let failure = host.provider::<Aws>().probe().unwrap_err();
    let Failure {
        kind: FailureKind::Denied,
        message: text,
        ..
    } = &failure
    else {
        panic!("{failure:?}")
    };
    assert!(
        text.starts_with("getting credentials: AssumeRole: ") && text.contains("not authorized"),
        "{text}"
    );
}

#[test]
fn the_clock_is_learned_from_sts_too() {
    let host = configured("RoleARN = arn:aws:iam::123456789012:role/cloudwit\n");
    host.expect("POST", STS).answers_with(
        403,
        &[("date", "Sat, 21 Nov 2026 10:00:00 GMT")],
        &refusal("SignatureDoesNotMatch", "Signature expired"),
    );
    host.expect("POST", STS)
        .with_header("x-amz-date", "20261121T100000Z")
        .answers_xml(200, role());
    host.expect("POST", EC2)
        .with_header("x-amz-date", "20261121T100000Z")
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
}

#[test]
fn an_answer_without_whole_credentials_is_no_answer() {
    let host = configured("RoleARN = arn:aws:iam::123456789012:role/cloudwit\n");
    host.expect("POST", STS)
        .answers_xml(200, &role().replace("SessionToken>", "Token>"));
    assert!(
        matches!(host.provider::<Aws>().probe(), Err(Failure { kind: FailureKind::Other, message: text, .. }) if text.contains("whole credentials"))
    );
}
