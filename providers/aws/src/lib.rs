//! The provider for AWS.

use cloudwit_guest_sdk::prelude::*;

/// The provider, alive for one call.
#[derive(Debug)]
pub struct Aws;

impl Provider for Aws {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new("aws", env!("CARGO_PKG_VERSION"))
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}
