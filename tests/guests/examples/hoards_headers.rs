//! Keeps ever more HTTP headers in handles, and no memory of its own.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};
use wasip2::http::types::Fields;

misbehaves!(hoard);

fn hoard(_: &[NodeRef], _: Context) -> Lookup {
    let value = vec![b'a'; 30 << 10];
    let mut hoard = Vec::new();
    // Fewer than the handles that a call may have.
    while hoard.len() < 1900 {
        let fields = Fields::new();
        if fields.append("x-hoard", &value).is_err() {
            // Denied: what is left is to be ended.
            while std::hint::black_box(hoard.len()) > 0 {}
        }
        hoard.push(fields);
    }
    Err(Failure::other(format!("got {} maps of headers", hoard.len())))
}
