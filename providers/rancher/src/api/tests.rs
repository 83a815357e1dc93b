use std::cell::Cell;

use cloudwit_guest_sdk::testing::{FakeAnswer, basic};
use serde_json::json;

use super::*;
use crate::testing::{collection, host, names, provider, refused};

#[derive(Debug, PartialEq, Deserialize)]
struct Item {
    id: u32,
}

fn list(api: &Api) -> Result<Vec<Item>, Failure> {
    api.list(STACKS, &[("name", "a b")])
}

#[test]
fn keys_are_filled_in_by_the_host() {
    let host = host(|_, _| collection("stack", &[]));
    assert_eq!(list(&provider(&host).api), Ok(vec![]));
    let request = &host.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some(basic("access-key", "secret-key").as_str())
    );
    assert_eq!(
        request.url,
        "https://rancher.test/v2-beta/projects/1a5/stacks?limit=500&removed_null=1&name=a%20b"
    );
}

#[test]
fn pages_go_on_at_the_query_of_their_links() {
    // Rancher takes itself for another host, without TLS.
    let next = |page: usize| format!("http://10.0.0.1:8080/v2-beta/projects/1a5/stacks?limit=500&marker=m{page}");
    let asked = Cell::new(0);
    let host = host(move |_, request| {
        asked.set(asked.get() + 1);
        let marker = (asked.get() > 1).then(|| format!("m{}", asked.get()));
        assert_eq!(request.query("marker"), marker);
        let next = (asked.get() < 3).then(|| next(asked.get() + 1));
        let pages = json!({ "next": next, "partial": next.is_some() });
        let data = [json!({ "id": asked.get() })];
        FakeAnswer::json(
            200,
            &json!({ "type": "collection", "resourceType": "stack", "data": data, "pagination": pages }),
        )
    });
    let items = list(&provider(&host).api).unwrap();
    assert_eq!(items.iter().map(|item| item.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(names(&host), ["GET /stacks"; 3]);
}

#[test]
fn what_is_no_whole_list_is_no_empty_list() {
    let pages =
        |pages: Value| json!({ "type": "collection", "resourceType": "stack", "data": [], "pagination": pages });
    for odd in [
        json!({}),
        json!([]),
        json!({ "type": "collection", "resourceType": "host", "data": [] }),
        json!({ "type": "project", "resourceType": "stack", "data": [] }),
        json!({ "type": "collection", "resourceType": "stack" }),
        json!({ "type": "collection", "resourceType": "stack", "data": [{ "id": "x" }] }),
        pages(json!({ "partial": true })),
        pages(json!({ "next": "https://rancher.test/more" })),
        pages(json!({ "next": "https://rancher.test/stacks?marker=m1" })),
    ] {
        let answer = odd.clone();
        let host = host(move |_, _| FakeAnswer::json(200, &answer));
        assert!(list(&provider(&host).api).is_err(), "{odd}");
    }
}

#[test]
fn codes_and_statuses_decide_what_a_refusal_is() {
    for (status, code, kind) in [
        (401, "Unauthorized", FailureKind::Denied),
        (403, "Forbidden", FailureKind::Denied),
        (409, "Conflict", FailureKind::Conflict),
        (422, "NotUnique", FailureKind::AlreadyExists),
        (422, "InvalidReference", FailureKind::Conflict),
        (422, "InvalidState", FailureKind::FailedPrecondition),
        (422, "InvalidOption", FailureKind::Invalid),
        (429, "TooMany", FailureKind::RateLimited),
        (500, "ServerError", FailureKind::Unavailable),
        // The environment, and no stack.
        (404, "NotFound", FailureKind::Unavailable),
    ] {
        let host = host(move |_, _| refused(status, code));
        let failure = list(&provider(&host).api).unwrap_err();
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(
            failure.message.contains(code) && failure.message.contains("no"),
            "{failure:?}"
        );
    }
}

#[test]
fn a_404_of_a_proxy_is_none_of_a_resource() {
    for (status, body, kind) in [
        (404, "<html>not found</html>", FailureKind::Unavailable),
        (404, "", FailureKind::Unavailable),
        (404, r#"{"status": 404}"#, FailureKind::Unavailable),
        (200, "<html>login</html>", FailureKind::Other),
        (302, "", FailureKind::Other),
        (503, "", FailureKind::Unavailable),
    ] {
        let host = host(move |_, _| FakeAnswer::new(status, &[], body));
        assert_eq!(list(&provider(&host).api).unwrap_err().kind, kind, "{status} {body}");
        let deleted = provider(&host).api.send(&Call::delete(STACKS, "1st1"));
        assert!(
            deleted.is_ok() == (status == 200) && !deleted.is_err_and(|failure| failure.is_not_found()),
            "{status}"
        );
    }
    let own = host(|_, _| refused(404, "NotFound"));
    let deleted = provider(&own).api.send(&Call::delete(STACKS, "1st1"));
    assert!(deleted.is_err_and(|failure| failure.is_not_found()));
}
