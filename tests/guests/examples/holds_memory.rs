//! Has as many mebibytes as the Node's provider id says, and sleeps as many milliseconds as its system uuid says.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(hold);

fn hold(nodes: &[NodeRef], _: Context) -> Lookup {
    let number = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let size = usize::try_from(number(&nodes[0].provider_id)).unwrap_or(0) << 20;
    let held = std::hint::black_box(vec![1_u8; size]);
    std::thread::sleep(Duration::from_millis(number(&nodes[0].system_uuid)));
    drop(std::hint::black_box(held));
    cloudwit_test_guests::all_run(nodes)
}
