//! Sends a request to the URL it finds in the place of a provider id.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(call);

fn call(nodes: &[NodeRef], context: Context) -> Lookup {
    let url = nodes[0].provider_id.as_deref().unwrap_or_default();
    let response = context.http().get(url).send_any()?;
    Err(Failure::other(format!("got through: status {}", response.status)))
}
