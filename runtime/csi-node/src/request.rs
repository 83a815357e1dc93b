//! Parsed requests of the node service. Pure.

use cloudwit_csi::check::Mistakes;
use cloudwit_csi::proto::VolumeCapability;
use cloudwit_csi::proto::volume_capability::AccessType;
use cloudwit_csi::proto::volume_capability::access_mode::Mode;

use crate::filesystem::FileSystem;
use crate::mounts::MountOptions;
use crate::paths;

/// How a volume is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeUse {
    /// As what.
    pub access: Access,
    /// Whether it is read only.
    pub read_only: bool,
    /// Whether by one Pod alone.
    pub single: bool,
}

/// As what a volume is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The raw device.
    Block,
    /// A file system.
    Mount {
        /// The one that is requested; none for whatever is there.
        file_system: Option<FileSystem>,
        /// How it is mounted.
        options: MountOptions,
    },
}

/// Reads the capability of a request.
pub fn volume_use(capability: Option<&VolumeCapability>, mistakes: &mut Mistakes) -> Option<VolumeUse> {
    let read = match capability {
        None => Err("the volume capability is missing".to_owned()),
        Some(capability) => read(capability),
    };
    read.map_err(|mistake| mistakes.add(mistake)).ok()
}

fn read(capability: &VolumeCapability) -> Result<VolumeUse, String> {
    let mode = capability
        .access_mode
        .as_ref()
        .map_or(Mode::Unknown, |access| access.mode());
    let access = match &capability.access_type {
        None => return Err("the volume capability says neither block nor mount".to_owned()),
        Some(AccessType::Block(_)) => Access::Block,
        Some(AccessType::Mount(mount)) => Access::Mount {
            file_system: file_system(&mount.fs_type)?,
            options: MountOptions::parse(&mount.mount_flags)?,
        },
    };
    let (reads, single) = match mode {
        Mode::Unknown => return Err("the volume capability has no access mode".to_owned()),
        Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly => (true, false),
        Mode::SingleNodeSingleWriter => (false, true),
        Mode::SingleNodeWriter | Mode::SingleNodeMultiWriter => (false, false),
        Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter if access == Access::Block => (false, false),
        Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter => {
            return Err(
                "a file system that several machines write to would be destroyed (volumeMode: Block)".to_owned(),
            );
        }
    };
    let mounts_read_only = matches!(&access, Access::Mount { options, .. } if options.read_only);
    Ok(VolumeUse {
        access,
        read_only: reads || mounts_read_only,
        single,
    })
}

fn file_system(name: &str) -> Result<Option<FileSystem>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let unknown =
        || format!("the file system {name:?} is not known here; there are ext4 and xfs, and ext2 and ext3 of old");
    FileSystem::parse(name).map(Some).ok_or_else(unknown)
}

/// Notes what is wrong with a path.
pub fn path(what: &str, text: &str, mistakes: &mut Mistakes) {
    if let Some(wrong) = paths::wrong(text) {
        mistakes.add(format!("{what} {wrong}"));
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_csi::proto::volume_capability::{AccessMode, BlockVolume, MountVolume};

    use super::*;

    fn mount(mode: Mode, fs_type: &str, flags: &[&str]) -> Result<VolumeUse, String> {
        read(&VolumeCapability {
            access_mode: Some(AccessMode { mode: mode.into() }),
            access_type: Some(AccessType::Mount(MountVolume {
                fs_type: fs_type.to_owned(),
                mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                ..MountVolume::default()
            })),
        })
    }

    fn block(mode: Mode) -> Result<VolumeUse, String> {
        read(&VolumeCapability {
            access_mode: Some(AccessMode { mode: mode.into() }),
            access_type: Some(AccessType::Block(BlockVolume {})),
        })
    }

    #[test]
    fn readers_and_the_option_ro_read_only() {
        assert!(mount(Mode::SingleNodeReaderOnly, "", &[]).unwrap().read_only);
        assert!(mount(Mode::SingleNodeWriter, "", &["ro"]).unwrap().read_only);
        assert!(!mount(Mode::SingleNodeWriter, "ext4", &["noatime"]).unwrap().read_only);
        assert!(mount(Mode::SingleNodeSingleWriter, "", &[]).unwrap().single);
        assert!(block(Mode::MultiNodeReaderOnly).unwrap().read_only);
    }

    #[test]
    fn file_systems_of_several_writers_and_unknown_ones_are_refused() {
        assert!(mount(Mode::MultiNodeMultiWriter, "", &[]).is_err());
        assert!(block(Mode::MultiNodeMultiWriter).is_ok());
        assert!(mount(Mode::SingleNodeWriter, "ntfs", &[]).unwrap_err().contains("ntfs"));
        assert!(mount(Mode::SingleNodeWriter, "", &["loop"]).is_err());
        assert!(mount(Mode::Unknown, "", &[]).is_err());
        let mut mistakes = Mistakes::default();
        assert_eq!(volume_use(None, &mut mistakes), None);
        assert!(mistakes.none_or(()).is_err());
    }
}
