//! The provider for OpenStack.

use cloudwit_guest_sdk::prelude::*;

/// The provider, alive for one call.
#[derive(Debug)]
pub struct OpenStack;

impl Provider for OpenStack {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("openstack", env!("CARGO_PKG_VERSION"))
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}
