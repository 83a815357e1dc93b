//! Answers with 20 MB of text.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(blather);

fn blather(_: &[NodeRef], _: Context) -> Lookup {
    Err(Failure::other("x".repeat(20_000_000)))
}
