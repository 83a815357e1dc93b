//! Panics, and says why on standard error as Rust does.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(panic_about);

fn panic_about(nodes: &[NodeRef], _: Context) -> Lookup {
    panic!("no idea what to do with {:?}", nodes[0].name)
}
