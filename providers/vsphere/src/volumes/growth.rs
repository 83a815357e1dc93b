//! Volumes grow, attached or not.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;
use crate::volumes::MIB;
use crate::volumes::cns::{element, id_element};
use crate::volumes::find::no_volume;

impl VolumeExpansion for Vsphere {
    fn expand_volume(&self, id: &str, size: SizeRange, token: Option<&str>) -> Result<Expanded, Failure> {
        let doing = format!("growing {id}");
        self.passed(token, &doing, Some(id))?;
        let found = self.find_volume(id)?.ok_or_else(|| no_volume(id))?;
        if found.volume.size() >= size.at_least {
            return Ok(Expanded {
                size: found.volume.size(),
                on_node: true,
            });
        }
        let mib = size.at_least.div_ceil(MIB).to_string();
        let spec = id_element("volumeId", id) + &element("capacityInMb", &mib);
        let what = format!("<extendSpecs>{spec}</extendSpecs>");
        let cns = self.cns_at(found.vcenter)?;
        let task = cns.begin("CnsExtendVolume", &|_| what.clone())?;
        Err(cns.task(&task).pending(&doing))
    }
}
