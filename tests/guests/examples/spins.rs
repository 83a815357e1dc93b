//! Computes for ever without asking the host for anything.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(spin);

fn spin(nodes: &[NodeRef], _: Context) -> Lookup {
    let mut turns: u64 = 0;
    while std::hint::black_box(turns) < u64::MAX {
        turns += 1;
    }
    Err(Failure::other(format!("{turns} turns for {} nodes", nodes.len())))
}
