use std::cell::Cell;

use cloudwit_guest_sdk::reconcile::Jobs;
use cloudwit_guest_sdk::testing::FakeAnswer;
use serde_json::json;

use super::*;
use crate::testing::{host, no_such, provider, refused, said};

#[derive(Debug, Deserialize, PartialEq)]
struct Item {
    id: u64,
}

#[test]
fn every_request_is_signed_ends_and_carries_no_secret() {
    let host = host(|command, _| said(command, json!({ "capability": { "cloudstackversion": "4.22.0.1" } })));
    assert_eq!(provider(&host).api.version(), Ok((4, 22)));
    let request = &host.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://cloud.test/client/api")
    );
    let field = |name: &str| request.field(name).unwrap();
    assert_eq!(field("expires"), "2026-11-23T10:43:20+0000");
    assert_eq!(
        (field("apiKey"), field("signatureVersion"), field("response")),
        ("K".into(), "3".into(), "json".into())
    );
    // HMAC-SHA1 by another program (Python's hmac) of the same parameters under "S".
    assert_eq!(field("signature"), "1EGEm/SvJBjBmPWVnxyyBQstNN0=");
    assert_eq!(provider(&host).api.version(), Ok((4, 22)));
    assert_eq!(host.requests().len(), 1, "the version is remembered");
}

#[test]
fn pages_end_with_the_count_or_a_short_page() {
    for (count, pages) in [(Some(1_000), 2), (None, 3), (Some(700), 2)] {
        let asked = Cell::new(0);
        let host = host(move |command, request| {
            asked.set(asked.get() + 1);
            assert_eq!(request.field("page"), Some(asked.get().to_string()));
            assert_eq!(request.field("projectid").as_deref(), Some("p-1"));
            let page: Vec<_> = match (asked.get(), count) {
                (3.., _) => Vec::new(),
                (2, Some(700)) => (500..700).map(|id| json!({ "id": id })).collect(),
                (page, _) => (0..500).map(|id| json!({ "id": (page - 1) * 500 + id })).collect(),
            };
            said(command, json!({ "count": count, "item": page }))
        });
        let api = provider(&host).api;
        let items: Vec<Item> = api.list(api.all("listItems"), "item").unwrap();
        assert_eq!(host.requests().len(), pages);
        assert!(items.iter().enumerate().all(|(at, item)| item.id as usize == at));
    }
}

#[test]
fn empty_list_without_array_is_fine_and_odd_item_is_not_absent() {
    let empty = host(|command, _| said(command, json!({})));
    assert_eq!(
        provider(&empty).api.list::<Item>(Call::new("listItems"), "item"),
        Ok(vec![])
    );
    drop(empty);
    let odd = host(|command, _| said(command, json!({ "count": 2, "item": [{ "id": "x" }, { "id": 7 }] })));
    let api = provider(&odd).api;
    let refused = api.list::<Item>(Call::new("listItems"), "item").unwrap_err();
    assert!(refused.message().contains("cannot be read"), "{refused:?}");
    let mut seen = Vec::new();
    api.each(Call::new("listItems"), "item", |item: Item| seen.push(item))
        .unwrap();
    assert_eq!(seen, [Item { id: 7 }], "a listing of all leaves it out");
}

#[test]
fn an_answer_that_has_no_list_is_not_an_empty_list() {
    for odd in [
        json!([]),
        json!("text"),
        json!(null),
        json!({ "item": {} }),
        json!({ "item": null }),
    ] {
        let answer = odd.clone();
        let host = host(move |command, _| said(command, answer.clone()));
        let listed = provider(&host).api.list::<Item>(Call::new("listItems"), "item");
        assert!(listed.is_err(), "{odd}: {listed:?}");
    }
}

#[test]
fn codes_and_words_decide_what_a_refusal_is() {
    let no_such = no_such("id", "7");
    let limit = "The given user has reached his/her account api limit, please retry after 1500 ms.";
    for (code, text, kind) in [
        (
            401,
            "unable to verify user credentials and/or request signature",
            FailureKind::Denied,
        ),
        (429, limit, FailureKind::RateLimited),
        (431, no_such.as_str(), FailureKind::NotFound),
        (431, "Invalid port", FailureKind::Invalid),
        (431, "VM one is already mapped to load balancer.", FailureKind::Conflict),
        (
            432,
            "The given command does not exist or it is not available for user",
            FailureKind::Denied,
        ),
        (530, "Internal error", FailureKind::Unavailable),
        (531, "Account is not allowed", FailureKind::Denied),
        (533, "Insufficient address capacity", FailureKind::Exhausted),
        (
            535,
            "Maximum number of resources of type 'public_ip' has been exceeded",
            FailureKind::Exhausted,
        ),
        (
            537,
            "The range specified conflicts with rule 7",
            FailureKind::AlreadyExists,
        ),
    ] {
        let text = text.to_owned();
        let cloud = {
            let text = text.clone();
            host(move |command, _| refused(command, code, &text))
        };
        let failure = provider(&cloud).api.send::<Value>(&Call::new("listItems")).unwrap_err();
        assert_eq!(failure.kind, kind, "{text}");
        assert_eq!(failure.code, Some(code.to_string()));
        assert!(
            failure.message.starts_with(&format!("listItems: {code}: {text}")),
            "{failure:?}"
        );
        assert_eq!(failure.retry_after, (code == 429).then_some(1500));
    }
}

#[test]
fn what_is_no_answer_of_cloudstack_denies_nothing() {
    for (status, body) in [
        (404, "<html>not found</html>"),
        (200, "hello"),
        (502, ""),
        (200, "[]"),
        (404, "{}"),
    ] {
        let cloud = host(move |_, _| FakeAnswer::new(status, &[], body));
        let failure = provider(&cloud).api.send::<Value>(&Call::new("listItems")).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable, "{status} {body}");
    }
}

#[test]
fn jobs_continue_end_fail_or_are_dropped() {
    let cloud = host(|command, request| match request.field("jobid").as_deref() {
        Some("goes-on") => said(command, json!({ "jobstatus": 0 })),
        Some("forgotten") => refused(command, 431, &no_such("jobid", "forgotten")),
        Some("failed") => {
            let result = json!({ "errorcode": 533, "errortext": "no address is free" });
            said(
                command,
                json!({ "jobstatus": 2, "jobresult": result, "cmd": "org.apache.AssociateIPAddrCmd" }),
            )
        }
        _ => said(command, json!({ "jobstatus": 1, "jobresult": { "success": true } })),
    });
    let looked = |ids: &[&str]| provider(&cloud).api.look(ids.iter().map(|id| (*id).into()).collect());
    let jobs = |running: &[&str], failed| {
        let running = running.iter().map(|id| (*id).into()).collect();
        Ok(Jobs { running, failed })
    };
    assert_eq!(looked(&["ended", "goes-on", "forgotten"]), jobs(&["goes-on"], false));
    let failed = looked(&["failed", "goes-on"]).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Exhausted);
    assert_eq!(failed.message, "AssociateIPAddrCmd: 533: no address is free");
    assert_eq!(looked(&["failed", "goes-on"]), jobs(&["goes-on"], true), "it was told");
}

#[test]
fn a_change_gives_its_job_as_text_or_number() {
    for (job, id) in [
        (json!("j-1"), Some("j-1")),
        (json!(17), Some("17")),
        (json!(null), None),
    ] {
        let cloud = host(move |command, _| said(command, json!({ "jobid": job, "id": "x" })));
        let begun = provider(&cloud).api.begin(&Call::new("createTags"));
        assert_eq!(begun, Ok(id.map(str::to_owned)));
    }
}
