//! What becomes of answers and faults, recorded ones first.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, recorded};

use super::*;

fn ask(host: &FakeHost, attempts: u32) -> Result<Answer, CallError> {
    let soap = Soap::new(host.context().http(), "https://vc.test:443", attempts);
    soap.call("6.5", None, "Ask", &Reference::new("Folder", "group-d1"), "<a>&lt;</a>")
}

fn failure(answer: FakeAnswer) -> Failure {
    let host = FakeHost::new();
    host.serve(move |_| answer.clone());
    ask(&host, 1).unwrap_err().into()
}

#[test]
fn a_call_names_its_method_and_object_and_gives_the_values() {
    let host = FakeHost::new();
    host.expect("POST", "https://vc.test:443/sdk")
        .with_header("content-type", "text/xml; charset=utf-8")
        .answers_xml(200, recorded(include_str!("../../../recorded/found.xml")));
    let answer = ask(&host, 1).unwrap();
    assert_eq!(answer.reference(), Some(Reference::new("VirtualMachine", "vm-91")));
    let text = host.requests()[0].text();
    assert!(
        text.contains("<Ask xmlns=\"urn:vim25\"><_this type=\"Folder\">group-d1</_this><a>&lt;</a></Ask>"),
        "{text}"
    );
}

#[test]
fn nothing_found_is_no_value() {
    let host = FakeHost::new();
    host.serve(|_| FakeAnswer::xml(200, recorded(include_str!("../../../recorded/nothing_found.xml"))));
    assert!(ask(&host, 1).unwrap().value().is_none());
}

#[test]
fn faults_become_failures_of_the_right_case() {
    let refused = failure(FakeAnswer::xml(
        500,
        recorded(include_str!("../../../recorded/login_refused.xml")),
    ));
    assert_eq!(
        refused,
        Failure::denied("InvalidLogin: Login failure").with_code("InvalidLogin")
    );
    let gone = failure(FakeAnswer::xml(
        500,
        recorded(include_str!("../../../recorded/session_over_view.xml")),
    ));
    assert!(gone.is_not_found(), "{gone:?}");
    let fault = |kind: &str| {
        let text =
            format!("<E><Body><Fault><faultstring>why</faultstring><detail><{kind}Fault/></detail></Fault></Body></E>");
        failure(FakeAnswer::xml(500, &text))
    };
    assert_eq!(fault("NoPermission").kind, FailureKind::Denied);
    assert_eq!(fault("RequestCanceled").kind, FailureKind::Unavailable);
    assert_eq!(
        fault("NotSupported"),
        Failure::other("NotSupported: why").with_code("NotSupported")
    );
}

#[test]
fn missing_answer_is_retried_as_configured() {
    for broken in [
        FakeAnswer::new(503, &[], ""),
        FakeAnswer::new(502, &[], "<html>"),
        FakeAnswer::new(500, &[], "oops"),
        FakeAnswer::xml(200, "<Envelope><Body><AskResp"),
        FakeAnswer::xml(200, ""),
        FakeAnswer::xml(200, "<html><Body></Body></html>"),
    ] {
        let host = FakeHost::new();
        host.serve(move |_| broken.clone());
        let failure = Failure::from(ask(&host, 3).unwrap_err());
        assert!(
            matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.starts_with("Ask: ")),
            "{failure:?}"
        );
        assert_eq!(host.requests().len(), 3, "{failure:?}");
    }
}

#[test]
fn missing_answer_wait_advice_and_refusal_are_not_retried() {
    for (answer, denied) in [
        (FakeAnswer::breaks(), false),
        (FakeAnswer::new(503, &[("retry-after", "7")], ""), false),
        (FakeAnswer::new(401, &[], ""), true),
        (FakeAnswer::refused(), true),
    ] {
        let host = FakeHost::new();
        host.serve(move |_| answer.clone());
        let failure = Failure::from(ask(&host, 3).unwrap_err());
        assert_eq!(failure.kind == FailureKind::Denied, denied, "{failure:?}");
        assert_eq!(host.requests().len(), 1, "{failure:?}");
    }
}
