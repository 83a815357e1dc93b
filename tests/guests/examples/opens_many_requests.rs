//! Sends many requests at once and reads no response. The provider id is the URL, the system uuid how many; waits for the heads of all of them, and
//! then says how many came.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

misbehaves!(open);

fn open(nodes: &[NodeRef], _: Context) -> Lookup {
    let url = nodes[0].provider_id.as_deref().unwrap_or_default();
    let (authority, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(|| Failure::invalid("no URL"))?;
    let asked = nodes[0].system_uuid.as_deref().and_then(|text| text.parse().ok());
    let begun: Vec<_> = (0..asked.unwrap_or(1))
        .map(|_| {
            let request = OutgoingRequest::new(Fields::new());
            let _ = request.set_scheme(Some(&Scheme::Http));
            let _ = request.set_authority(Some(authority));
            let _ = request.set_path_with_query(Some(&format!("/{path}")));
            handle(request, None)
        })
        .collect();
    let mut unread = Vec::new();
    for future in begun.iter().flatten() {
        future.subscribe().block();
        if let Some(Ok(Ok(response))) = future.get() {
            unread.push(response);
        }
    }
    Err(Failure::other(format!("{} responses of {}", unread.len(), begun.len())))
}
