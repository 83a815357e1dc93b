//! Tries to get the secret `password` into a request where it does not belong. The names of the Nodes say how: `PUT: url`, and
//!
//! - `decode: TEXT`: sends the text of the cluster, with percent codes and JSON escapes decoded;
//! - `times: N`: sends so many placeholders;
//! - `keep: yes`: sends the placeholder that an earlier call kept.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_test_guests::{Lookup, misbehaves};
use percent_encoding::percent_decode_str;

misbehaves!(abuse);

fn abuse(nodes: &[NodeRef], context: Context) -> Lookup {
    let said = |key: &str| {
        let mut pairs = nodes.iter().filter_map(|node| node.name.split_once(": "));
        pairs.find_map(|(name, value)| (name == key).then_some(value))
    };
    let body = if let Some(text) = said("decode") {
        decoded(text)
    } else if let Some(times) = said("times") {
        let placeholder = context.keys().placeholder("password")?;
        placeholder.as_str().repeat(times.parse().unwrap_or(1))
    } else {
        let state = context.state();
        let kept = state.get::<String>("kept").map(|kept| kept.value);
        let fresh = context.keys().placeholder("password")?;
        state.put("kept", fresh.as_str(), Keep::WHILE_LOADED);
        kept.unwrap_or_else(|| "nothing was kept".into())
    };
    let url = said("PUT").unwrap_or_default();
    let response = context.http().put(url).body("text/plain", body).send_any()?;
    let answer = String::from_utf8_lossy(&response.body);
    Err(Failure::other(format!("{} {answer}", response.status)))
}

fn decoded(text: &str) -> String {
    let plain = percent_decode_str(text).decode_utf8_lossy();
    serde_json::from_str(&format!("\"{plain}\"")).unwrap_or(plain.into_owned())
}
