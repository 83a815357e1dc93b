//! Look-ups of volumes by id and by name, many in a request.

use std::collections::BTreeMap;

use crate::Aws;
use crate::api::by_ids::ask_by_ids;
use crate::api::error::AwsError;
use crate::tags::CLUSTER_PREFIX;
use crate::volumes::disk::ids::volume_id;
use crate::volumes::disk::{Disk, DiskState};

use cloudwit_guest_sdk::prelude::*;

/// The tag with the volume's name, upstream's (`aws-ebs-csi-driver`, `VolumeNameTagKey`).
pub(crate) const VOLUME_NAME: &str = "CSIVolumeName";

/// AWS's error code for an id without a volume.
pub(crate) const NO_VOLUME: &str = "InvalidVolume.NotFound";

/// Volumes by id; none for what AWS reports as not found.
#[derive(Debug, Default)]
pub(crate) struct Disks(BTreeMap<String, Option<Disk>>);

impl Disks {
    /// The volume that this handle means.
    ///
    /// # Errors
    /// `unavailable` when AWS neither described nor denied it.
    pub(crate) fn get(&self, handle: &str) -> Result<Option<&Disk>, Failure> {
        let Some(id) = volume_id(handle) else { return Ok(None) };
        match self.0.get(id) {
            Some(found) => Ok(found.as_ref().filter(|disk| disk.state != DiskState::Gone)),
            None => Err(Failure::unavailable(format!(
                "AWS was asked for the volume {id} and neither described nor denied it"
            ))),
        }
    }
}

/// The failure for a volume that does not exist.
pub(crate) fn no_volume(handle: &str) -> Failure {
    Failure::not_found(format!("there is no volume {handle}"))
}

impl Aws {
    /// The volumes that these handles mean, in one request.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn disks<'h>(&self, handles: impl Iterator<Item = &'h str>) -> Result<Disks, AwsError> {
        let mut ids: Vec<&str> = handles.filter_map(volume_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let (mut found, mut refused) = (BTreeMap::new(), Vec::new());
        let mut ask = |ids: &[&str]| {
            let call = self.api.ec2("DescribeVolumes").list("VolumeId", ids);
            for disk in call.pages(&["volumeSet"], Disk::read)? {
                found.insert(disk.id.clone(), Some(disk));
            }
            Ok(())
        };
        ask_by_ids(&ids, &[NO_VOLUME], &mut ask, &mut refused)?;
        for (id, _) in refused {
            found.insert(id.into(), None);
        }
        Ok(Disks(found))
    }

    /// The volume that this handle means.
    ///
    /// # Errors
    /// `not-found`; the error of AWS.
    pub(crate) fn disk(&self, handle: &str) -> Result<Disk, Failure> {
        let disks = self.disks(Some(handle).into_iter())?;
        disks.get(handle)?.cloned().ok_or_else(|| no_volume(handle))
    }

    /// The volumes of this name that are this cluster's, or no cluster's: upstream's driver tags clusters only where one is configured. Those whose creation failed
    /// are among them, those that are being deleted are not.
    ///
    /// # Errors
    /// The error of AWS.
    pub(crate) fn disks_named(&self, name: &str) -> Result<Vec<Disk>, AwsError> {
        let filter = format!("tag:{VOLUME_NAME}");
        let call = self.api.ec2("DescribeVolumes").filter(&filter, [name]);
        let mut disks = call.pages(&["volumeSet"], Disk::read)?;
        disks.retain(|disk| disk.state != DiskState::Gone && self.may_be_ours(&disk.tags));
        Ok(disks)
    }

    /// Whether something with these tags is this cluster's, or no cluster's.
    pub(crate) fn may_be_ours(&self, tags: &[Pair]) -> bool {
        self.cluster.marks(tags) || !tags.iter().any(|tag| tag.key.starts_with(CLUSTER_PREFIX))
    }
}
