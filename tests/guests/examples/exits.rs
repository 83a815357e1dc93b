//! Ends its process, as a command-line tool would.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(exit);

fn exit(_: &[NodeRef], _: Context) -> Lookup {
    println!("cannot go on");
    std::process::exit(3)
}
