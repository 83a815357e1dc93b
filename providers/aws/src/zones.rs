//! The availability zones of the region: a table that hardly ever changes, kept in the state.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use serde::{Deserialize, Serialize};

use crate::Aws;

/// How long the table is believed; a zone that is not in it is asked for at once.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a zone that AWS does not list is not asked for again: it may be opted into at any time, but hardly is.
const MISSING_KEPT: Duration = Duration::from_secs(10 * 60);

/// How long a call waits for another one that is asking.
const WAIT: Duration = Duration::from_secs(20);

const TABLE: &str = "zones";

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Name in this account: `us-east-1a`.
    pub name: String,
    /// The same in all accounts: `use1-az1`.
    pub id: String,
    /// `availability-zone`, `local-zone` or `wavelength-zone`.
    pub kind: String,
}

impl Aws {
    /// The zones of the region, with these among them if AWS knows them.
    ///
    /// # Errors
    /// What AWS says.
    pub(crate) fn zones(&self, needed: &[&str]) -> Result<Vec<Zone>, Failure> {
        let state = self.context.state();
        let known = |zones: &[Zone]| {
            let missing = needed.iter().find(|name| !zones.iter().any(|zone| zone.name == **name));
            missing.is_none_or(|name| state.get::<bool>(&missing_key(name)).is_some())
        };
        let kept = || {
            state
                .get::<Vec<Zone>>(TABLE)
                .map(|stored| stored.value)
                .filter(|zones| known(zones))
        };
        if let Some(zones) = kept() {
            return Ok(zones);
        }
        let _lock = state.lock(TABLE, WAIT);
        if let Some(zones) = kept() {
            return Ok(zones);
        }
        let zones = self
            .api
            .ec2("DescribeAvailabilityZones")
            .pages(&["availabilityZoneInfo"], |zone| {
                let text = |name| zone.text(name).unwrap_or_default().to_owned();
                Ok(Zone {
                    name: text("zoneName"),
                    id: text("zoneId"),
                    kind: text("zoneType"),
                })
            })?;
        state.put(TABLE, &zones, Keep::at_most(KEPT));
        for name in needed {
            if !zones.iter().any(|zone| zone.name == **name) {
                state.put(&missing_key(name), &true, Keep::at_most(MISSING_KEPT));
            }
        }
        Ok(zones)
    }
}

fn missing_key(name: &str) -> String {
    ["zone-missing/", name].concat()
}
