//! Calls itself without end: with little on the stack, which uses up the host's stack for the guest, or, at a Node
//! with a system uuid, with much, which uses up the stack that Rust keeps in the guest's own memory.

use std::hint::black_box;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(recurse);

fn recurse(nodes: &[NodeRef], _: Context) -> Lookup {
    let depth = if nodes[0].system_uuid.is_some() {
        wide(0)
    } else {
        narrow(0)
    };
    Err(Failure::other(depth.to_string()))
}

fn narrow(depth: u64) -> u64 {
    if black_box(depth) == u64::MAX {
        depth
    } else {
        narrow(depth + 1) + 1
    }
}

fn wide(depth: u64) -> u64 {
    let room = black_box([depth; 1024]);
    if room[0] == u64::MAX {
        depth
    } else {
        wide(depth + 1) + room[1023]
    }
}
