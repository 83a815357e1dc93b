//! One cheap call with which address, credentials and names turn out right or wrong.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::Gce;
use crate::place::Place;

/// The region is requested by name: its answer shows that project, zone and credentials are right.
pub(crate) fn probe(gce: &Gce) -> Result<(), Failure> {
    let place = Place::of(&gce.config.global, gce.context)?;
    let region = format!("/projects/{}/regions/{}", place.project, place.region);
    gce.api.get::<Value>(&region, &[("fields", "name")]).map(drop)
}
