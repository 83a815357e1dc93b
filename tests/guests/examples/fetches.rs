//! Sends one request and answers with what came back. The names of the Nodes say which: `METHOD: URL`, `body: text` and, for headers,
//! `name: value`. A Node called `strict` wants a success: anything else becomes the failure that the SDK makes of it.
//!
//! `<NAME>`, `<NAME|json>` (`base64`, `form`, `xml`) and `<USER:PASSWORD>` in URL, body and headers are replaced by placeholders.

use cloudwit_guest_sdk::keys::Keys;
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
    let keys = context.keys();
    let mut request = context.http().request(method, &with_placeholders(url, keys)?);
    for (name, value) in said {
        let value = with_placeholders(value, keys)?;
        request = match name {
            "body" => request.body("text/plain", value),
            name if name == method => request,
            name => request.header(name.to_owned(), value),
        };
    }
    let strict = nodes.iter().any(|node| node.name == "strict");
    let response = if strict { request.send()? } else { request.send_any()? };
    let body = String::from_utf8_lossy(&response.body);
    Err(Failure::other(format!("{} {body}", response.status)))
}

fn with_placeholders(text: &str, keys: Keys) -> Result<String, Failure> {
    let Some((before, rest)) = text.split_once('<') else {
        return Ok(text.to_owned());
    };
    let (mark, rest) = rest.split_once('>').unwrap_or((rest, ""));
    let placeholder = match (mark.split_once(':'), mark.split_once('|')) {
        (Some((user, password)), _) => keys.basic(user, password)?,
        (None, Some((name, "base64"))) => keys.placeholder_as(name, Encoding::Base64)?,
        (None, Some((name, "json"))) => keys.placeholder_as(name, Encoding::Json)?,
        (None, Some((name, "form"))) => keys.placeholder_as(name, Encoding::Form)?,
        (None, Some((name, _))) => keys.placeholder_as(name, Encoding::Xml)?,
        (None, None) => keys.placeholder(mark)?,
    };
    Ok(format!("{before}{placeholder}{}", with_placeholders(rest, keys)?))
}
