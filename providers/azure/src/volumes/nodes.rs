//! Machines as the node plugin needs them: name, zone, and how many disks they take.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::Azure;
use crate::arm::COMPUTE;
use crate::volumes::ZONE_KEY;
use crate::volumes::disk::{region, text};

/// What machines of an unknown size take, as upstream's (`defaultAzureVolumeLimit`).
const USUAL: u32 = 16;

/// Key of the sizes in the state, and for how long they are good there.
const SIZES: &str = "disks/sizes";
const GOOD: Keep = Keep::at_most(Duration::from_secs(24 * 3_600));

/// How long a call waits for another one that reads the sizes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most data disks by the name of a machine's size, in small letters. Empty where the role does not allow to read them.
pub(crate) type Sizes = BTreeMap<String, u32>;

/// How many disks a machine of this size takes; none where that is not known.
pub(crate) fn most_disks(sizes: &Sizes, size: &str) -> Option<u32> {
    sizes.get(&size.to_ascii_lowercase()).copied()
}

impl Azure {
    pub(super) fn nodes_for_volumes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let found = self.lookup(nodes)?;
        let sizes = self.machine_sizes()?;
        let start = format!("{}-", region(&self.config.location));
        let one = |(node, presence): (&NodeRef, Result<Presence, Failure>)| {
            let (Presence::Running(machine) | Presence::Stopped(machine)) = presence? else {
                return Err(Failure::not_found(format!("Node {} has no virtual machine", node.name)));
            };
            // Without a zone there is the number of a fault domain, which is no place of a disk.
            let zone = machine.zone.filter(|zone| zone.starts_with(&start));
            let most = machine.instance_type.and_then(|size| most_disks(&sizes, &size));
            Ok(VolumeNode {
                id: node.name.clone(),
                topology: Topology::of(ZONE_KEY, zone.unwrap_or_default()),
                max_volumes: Some(most.unwrap_or(USUAL)),
            })
        };
        Ok(nodes.iter().zip(found).map(one).collect())
    }

    /// The sizes of machines of the region.
    ///
    /// # Errors
    /// The cloud's error, but for a denial.
    pub(crate) fn machine_sizes(&self) -> Result<Sizes, Failure> {
        self.context.state().get_or_make(SIZES, GOOD, PATIENCE, || {
            let path = format!(
                "/subscriptions/{}/providers/Microsoft.Compute/locations/{}/vmSizes",
                self.config.subscription_id,
                region(&self.config.location)
            );
            let mut sizes = Sizes::new();
            let read = self.arm.list(&path, COMPUTE, &[], |size| {
                let most = size.get("maxDataDiskCount").and_then(Value::as_u64);
                if let Some(most) = most.and_then(|most| u32::try_from(most).ok()) {
                    sizes.insert(text(&size, "/name").to_ascii_lowercase(), most);
                }
                Ok(())
            });
            match read {
                // The role is for resource groups alone, or Azure Stack has no such list.
                Err(failure)
                    if matches!(
                        failure.kind,
                        FailureKind::Denied | FailureKind::NotFound | FailureKind::Invalid
                    ) =>
                {
                    warn!(
                        "sizes of machines cannot be read, so {USUAL} disks are assumed for each: {}",
                        failure.message()
                    );
                }
                read => read?,
            }
            Ok(sizes)
        })
    }
}
