//! Gives a machine an address that is none.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(misaddress);

fn misaddress(nodes: &[NodeRef], _: Context) -> Lookup {
    let mut machine = cloudwit_test_guests::machine(&nodes[0].name);
    machine
        .addresses
        .push(Address::new(AddressKind::ExternalIp, "203.0.113.300"));
    Ok(vec![Ok(Presence::Stopped(machine))])
}
