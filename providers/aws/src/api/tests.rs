//! What goes over the wire, and the second chances.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::FakeHost;

use crate::Aws;
use crate::testing::{CONFIG, EC2, NOW, balancer_unknown, host, refusal, role, zones};

const STS: &str = "https://sts.us-east-1.amazonaws.com/";
const ELB: &str = "https://elasticloadbalancing.us-east-1.amazonaws.com/";

/// `Sat, 21 Nov 2026 10:00:00 GMT`: an hour after [`NOW`].
const AN_HOUR_LATER: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

fn with_role() -> FakeHost {
    let host = host();
    host.config(CONFIG.to_owned() + "RoleARN = arn:aws:iam::123456789012:role/cloudwit\n");
    host
}

#[test]
fn a_call_is_a_signed_form_and_the_key_stays_in_the_host() {
    let host = host();
    host.expect("POST", EC2)
        .with_header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
        .with_header("x-amz-date", "20261121T090000Z")
        .with_form(&[("Action", "DescribeAvailabilityZones"), ("Version", "2016-11-15")])
        .answers_xml(200, zones());
    assert_eq!(host.provider::<Aws>().probe(), Ok(()));
    let sent = host.requests();
    let header = sent[0].header("authorization").unwrap();
    let start = "AWS4-HMAC-SHA256 Credential=cloudwit-placeholder-access-key-id.plain/20261121/us-east-1/ec2/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date, Signature=";
    assert!(header.starts_with(start), "{header}");
    assert_eq!(header.len(), start.len() + 64);
    assert_eq!(sent[0].header("x-amz-security-token"), None);
}

#[test]
fn lists_and_filters_are_numbered_per_service() {
    let host = host();
    let aws = host.provider::<Aws>();
    host.expect("POST", EC2)
        .with_text(
            "Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=a&SubnetId.2=b&Filter.1.Name=vpc-id&Filter.1.Value.1=c\
             &Filter.2.Name=tag-key&Filter.2.Value.1=d&Filter.2.Value.2=e",
        )
        .answers_xml(200, zones());
    let call = aws.api.ec2("DescribeSubnets").list("SubnetId", ["a", "b"]);
    call.filter("vpc-id", ["c"])
        .filter("tag-key", ["d", "e"])
        .send()
        .unwrap();
    host.expect("POST", ELB)
        .with_text(
            "Action=AddTags&Version=2012-06-01&LoadBalancerNames.member.1=a&Tags.member.1.Key=k+%2F&Tags.member.1.Value=%C3%A9",
        )
        .answers_xml(400, balancer_unknown());
    let call = aws
        .api
        .elb("AddTags")
        .list("LoadBalancerNames", ["a"])
        .tags("Tags", &[Pair::new("k /", "\u{e9}")]);
    assert_eq!(call.send_unless(&["LoadBalancerNotFound"]), Ok(None));
}

#[test]
fn pages_are_collected_by_the_services_own_token() {
    let host = host();
    let aws = host.provider::<Aws>();
    let page = |item: &str, next: &str| format!("<A><set><item>{item}</item></set><nextToken>{next}</nextToken></A>");
    host.expect("POST", EC2).answers_xml(200, &page("1", "more"));
    host.expect("POST", EC2)
        .with_fields(&[("NextToken", "more")])
        .answers_xml(200, &page("2", ""));
    let read = |item: &cloudwit_guest_sdk::xml::Element| Ok(item.own_text().to_owned());
    assert_eq!(aws.api.ec2("A").pages(&["set"], read), Ok(vec!["1".into(), "2".into()]));

    let page = |item: &str, next: &str| format!("<R><AResult><Set><member>{item}</member></Set>{next}</AResult></R>");
    host.expect("POST", ELB)
        .answers_xml(200, &page("1", "<NextMarker>more</NextMarker>"));
    host.expect("POST", ELB)
        .with_fields(&[("Marker", "more")])
        .answers_xml(200, &page("2", ""));
    assert_eq!(
        aws.api.elb_v2("A").pages(&["Set"], read),
        Ok(vec!["1".into(), "2".into()])
    );

    host.expect("POST", EC2)
        .answers_xml(200, "<A><nextToken>more</nextToken></A>");
    host.expect("POST", EC2)
        .answers_xml(400, &refusal("RequestLimitExceeded", "no"));
    let error = aws.api.ec2("A").pages(&["set"], read).unwrap_err();
    assert_eq!(error.code, "RequestLimitExceeded");
}

#[test]
fn clock_skew_is_learned_from_refusal_and_call_repeated() {
    for code in ["RequestExpired", "SignatureDoesNotMatch", "AuthFailure"] {
        let host = host();
        let refused = refusal(code, "no");
        host.expect("POST", EC2)
            .with_header("x-amz-date", "20261121T090000Z")
            .answers_with(400, &[("date", AN_HOUR_LATER)], &refused);
        host.expect("POST", EC2)
            .with_header("x-amz-date", "20261121T100000Z")
            .answers_xml(200, zones());
        assert_eq!(host.provider::<Aws>().probe(), Ok(()), "{code}");
        // The next call starts with the right time.
        host.now(NOW + 60);
        host.expect("POST", EC2)
            .with_header("x-amz-date", "20261121T100100Z")
            .answers_xml(200, zones());
        assert_eq!(host.provider::<Aws>().probe(), Ok(()), "{code}");
    }
}

#[test]
fn a_refusal_at_the_right_time_is_final() {
    let host = host();
    let now = "Sat, 21 Nov 2026 09:00:30 GMT";
    host.expect("POST", EC2)
        .answers_with(403, &[("date", now)], &refusal("SignatureDoesNotMatch", "wrong key"));
    assert!(matches!(
        host.provider::<Aws>().probe(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
    // And without a time.
    host.expect("POST", EC2)
        .answers_xml(403, &refusal("SignatureDoesNotMatch", "wrong key"));
    assert!(matches!(
        host.provider::<Aws>().probe(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
}

#[test]
fn a_clock_that_stays_wrong_is_learned_once_in_a_call() {
    let host = host();
    for date in [AN_HOUR_LATER, "Sat, 21 Nov 2026 12:00:00 GMT"] {
        host.expect("POST", EC2)
            .answers_with(400, &[("date", date)], &refusal("RequestExpired", "no"));
    }
    assert!(matches!(
        host.provider::<Aws>().probe(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
}

#[test]
fn credentials_that_end_in_mid_call_are_renewed_once() {
    let host = with_role();
    for code in ["ExpiredToken", "RequestExpired", "AuthFailure"] {
        host.context().state().remove("token/role");
        host.expect("POST", STS).answers_xml(200, role());
        host.expect("POST", EC2).answers_xml(400, &refusal(code, "over"));
        host.expect("POST", STS)
            .answers_xml(200, &role().replace("<AccessKeyId>ASIA", "<AccessKeyId>ASIANEW"));
        host.expect("POST", EC2).answers_xml(200, zones());
        assert_eq!(host.provider::<Aws>().probe(), Ok(()), "{code}");
        let last = host.requests().pop().unwrap();
        assert!(
            last.header("authorization").unwrap().contains("Credential=ASIANEW"),
            "{code}"
        );
    }
    // A second refusal is final.
    host.expect("POST", EC2)
        .answers_xml(400, &refusal("ExpiredToken", "over"));
    host.expect("POST", STS).answers_xml(200, role());
    host.expect("POST", EC2)
        .answers_xml(400, &refusal("ExpiredToken", "over"));
    assert!(matches!(
        host.provider::<Aws>().probe(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
}

#[test]
fn static_keys_that_are_refused_are_refused() {
    let host = host();
    host.expect("POST", EC2)
        .answers_xml(401, &refusal("AuthFailure", "who are you?"));
    assert!(
        matches!(host.provider::<Aws>().probe(), Err(Failure { kind: FailureKind::Denied, message: text, .. }) if text.contains("AuthFailure"))
    );
}

#[test]
fn the_port_and_path_of_an_override_are_signed_as_they_are_sent() {
    let host = host();
    let sent = |url: &str| {
        host.config(format!("{CONFIG}[ServiceOverride \"1\"]\nService = EC2\nRegion = us-east-1\nURL = {url}\nSigningRegion = us-east-1\n"));
        host.expect(
            "POST",
            if url.ends_with("base") {
                url
            } else {
                "http://127.0.0.1:5000/"
            },
        )
        .answers_xml(200, zones());
        host.provider::<Aws>().probe().unwrap();
        host.requests()
            .pop()
            .unwrap()
            .header("authorization")
            .unwrap()
            .rsplit('=')
            .next()
            .unwrap()
            .to_owned()
    };
    let root = sent("http://127.0.0.1:5000");
    assert_eq!(sent("http://127.0.0.1:5000/"), root);
    assert_ne!(sent("http://127.0.0.1:5000/base"), root);
    // Computed by botocore 1.44 for the same request (host 127.0.0.1:5000, 20261121T090000Z).
    assert_eq!(root, BOTOCORE);
}

/// As `botocore.auth.SigV4Auth` signs `POST http://127.0.0.1:5000/`; see `recorded/sign.py`.
const BOTOCORE: &str = "6e6255affd140f2111c2b8331e2f66a4f78eed33ffc1f7eef193a2fac6c57b6e";
