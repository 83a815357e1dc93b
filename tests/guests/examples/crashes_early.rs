//! Panics already when it is asked who it is.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{Lookup, all_run};

struct Guest;

impl Provider for Guest {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        panic!("forgot who I am")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Instances for Guest {
    fn lookup(&self, nodes: &[NodeRef]) -> Lookup {
        all_run(nodes)
    }
}

register_provider!(Guest: Instances);
