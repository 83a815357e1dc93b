//! Answers about fewer Nodes than it was asked about.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::misbehaves;

misbehaves!(|nodes: &[NodeRef], _: Context| cloudwit_test_guests::all_run(&nodes[1..]));
