//! Disks grow, attached or not.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::volumes::*;

use crate::Gce;
use crate::volumes::GIB;
use crate::volumes::disk::no_disk;
use crate::volumes::progress::Progress;

impl VolumeExpansion for Gce {
    fn expand_volume(&self, id: &str, size: SizeRange, token: Option<&str>) -> Result<Expanded, Failure> {
        let (progress, doing) = (Progress::read(token), format!("growing {id}"));
        self.passed(&progress, &doing)?;
        let disks = self.disks(Some(id).into_iter())?;
        let (own, disk) = disks.get(id)?.ok_or_else(|| no_disk(id))?;
        let mut gib = disk.gib();
        if gib.saturating_mul(GIB) < size.at_least {
            gib = size.at_least.div_ceil(GIB);
            let body = json!({ "sizeGb": gib.to_string() });
            self.change_disk("POST", &format!("{own}/resize"), Some(&body), (&progress, &doing))?;
        }
        Ok(Expanded {
            size: gib.saturating_mul(GIB),
            on_node: true,
        })
    }
}
