//! Sends one request and answers with what came back: the Node's provider id is `METHOD URL`, its system UUID the body, and the names
//! of further Nodes are `header: value`.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(fetch);

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

fn fetch(nodes: &[NodeRef], context: Context) -> Lookup {
    let (method, url) = nodes[0]
        .provider_id
        .as_deref()
        .and_then(|text| text.split_once(' '))
        .unwrap_or_default();
    let Some(method) = METHODS.into_iter().find(|known| *known == method) else {
        return Err(Failure::invalid("the provider id is not METHOD URL"));
    };
    let mut request = context.http().request(method, url);
    for (name, value) in nodes[1..].iter().filter_map(|node| node.name.split_once(": ")) {
        request = request.header(name.to_owned(), value);
    }
    if let Some(body) = &nodes[0].system_uuid {
        request = request.body("text/plain", body.as_bytes());
    }
    let response = request.send_any()?;
    Err(Failure::other(format!(
        "{} {}",
        response.status,
        String::from_utf8_lossy(&response.body)
    )))
}
