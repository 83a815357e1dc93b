//! Which addresses a Node gets, in the order of upstream's provider.

use crate::config::Networking;

/// `[Networking]`, read.
#[derive(Debug)]
pub struct AddressRules {}

impl AddressRules {
    /// Reads the section.
    pub fn new(_: &Networking) -> Result<Self, String> {
        Ok(Self {})
    }
}
