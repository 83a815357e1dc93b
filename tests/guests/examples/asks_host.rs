//! Uses every import once and tells what it was answered.

use std::time::Duration;

use cloudwit_guest_sdk::keys::Hash;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_test_guests::{Lookup, misbehaves};

misbehaves!(ask);

fn ask(nodes: &[NodeRef], context: Context) -> Lookup {
    let (state, keys) = (context.state(), context.keys());
    let count = state.get::<u32>("count").map_or(0, |stored| stored.value) + 1;
    state.put("count", &count, Keep::WHILE_LOADED);
    let swapped = state.compare_and_swap("count", Some(u64::MAX), &0, Keep::WHILE_LOADED);
    let lock = state.lock("mine", Duration::ZERO);
    let second = state.lock("mine", Duration::from_millis(1));
    let hmac = keys.open("key").and_then(|key| key.hmac(Hash::Sha256, b"data"));
    let answers = [
        format!("cluster {:?}", context.cluster().name),
        format!(
            "time left {}",
            (1..=60).contains(&context.time_left().as_secs()) && context.time_left() <= Duration::from_secs(60)
        ),
        format!("dry run {}", context.is_dry_run()),
        format!("call {}.", context.call_id()),
        format!("count {count}"),
        format!("swapped {}", swapped.is_ok()),
        format!("lock {} {}", lock.is_some(), second.is_some()),
        format!("digest {}", keys.digest(Hash::Sha256, b"data").len()),
        format!(
            "hmac {:?}",
            hmac.map(|bytes| bytes.len())
                .map_err(|error| error.message().to_owned())
        ),
        format!("revealed {}", keys.reveal("key").is_ok()),
        format!("other key {}", keys.open("other").is_ok()),
        format!(
            "nodes {:?}",
            context
                .nodes()
                .map(|nodes| nodes.len())
                .map_err(|error| error.message().to_owned())
        ),
        format!(
            "services {:?}",
            context
                .services()
                .map(|all| all.len())
                .map_err(|error| error.message().to_owned())
        ),
        format!("asked about {}", nodes.len()),
    ];
    Err(Failure::other(answers.join("; ")))
}
