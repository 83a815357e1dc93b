//! A good provider that exports `instances` and nothing besides `info`. At the trigger it answers one of everything.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(one_of_everything);

/// The answers in this order, as many as there are Nodes: running with all fields, stopped, absent by id, absent by
/// name, each failure.
fn one_of_everything(nodes: &[NodeRef], _: Context) -> Lookup {
    let mut full = cloudwit_test_guests::machine("full");
    full.instance_type = Some("large".into());
    full.zone = Some(String::new());
    full.region = Some("north".into());
    full.labels.push(Pair::new("rack", "7"));
    full.addresses.push(Address::new(AddressKind::Hostname, "full"));
    let answers = [
        Ok(Presence::Running(full)),
        Ok(Presence::Stopped(cloudwit_test_guests::machine("off"))),
        Ok(Presence::Absent(Evidence::ById)),
        Ok(Presence::Absent(Evidence::ByName)),
        Err(Failure::not_found("a")),
        Err(Failure::pending(Duration::from_millis(1), "t", "b")),
        Err(Failure::rate_limited(None, "c")),
        Err(Failure::denied("d")),
        Err(Failure::invalid("e")),
        Err(Failure::conflict("f")),
        Err(Failure::unavailable("g")),
        Err(Failure::implemented_elsewhere("h")),
        Err(Failure::other("i")),
        Err(Failure::already_exists("j").with_code("DuplicateName")),
        Err(Failure::exhausted("k: OverQuota").with_code("OverQuota")),
        Err(Failure::out_of_range("l").with_code("")),
        Err(Failure::failed_precondition("m")),
        Err(Failure::aborted("n")),
    ];
    Ok(answers.into_iter().take(nodes.len()).collect())
}
