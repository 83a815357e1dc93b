//! Sends one request and answers with what came back. The names of the Nodes say which: `METHOD: URL`, `body: text` and, for headers,
//! `name: value`. A Node called `strict` wants a success: anything else becomes the failure that the SDK makes of it.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(fetch);

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

fn fetch(nodes: &[NodeRef], context: Context) -> Lookup {
    let said: Vec<(&str, &str)> = nodes.iter().filter_map(|node| node.name.split_once(": ")).collect();
    let method_and_url = said
        .iter()
        .find_map(|(name, url)| Some((METHODS.into_iter().find(|method| method == name)?, *url)));
    let Some((method, url)) = method_and_url else {
        return Err(Failure::invalid("no Node is called METHOD: URL"));
    };
    let mut request = context.http().request(method, url);
    for (name, value) in said {
        request = match name {
            "body" => request.body("text/plain", value.as_bytes()),
            name if name == method => request,
            name => request.header(name.to_owned(), value),
        };
    }
    let strict = nodes.iter().any(|node| node.name == "strict");
    let response = if strict { request.send()? } else { request.send_any()? };
    let body = String::from_utf8_lossy(&response.body);
    Err(Failure::other(format!("{} {body}", response.status)))
}
