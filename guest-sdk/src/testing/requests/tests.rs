//! The fake's errors for requests that are not as expected.

use serde_json::json;

use super::*;
use crate::form::Form;
use crate::types::{Failure, FailureKind};

fn post(host: &FakeHost, form: &Form) {
    let _ = host.context().http().post("https://lab.test/").form(form).send();
}

#[test]
fn a_form_is_compared_field_by_field() {
    let host = FakeHost::new();
    let form = Form::new().field("a", "1 + 1 = 2").field("b", "%\u{e9}");
    host.expect("POST", "https://lab.test/")
        .with_form(&[("b", "%\u{e9}"), ("a", "1 + 1 = 2")])
        .answers(200, json!({}));
    post(&host, &form);
    host.expect("POST", "https://lab.test/")
        .with_fields(&[("b", "%\u{e9}")])
        .answers(200, json!({}));
    post(&host, &form);
    assert_eq!(host.requests()[1].field("a").as_deref(), Some("1 + 1 = 2"));
    assert_eq!(host.requests()[1].field("c"), None);
}

#[test]
#[should_panic(expected = "fields are missing: [(\"b\", \"2\")]")]
fn a_missing_field_is_named() {
    let host = FakeHost::new();
    host.expect("POST", "https://lab.test/")
        .with_fields(&[("a", "1"), ("b", "2")])
        .breaks();
    post(&host, &Form::new().field("a", "1"));
}

#[test]
#[should_panic(expected = "fields too many: [(\"b\", \"2\")]")]
fn a_field_too_many_is_named() {
    let host = FakeHost::new();
    host.expect("POST", "https://lab.test/")
        .with_form(&[("a", "1")])
        .breaks();
    post(&host, &Form::new().field("a", "1").field("b", "2"));
}

#[test]
#[should_panic(expected = "unexpected body")]
fn another_text_is_shown() {
    let host = FakeHost::new();
    host.expect("POST", "https://lab.test/").with_text("a=2").breaks();
    post(&host, &Form::new().field("a", "1"));
}

#[test]
#[should_panic(expected = "header x is None, expected \"1\"")]
fn a_missing_header_is_named() {
    let host = FakeHost::new();
    host.expect("POST", "https://lab.test/").with_header("x", "1").breaks();
    post(&host, &Form::new());
}

#[test]
fn a_server_of_the_tests_own_answers_what_is_not_expected() {
    let host = FakeHost::new();
    let mut pages = 0;
    host.serve(move |request| {
        pages += 1;
        FakeAnswer::json(200, &json!({"page": pages, "after": request.query("after")}))
    });
    host.expect("GET", "https://lab.test/list")
        .answers(200, json!({"page": 0}));
    let http = host.context().http();
    let get = |target: &str| http.get(target).send().unwrap().json::<Value>().unwrap();
    assert_eq!(
        get("https://lab.test/list"),
        json!({"page": 0}),
        "what is expected comes first"
    );
    assert_eq!(
        get("https://lab.test/list?after=a%20b"),
        json!({"page": 1, "after": "a b"})
    );
    assert_eq!(get("https://lab.test/list"), json!({"page": 2, "after": null}));
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn headers_of_answers_come_with_them() {
    let host = FakeHost::new();
    let headers = [
        ("Set-Cookie", "other=1; Path=/"),
        ("set-cookie", "vmware_soap_session=\"abc=\"; Path=/; HttpOnly"),
        ("X-Subject-Token", "t"),
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    host.expect("GET", "https://lab.test/").answers_with(200, &headers, "");
    let response = host.context().http().get("https://lab.test/").send().unwrap();
    assert_eq!(response.header("x-subject-token"), Some("t"));
    assert_eq!(response.cookie("vmware_soap_session"), Some("\"abc=\""));
    assert_eq!((response.cookie("other"), response.cookie("path")), (Some("1"), None));
    assert_eq!(response.date(), Some(784_111_777));
}

#[test]
fn refused_and_broken_requests_are_what_they_are_in_a_component() {
    let host = FakeHost::new();
    let get = || host.context().http().get("https://lab.test/").send();
    host.expect("GET", "https://lab.test/").is_refused();
    assert!(matches!(
        get(),
        Err(Failure {
            kind: FailureKind::Denied,
            ..
        })
    ));
    host.expect("GET", "https://lab.test/").breaks();
    assert!(matches!(
        get(),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    host.expect("GET", "https://lab.test/")
        .after(Duration::from_secs(31))
        .answers(200, json!({}));
    assert!(matches!(
        get(),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
}

#[test]
fn lines_on_how_a_file_was_recorded_are_taken_off() {
    assert_eq!(recorded("# from a\n# by b\n<a>\n# c</a>\n"), "<a>\n# c</a>\n");
    assert_eq!(recorded("{}"), "{}");
}

#[test]
fn entries_of_the_state_end_with_their_time() {
    use crate::state::Keep;
    let host = FakeHost::new();
    let state = host.now(100).context().state();
    state.put("k", &1, Keep::at_most(Duration::from_secs(5)));
    host.now(104);
    assert!(state.get::<u32>("k").is_some());
    host.now(105);
    assert!(state.get::<u32>("k").is_none());
    assert!(
        state.compare_and_swap("k", None, &2, Keep::WHILE_LOADED).is_ok(),
        "what is over is as good as none"
    );
}
