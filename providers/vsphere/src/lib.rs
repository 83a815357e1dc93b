//! The provider for vSphere.

use cloudwit_guest_sdk::prelude::*;

/// The provider, alive for one call.
#[derive(Debug)]
pub struct Vsphere;

impl Provider for Vsphere {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("vsphere", env!("CARGO_PKG_VERSION"))
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}
