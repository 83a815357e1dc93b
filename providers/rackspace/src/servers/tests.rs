use cloudwit_guest_sdk::testing::FakeAnswer;

use super::*;
use crate::testing::{answer, calls, file, host, provider};

/// Pages of two servers, whatever limit is requested, as mimic writes them.
fn pages(request: &cloudwit_guest_sdk::testing::SentRequest) -> FakeAnswer {
    match request.query("marker") {
        None => answer(file!("servers_page_1")),
        Some(_) => answer(file!("servers_page_2")),
    }
}

fn all(host: &cloudwit_guest_sdk::testing::FakeHost) -> Vec<Server> {
    let mut all = Vec::new();
    provider(host).servers(None, &mut |server| all.push(server)).unwrap();
    all
}

#[test]
fn all_pages_are_read() {
    let host = host(pages);
    let servers = all(&host);
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["node-1", "node-2", "node-3"]);
    let calls = calls(&host);
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!(calls[0], "GET servers/detail?limit=1000");
}

#[test]
fn only_the_clouds_own_denial_proves_absence() {
    let gone = host(|_| answer(file!("server_not_found")));
    assert_eq!(provider(&gone).server("nowhere"), Ok(None));
    for body in ["<html>no backend</html>", r#"{"error": "no such page"}"#] {
        let host = host(move |_| FakeAnswer::new(404, &[], body));
        let failure = provider(&host).server("x").unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable, "{body}");
    }
}

#[test]
fn a_server_that_cannot_be_read_costs_itself_alone() {
    let host = host(|_| {
        FakeAnswer::new(
            200,
            &[],
            r#"{"servers": [{"id": "a", "name": "n"}, {"id": "b", "name": "n", "status": "ACTIVE"}]}"#,
        )
    });
    let servers = all(&host);
    assert_eq!(servers.len(), 1);
    assert_eq!(servers[0].id, "b");
}
