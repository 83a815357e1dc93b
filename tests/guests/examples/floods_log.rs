//! Writes 20,000 log lines and 8 MiB to standard error, then panics.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(flood);

fn flood(_: &[NodeRef], _: Context) -> Lookup {
    for number in 0..20_000 {
        cloudwit_guest_sdk::info!(number = number, "one more line");
    }
    let line = "x".repeat(1023);
    for _ in 0..8192 {
        eprintln!("{line}");
    }
    panic!("drowned")
}
