use std::cell::Cell;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::json;

use super::*;
use crate::Photon;

fn host(more: &str, cloud: impl FnMut(&SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(format!(
        "[Global]\ntarget = https://photon.test\ntenant = t\nproject = p\n{more}"
    ));
    host.now(1_795_430_000).secret("password", "S").serve(cloud);
    host
}

fn paths(host: &FakeHost) -> Vec<String> {
    let requests = host.requests().into_iter();
    requests
        .map(|request| request.url.replace("https://photon.test", ""))
        .collect()
}

#[test]
fn tenant_and_project_resolve_by_name_and_machines_page() {
    let host = host("", |request| {
        match request.url.trim_start_matches("https://photon.test/v1") {
            "/tenants?name=t" => FakeAnswer::json(
                200,
                &json!({ "items": [{ "id": "9", "name": "tt" }, { "id": "1", "name": "t" }] }),
            ),
            "/tenants/1/projects?name=p" => FakeAnswer::json(200, &json!({ "items": [{ "id": "2", "name": "p" }] })),
            "/projects/2/vms" => FakeAnswer::json(
                200,
                &json!({ "items": [1], "nextPageLink": "/v1/projects/2/vms?pageLink=x" }),
            ),
            "/projects/2/vms?pageLink=x" => FakeAnswer::json(
                200,
                &json!({ "items": [2], "nextPageLink": "https://photon.test/v1/projects/2/vms?pageLink=y" }),
            ),
            _ => FakeAnswer::json(200, &json!({ "items": [3], "nextPageLink": "" })),
        }
    });
    let api = host.provider::<Photon>().api;
    assert_eq!(api.machines(), Ok(vec![json!(1), json!(2), json!(3)]));
    assert_eq!(api.machines().map(|found| found.len()), Ok(3));
    let pages = [
        "/v1/projects/2/vms",
        "/v1/projects/2/vms?pageLink=x",
        "/v1/projects/2/vms?pageLink=y",
    ];
    let expected = [
        &["/v1/tenants?name=t", "/v1/tenants/1/projects?name=p"][..],
        &pages,
        &pages,
    ]
    .concat();
    assert_eq!(paths(&host), expected);
}

#[test]
fn list_that_continues_elsewhere_is_a_failure() {
    for link in [
        "https://elsewhere.test/v1",
        "https://photon.test.evil/v1",
        "v1/projects",
    ] {
        let host = host("", move |request| match request.url.contains("/vms") {
            true => FakeAnswer::json(200, &json!({ "items": [1], "nextPageLink": link })),
            false => FakeAnswer::json(
                200,
                &json!({ "items": [{ "id": "1", "name": "t" }, { "id": "2", "name": "p" }] }),
            ),
        });
        let failure = host.provider::<Photon>().api.machines().unwrap_err();
        assert!(failure.message.contains(link), "{failure:?}");
    }
}

#[test]
fn a_project_without_a_tenant_is_an_id() {
    for (status, answer, expected) in [
        (
            200,
            json!({ "id": "8a-5b", "name": "p", "kind": "project" }),
            Ok("8a-5b".to_owned()),
        ),
        (
            404,
            json!({ "code": "ProjectNotFound", "message": "no" }),
            Err(FailureKind::Invalid),
        ),
        (500, json!({}), Err(FailureKind::Unavailable)),
    ] {
        let host = FakeHost::new();
        host.config("[Global]\ntarget = https://photon.test\nproject = 8a-5b\n");
        host.serve(move |_| FakeAnswer::json(status, &answer));
        let found = host.provider::<Photon>().api.project();
        assert_eq!(found.map_err(|failure| failure.kind), expected, "{status}");
        assert_eq!(paths(&host), ["/v1/projects/8a-5b"]);
    }
}

#[test]
fn a_project_that_is_not_there_is_named() {
    let host = host("", |_| FakeAnswer::json(200, &json!({ "items": [] })));
    let failure = host.provider::<Photon>().api.machines().unwrap_err();
    assert!(
        failure.kind == FailureKind::Invalid && failure.message.contains("tenant t"),
        "{failure:?}"
    );
}

#[test]
fn a_task_is_gone_on_with_in_the_next_call() {
    let looks = Cell::new(0);
    let host = host("api-root = /\n", move |request| {
        if request.url.contains("/tasks/") {
            looks.set(looks.get() + 1);
        }
        match looks.get() {
            0..4 => FakeAnswer::json(200, &json!({ "id": "7", "state": "STARTED" })),
            _ => FakeAnswer::json(
                200,
                &json!({ "id": "7", "state": "COMPLETED", "resourceProperties": { "networkConnections": [{ "ipAddress": "-" }] } }),
            ),
        }
    });
    let connections = || host.provider::<Photon>().api.connections("vm");
    assert_eq!(connections().unwrap_err().kind, FailureKind::Unavailable);
    // Addresses are synced every five minutes.
    host.now(1_795_430_000 + 300);
    assert_eq!(connections(), Ok(vec![json!({ "ipAddress": "-" })]));
    host.now(1_795_430_000 + 300 + 200);
    assert_eq!(connections(), Ok(vec![json!({ "ipAddress": "-" })]));
    assert_eq!(
        paths(&host),
        ["/vms/vm/networks", "/tasks/7", "/tasks/7", "/tasks/7", "/tasks/7"]
    );
}

#[test]
fn a_task_that_the_cloud_forgot_is_begun_anew() {
    let host = host("", |request| match request.url.contains("/tasks/") {
        true => FakeAnswer::json(404, &json!({ "code": "TaskNotFound", "message": "no" })),
        false => FakeAnswer::json(200, &json!({ "id": "7", "state": "STARTED" })),
    });
    let api = host.provider::<Photon>().api;
    host.context().state().put("task/vm", "6", TASK_KEPT);
    for _ in 0..2 {
        assert_eq!(api.connections("vm").unwrap_err().kind, FailureKind::Unavailable);
    }
    assert_eq!(paths(&host), ["/v1/tasks/6", "/v1/vms/vm/subnets", "/v1/tasks/7"]);
}

#[test]
fn a_task_that_failed_is_begun_anew() {
    let host = host("", |_| {
        FakeAnswer::json(200, &json!({ "id": "7", "state": "ERROR", "steps": [] }))
    });
    let api = host.provider::<Photon>().api;
    for _ in 0..2 {
        assert_eq!(api.connections("vm").unwrap_err().kind, FailureKind::Unavailable);
    }
    assert_eq!(paths(&host), ["/v1/vms/vm/subnets", "/v1/vms/vm/subnets"]);
}

#[test]
fn a_token_of_lightwave_is_replaced_when_it_is_refused() {
    let tokens = Cell::new(0);
    let host = host(
        "lightwave = https://lw.test/\nusername = me@photon.local\n",
        move |request| {
            if request.url == "https://lw.test/openidconnect/token" {
                tokens.set(tokens.get() + 1);
                return FakeAnswer::json(
                    200,
                    &json!({ "access_token": format!("t{}", tokens.get()), "expires_in": 7200 }),
                );
            }
            match request.header("authorization") {
                Some("Bearer t2") => FakeAnswer::json(200, &json!({ "id": "1" })),
                _ => FakeAnswer::json(401, &json!({ "code": "ExpiredAuthToken", "message": "expired" })),
            }
        },
    );
    let api = host.provider::<Photon>().api;
    assert_eq!(api.machine::<Value>("1"), Ok(Some(json!({ "id": "1" }))));
    let sent = host.requests();
    assert_eq!((sent.len(), sent[0].field("scope").as_deref()), (4, Some(SCOPE)));
    let placeholder = cloudwit_guest_sdk::testing::placeholder("password", Encoding::Form);
    assert_eq!(sent[0].field("password"), Some(placeholder));
}

#[test]
fn only_the_clouds_own_word_is_that_there_is_no_machine() {
    for (status, body, expected) in [
        (404, r#"{"code": "VmNotFound", "message": "no"}"#, Ok(None)),
        (
            404,
            r#"{"code": "NotFound", "message": "no"}"#,
            Err(FailureKind::Unavailable),
        ),
        (404, "<html>not found</html>", Err(FailureKind::Unavailable)),
        (200, "<html>login</html>", Err(FailureKind::Other)),
        (
            400,
            r#"{"code": "ConcurrentTask", "message": "busy"}"#,
            Err(FailureKind::Conflict),
        ),
        (400, r#"{"code": "StateError"}"#, Err(FailureKind::FailedPrecondition)),
        (403, r#"{"code": "SystemPaused"}"#, Err(FailureKind::Unavailable)),
        (400, r#"{"code": "InvalidEntity"}"#, Err(FailureKind::Invalid)),
        (403, "", Err(FailureKind::Denied)),
        (500, "", Err(FailureKind::Unavailable)),
        (429, "", Err(FailureKind::RateLimited)),
    ] {
        let host = host("", move |_| FakeAnswer::new(status, &[], body));
        let found = host.provider::<Photon>().api.machine::<Value>("1");
        assert_eq!(found.map_err(|failure| failure.kind), expected, "{status} {body}");
    }
    let wrong = host("lightwave = https://lw.test\nusername = me\n", |_| {
        FakeAnswer::json(400, &json!({ "error": "invalid_grant" }))
    });
    let failure = wrong.provider::<Photon>().api.machine::<Value>("1").unwrap_err();
    assert!(
        failure.kind == FailureKind::Denied && failure.message.contains("invalid_grant"),
        "{failure:?}"
    );
}
