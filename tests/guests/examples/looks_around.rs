//! Looks for files, environment, arguments and sockets, and says what it found.

use std::net::TcpStream;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(look);

fn look(_: &[NodeRef], _: Context) -> Lookup {
    let found = [
        format!("files: {:?}", std::fs::read_dir("/").map(Iterator::count).ok()),
        format!("passwd: {:?}", std::fs::read("/etc/passwd").map(|text| text.len()).ok()),
        format!("arguments: {}", std::env::args().count()),
        format!("environment: {}", std::env::vars().count()),
        format!("socket: {}", TcpStream::connect("127.0.0.1:22").is_ok()),
    ];
    Err(Failure::other(found.join(", ")))
}
