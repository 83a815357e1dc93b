//! Sends Events about its own Node, about another one, about no object at all, and far too many.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(send);

fn send(nodes: &[NodeRef], context: Context) -> Lookup {
    context.node_event(
        "somebody-else",
        EventKind::Warning,
        "Forged",
        "about a Node of another call",
    );
    context.service_event(EventKind::Warning, "Forged", "about no Service");
    context.node_event(&nodes[0].name, EventKind::Warning, "not a reason", "with a bad reason");
    for number in 0..1000 {
        context.node_event(
            &nodes[0].name,
            EventKind::Normal,
            "Counted",
            &format!("number {number}"),
        );
    }
    cloudwit_test_guests::all_run(nodes)
}
