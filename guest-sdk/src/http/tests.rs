//! Requests as they leave, and answers as they come back.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::Context;
use crate::keys::Encoding;
use crate::testing::{FakeHost, placeholder};
use crate::types::FailureKind;

fn client() -> Http {
    Context::new().http().base("https://cloud.test/api/")
}

#[test]
fn a_request_is_built_from_base_path_query_headers_and_body() {
    let host = FakeHost::new();
    host.secret("token", "t");
    host.expect("POST", "https://cloud.test/api/v1/things?name=a%20b&empty=")
        .with_header(
            "Authorization",
            &format!("Bearer {}", placeholder("token", Encoding::Plain)),
        )
        .with_header("x-one", "1")
        .with_header("content-type", "application/json")
        .with_json(json!({"size": 3}))
        .answers(201, json!({"id": "t-1"}));
    let answer = client()
        .bearer(&host.context().keys().placeholder("token").unwrap())
        .post("/v1/things")
        .query("name", "a b")
        .query("empty", "")
        .query_opt("none", None::<u32>)
        .header("x-one", "1")
        .json(&json!({"size": 3}))
        .send()
        .unwrap();
    assert_eq!(
        (answer.status, answer.header("Content-Type")),
        (201, Some("application/json"))
    );
    assert_eq!(answer.text(), r#"{"id":"t-1"}"#);
}

#[test]
fn a_whole_url_ignores_the_base() {
    let host = FakeHost::new();
    host.expect("GET", "http://other.test/x").answers(200, json!({}));
    client().get("http://other.test/x").send().unwrap();
}

#[test]
fn what_is_no_url_is_not_sent() {
    let _host = FakeHost::new();
    let failure = Context::new().http().get("/v1/things").send().unwrap_err();
    assert_eq!(
        failure,
        Failure::invalid("GET /v1/things: this is no http or https URL")
    );
}

#[test]
fn only_success_is_a_success_unless_requested_otherwise() {
    let host = FakeHost::new();
    let expect = |status| {
        host.expect("GET", "https://cloud.test/api/x")
            .answers(status, json!({"why": "so"}))
    };
    expect(404);
    assert!(matches!(
        client().get("/x").send(),
        Err(Failure {
            kind: FailureKind::NotFound,
            ..
        })
    ));
    expect(404);
    assert_eq!(client().get("/x").send_optional(), Ok(None));
    expect(500);
    assert!(matches!(
        client().get("/x").send_optional(),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
    expect(302);
    assert!(
        matches!(
            client().get("/x").send(),
            Err(Failure {
                kind: FailureKind::Other,
                ..
            })
        ),
        "redirects are not followed"
    );
    expect(500);
    assert_eq!(client().get("/x").send_any().unwrap().status, 500);
}

#[test]
fn no_answer_is_a_failure_that_gives_reason() {
    let host = FakeHost::new();
    let url = "https://cloud.test/api/x";
    host.expect("GET", url).breaks();
    let broken = client().get("/x").send().unwrap_err();
    assert_eq!(
        broken,
        Failure::unavailable("GET https://cloud.test/api/x: the connection broke")
    );
    host.expect("GET", url)
        .after(Duration::from_secs(6))
        .answers(200, json!({}));
    let late = client().timeout(Duration::from_secs(5)).get("/x").send().unwrap_err();
    assert_eq!(
        late,
        Failure::unavailable("GET https://cloud.test/api/x: no answer in time")
    );
    host.expect("GET", url).is_refused();
    let refused = client().get("/x").send().unwrap_err();
    assert!(
        matches!(&refused, Failure { kind: FailureKind::Denied, message: text, .. } if text.contains("log has the grant to add")),
        "{refused:?}"
    );
    host.expect("GET", url).answers_with(200, &[], "12345");
    let large = client().limit(4).get("/x").send().unwrap_err();
    assert_eq!(
        large,
        Failure::other("GET https://cloud.test/api/x: the answer is larger than 4 bytes")
    );
}

#[test]
fn the_query_is_not_in_texts_for_people() {
    let host = FakeHost::new();
    host.expect("GET", "https://cloud.test/api/x?signature=abc")
        .answers(403, json!({}));
    let failure = client().get("/x").query("signature", "abc").send().unwrap_err();
    assert!(!failure.message().contains("abc"), "{failure:?}");
}

#[test]
fn an_answer_of_another_shape_names_the_place() {
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Thing {
        sizes: Vec<u8>,
    }
    let host = FakeHost::new();
    let asked = |body: &str| {
        host.expect("GET", "https://cloud.test/api/x")
            .answers_with(200, &[], body);
        client().get("/x").send().unwrap().json::<Thing>().unwrap_err()
    };
    let wrong = asked(r#"{"sizes": [1, 2, "many"]}"#);
    assert!(
        wrong
            .message()
            .contains("sizes[2]: invalid type: string \"many\", expected u8"),
        "{wrong:?}"
    );
    let cut = asked(r#"{"sizes": [1"#);
    assert!(
        cut.message().contains("EOF while parsing a list at line 1 column 12"),
        "{cut:?}"
    );
}

#[test]
fn pages_are_collected_to_the_last() {
    let pages = [(vec![1, 2], Some("b")), (vec![], Some("c")), (vec![3], None)];
    let mut asked = Vec::new();
    let all = paginate(|token| {
        asked.push(token.map(str::to_owned));
        let (items, next) = pages[asked.len() - 1].clone();
        Ok((items, next.map(Into::into)))
    });
    assert_eq!(all, Ok(vec![1, 2, 3]));
    assert_eq!(asked, [None, Some("b".into()), Some("c".into())]);
}

#[test]
fn pages_that_do_not_end_are_a_failure() {
    let same = paginate(|_| Ok((vec![()], Some("again".into()))));
    assert!(matches!(
        same,
        Err(Failure {
            kind: FailureKind::Other,
            ..
        })
    ));
    let mut number = 0;
    let endless = paginate(|_| {
        number += 1;
        Ok((vec![()], Some(number.to_string())))
    });
    assert!(matches!(
        endless,
        Err(Failure {
            kind: FailureKind::Other,
            ..
        })
    ));
    let empty = paginate(|_| Ok((vec![7], Some(String::new()))));
    assert_eq!(empty, Ok(vec![7]), "an empty token is no token");
}
