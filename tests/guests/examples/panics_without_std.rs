//! Panics without std, whose hook would write the text: here the SDK logs it.

#![cfg_attr(target_family = "wasm", no_std)]

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(panic_about);
cloudwit_guest_sdk::without_std!();

fn panic_about(nodes: &[NodeRef], _: Context) -> Lookup {
    panic!("no idea what to do with {:?}", nodes[0].name)
}
