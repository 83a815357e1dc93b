//! Waits in the host without computing anything: as many milliseconds as the Node's system uuid says, or else an hour.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(sleep);

fn sleep(nodes: &[NodeRef], _: Context) -> Lookup {
    let asked = nodes[0].system_uuid.as_deref().and_then(|text| text.parse().ok());
    std::thread::sleep(Duration::from_millis(asked.unwrap_or(3_600_000)));
    cloudwit_test_guests::all_run(nodes)
}
