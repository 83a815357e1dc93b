//! Imports an interface that no host offers.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::misbehaves;

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package acme:database@1.2.0;
            interface store { get: func(key: string) -> option<string>; }
            world wishes { import store; }
        ",
    });
}

misbehaves!(
    |nodes: &[NodeRef], _: Context| match bindings::acme::database::store::get("key") {
        Some(_) => cloudwit_test_guests::all_run(nodes),
        None => Err(Failure::other("nothing stored")),
    }
);
