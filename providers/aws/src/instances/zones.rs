//! The availability zones of the region: a table that hardly ever changes, kept in the state.

use std::time::Duration;

use cloudwit_guest_sdk::state::Keep;

use crate::Aws;
use crate::api::error::AwsError;
use crate::api::reading::text;

/// How long the table is valid; a zone that is not in it is requested at once.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a zone that AWS does not list is not requested again: it may be opted into at any time, but hardly is.
const MISSING_KEPT: Duration = Duration::from_secs(10 * 60);

/// How long a call waits for another one with the same request.
const WAIT: Duration = Duration::from_secs(20);

const TABLE: &str = "zones";

/// A zone of the region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Name in this account: `us-east-1a`.
    pub name: String,
    /// The same in all accounts: `use1-az1`.
    pub id: String,
    /// `availability-zone`, `local-zone` or `wavelength-zone`.
    pub kind: String,
}

impl Aws {
    /// The zones of the region, with these among them if AWS has them.
    ///
    /// # Errors
    /// The error of AWS.
    pub(crate) fn zones(&self, needed: &[&str]) -> Result<Vec<Zone>, AwsError> {
        let state = self.context.state();
        if let Some(zones) = self.kept_zones(needed) {
            return Ok(zones);
        }
        let _lock = state.lock(TABLE, WAIT);
        if let Some(zones) = self.kept_zones(needed) {
            return Ok(zones);
        }
        let mut table: Vec<String> = Vec::new();
        let call = self.api.ec2("DescribeAvailabilityZones");
        call.pages(&["availabilityZoneInfo"], |zone| {
            for name in ["zoneName", "zoneId", "zoneType"] {
                table.push(text(zone, name));
            }
            Ok(())
        })?;
        state.put(TABLE, &table, Keep::at_most(KEPT));
        let zones = read(&table);
        for name in needed {
            if !zones.iter().any(|zone| zone.name == **name) {
                state.put(&missing_key(name), "", Keep::at_most(MISSING_KEPT));
            }
        }
        Ok(zones)
    }

    /// What is kept, unless a needed zone is missing that was not requested lately.
    fn kept_zones(&self, needed: &[&str]) -> Option<Vec<Zone>> {
        let state = self.context.state();
        let zones = read(&state.get::<Vec<String>>(TABLE)?.value);
        for name in needed {
            let known = zones.iter().any(|zone| zone.name == **name);
            if !known && state.get::<String>(&missing_key(name)).is_none() {
                return None;
            }
        }
        Some(zones)
    }
}

/// Zones as they are kept: name, id and kind one after the other.
fn read(table: &[String]) -> Vec<Zone> {
    let (zones, _) = table.as_chunks::<3>();
    let zone = |[name, id, kind]: &[String; 3]| Zone {
        name: name.clone(),
        id: id.clone(),
        kind: kind.clone(),
    };
    zones.iter().map(zone).collect()
}

fn missing_key(name: &str) -> String {
    format!("zone-missing/{name}")
}
