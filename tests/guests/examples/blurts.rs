//! Was given a secret and says it wherever something can be said.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::warn;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(blurt);

fn blurt(nodes: &[NodeRef], context: Context) -> Lookup {
    let secret = context
        .keys()
        .reveal("token")
        .map(|secret| secret.to_vec())
        .unwrap_or_default();
    let secret = String::from_utf8_lossy(&secret).into_owned();
    println!("out {secret}");
    eprintln!("err {secret}");
    warn!(secret = secret, "the log says {secret}");
    context.node_event(
        &nodes[0].name,
        EventKind::Warning,
        "Blurted",
        &format!("it is {secret}"),
    );
    // A reason of letters and digits, as it has to be.
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    context.node_event(&nodes[0].name, EventKind::Warning, &hex, "with a secret for a reason");
    panic!("it is {secret}")
}
