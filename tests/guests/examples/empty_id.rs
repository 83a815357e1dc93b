//! Gives a machine an empty provider id.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(forget_id);

fn forget_id(nodes: &[NodeRef], _: Context) -> Lookup {
    Ok(nodes.iter().map(|_| Ok(Presence::Running(Instance::new("")))).collect())
}
