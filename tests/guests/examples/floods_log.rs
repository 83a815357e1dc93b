//! Writes 20,000 log lines, eight of 2 MB, some of them below the level that is printed, and 8 MiB to standard error, then panics.

use cloudwit_guest_sdk::log::Level;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(flood);

fn flood(_: &[NodeRef], _: Context) -> Lookup {
    for number in 0..20_000 {
        cloudwit_guest_sdk::info!(number = number, "one more line");
    }
    // What a redactor has most to do with: a secret's beginning, over and over.
    let long = "canary-".repeat(2_000_000 / 7);
    for _ in 0..4 {
        cloudwit_guest_sdk::info!(field = long, "{long}");
        // Not by the macro, which asks first whether the line would be seen.
        cloudwit_guest_sdk::log::write(Level::Trace, long.clone(), &[("field", &long)]);
    }
    let line = "x".repeat(1023);
    for _ in 0..8192 {
        eprintln!("{line}");
    }
    panic!("drowned")
}
