//! How a volume is used, and whether the cloud's volumes can be.

use cloudwit_model::volume::{AccessMode, VolumeDriver, VolumeFeature, VolumeUse};

use super::text::Mistakes;
use crate::proto::VolumeCapability;
use crate::proto::volume_capability::AccessType;
use crate::proto::volume_capability::access_mode::Mode;

/// Uses of one volume. A user lists one or two.
const MOST: usize = 16;

/// In the model's terms; at least one is required.
pub(crate) fn uses(capabilities: &[VolumeCapability], mistakes: &mut Mistakes) -> Vec<VolumeUse> {
    if capabilities.is_empty() {
        mistakes.add("volume capabilities are missing");
    } else if capabilities.len() > MOST {
        mistakes.add(format!(
            "there are {} volume capabilities, at most {MOST} are allowed",
            capabilities.len()
        ));
    }
    let read = capabilities.iter().take(MOST).map(volume_use);
    read.filter_map(|read| read.map_err(|mistake| mistakes.add(mistake)).ok())
        .collect()
}

fn volume_use(capability: &VolumeCapability) -> Result<VolumeUse, String> {
    let mode = capability
        .access_mode
        .as_ref()
        .map_or(Mode::Unknown, |access| access.mode());
    let access = match mode {
        Mode::Unknown => return Err("a volume capability has no access mode".to_owned()),
        Mode::SingleNodeWriter | Mode::SingleNodeSingleWriter | Mode::SingleNodeMultiWriter => AccessMode::OneNode,
        Mode::SingleNodeReaderOnly => AccessMode::OneNodeReadOnly,
        Mode::MultiNodeReaderOnly => AccessMode::ManyNodesReadOnly,
        // The cloud cannot see which of the machines write.
        Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter => AccessMode::ManyNodes,
    };
    let (block, fs_type) = match &capability.access_type {
        None => return Err("a volume capability says neither block nor mount".to_owned()),
        Some(AccessType::Block(_)) => (true, None),
        Some(AccessType::Mount(mount)) => (false, Some(mount.fs_type.clone()).filter(|fs_type| !fs_type.is_empty())),
    };
    Ok(VolumeUse { block, fs_type, access })
}

/// Whether volumes of this driver can be used so, for a new volume: what is in the way.
pub(crate) fn creatable(driver: &VolumeDriver, volume_use: &VolumeUse) -> Result<(), String> {
    let missing = |what: &str| Err(format!("volumes of {} cannot be used {what}", driver.name));
    let many_readers = driver.has(VolumeFeature::ManyReaders) || driver.has(VolumeFeature::ManyWriters);
    match volume_use.access {
        AccessMode::OneNode => Ok(()),
        AccessMode::OneNodeReadOnly if driver.has(VolumeFeature::ReadOnly) => Ok(()),
        AccessMode::OneNodeReadOnly => missing("for reading only by one machine"),
        AccessMode::ManyNodesReadOnly if many_readers => Ok(()),
        AccessMode::ManyNodesReadOnly => missing("by several machines at once"),
        AccessMode::ManyNodes if !driver.has(VolumeFeature::ManyWriters) => {
            missing("by several machines at once that write")
        }
        AccessMode::ManyNodes if volume_use.block => Ok(()),
        AccessMode::ManyNodes => Err(
            "a file system that several machines write to would be destroyed; only raw block volumes can be shared so \
             (volumeMode: Block)"
                .to_owned(),
        ),
    }
}

/// The same for a volume that is to be attached to one more machine.
pub(crate) fn attachable(driver: &VolumeDriver, volume_use: &VolumeUse, read_only: bool) -> Result<(), String> {
    if read_only && !driver.has(VolumeFeature::ReadOnly) {
        return Err(format!(
            "{} cannot attach a volume for reading only; the file system can be mounted so",
            driver.name
        ));
    }
    creatable(driver, volume_use)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::volume_capability::{AccessMode as Access, BlockVolume, MountVolume};

    fn capability(mode: Mode, block: bool) -> VolumeCapability {
        VolumeCapability {
            access_mode: Some(Access { mode: mode.into() }),
            access_type: Some(if block {
                AccessType::Block(BlockVolume {})
            } else {
                AccessType::Mount(MountVolume::default())
            }),
        }
    }

    fn driver(features: &[VolumeFeature]) -> VolumeDriver {
        VolumeDriver {
            name: "csi.test".into(),
            topology_keys: Vec::new(),
            size_step: 1,
            smallest: 1,
            largest: 1,
            usual: 1,
            features: features.to_vec(),
            batch: 1,
        }
    }

    /// What is in the way of a new volume with this capability.
    fn verdict(mode: Mode, block: bool, features: &[VolumeFeature]) -> Result<(), String> {
        let mut mistakes = Mistakes::default();
        let uses = uses(&[capability(mode, block)], &mut mistakes);
        assert_eq!(mistakes, Mistakes::default());
        creatable(&driver(features), &uses[0])
    }

    #[test]
    fn empty_entry_is_refused_with_all_mistakes() {
        let mut mistakes = Mistakes::default();
        let unknown = VolumeCapability::default();
        let untyped = VolumeCapability {
            access_type: None,
            ..capability(Mode::SingleNodeWriter, false)
        };
        assert_eq!(uses(&[unknown, untyped], &mut mistakes), []);
        let refused = mistakes.none_or(()).unwrap_err();
        assert_eq!(
            refused.message(),
            "a volume capability has no access mode; a volume capability says neither block nor mount"
        );
        let mut mistakes = Mistakes::default();
        uses(&[], &mut mistakes);
        uses(&vec![capability(Mode::SingleNodeWriter, true); MOST + 1], &mut mistakes);
        assert!(
            mistakes
                .none_or(())
                .unwrap_err()
                .message()
                .contains("are missing; there are 17")
        );
    }

    #[test]
    fn several_machines_need_the_feature() {
        use VolumeFeature::{ManyReaders, ManyWriters};
        assert_eq!(verdict(Mode::SingleNodeMultiWriter, false, &[]), Ok(()));
        assert!(verdict(Mode::MultiNodeReaderOnly, false, &[]).is_err());
        assert_eq!(verdict(Mode::MultiNodeReaderOnly, false, &[ManyReaders]), Ok(()));
        assert!(verdict(Mode::MultiNodeMultiWriter, true, &[ManyReaders]).is_err());
        assert_eq!(verdict(Mode::MultiNodeSingleWriter, true, &[ManyWriters]), Ok(()));
        let shared = verdict(Mode::MultiNodeMultiWriter, false, &[ManyWriters]).unwrap_err();
        assert!(shared.contains("volumeMode: Block"), "{shared}");
    }

    #[test]
    fn only_some_clouds_attach_for_reading_only() {
        let volume_use = VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        };
        assert!(attachable(&driver(&[]), &volume_use, true).is_err());
        assert_eq!(
            attachable(&driver(&[VolumeFeature::ReadOnly]), &volume_use, true),
            Ok(())
        );
        assert_eq!(attachable(&driver(&[]), &volume_use, false), Ok(()));
    }
}
