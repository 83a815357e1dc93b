//! Wants ever more memory.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(grow);

fn grow(_: &[NodeRef], _: Context) -> Lookup {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    while std::hint::black_box(hoard.len()) < 1 << 20 {
        hoard.push(vec![1; 1 << 20]);
    }
    Err(Failure::other(format!("got {} MiB", hoard.len())))
}
