//! What to do with a device before it is mounted. Pure.

use tonic::Status;

use super::content::Content;
use super::kind::FileSystem;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// It gets this file system.
    Format(FileSystem),
    /// It has this one already.
    Mount(FileSystem),
}

/// What is requested, and what is known of the device.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The file system that the class names; none for whatever is there, else ext4.
    pub file_system: Option<FileSystem>,
    /// Whether it is to be read only.
    pub read_only: bool,
    /// Whether its serial or WWN is the one that the cloud named.
    pub proven: bool,
}

/// Decides.
///
/// # Errors
///
/// `FailedPrecondition`, with what is in the way.
pub fn decide(content: &Content, wanted: Wanted) -> Result<Plan, Status> {
    let refused = |why: String| Err(Status::failed_precondition(why));
    match content {
        Content::FileSystem(found) => match wanted.file_system {
            Some(asked) if asked != *found => refused(format!(
                "the volume has the file system {found}, and {asked} is requested; it is not formatted again: set the fsType {found}"
            )),
            _ => Ok(Plan::Mount(*found)),
        },
        Content::Other(what) => refused(format!(
            "the volume holds {what}, which is not a supported file system; it is neither mounted nor formatted"
        )),
        Content::Empty if !wanted.proven => refused(
            "the volume holds no file system, and it is not formatted since neither serial nor WWN proves that this device is the volume".to_owned(),
        ),
        Content::Empty if wanted.read_only => refused(
            "the volume holds no file system, and it is not formatted since it is to be read only".to_owned(),
        ),
        Content::Empty => Ok(Plan::Format(wanted.file_system.unwrap_or(FileSystem::Ext4))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan, or a part of the refusal.
    type Expected = Result<Plan, &'static str>;

    #[test]
    fn only_proven_empty_writable_devices_are_formatted() {
        let ext4 = Content::FileSystem(FileSystem::Ext4);
        let luks = Content::Other("crypto_LUKS".to_owned());
        let rows: [(&Content, Option<FileSystem>, bool, bool, Expected); 12] = [
            (&Content::Empty, None, false, true, Ok(Plan::Format(FileSystem::Ext4))),
            (
                &Content::Empty,
                Some(FileSystem::Xfs),
                false,
                true,
                Ok(Plan::Format(FileSystem::Xfs)),
            ),
            (&Content::Empty, None, false, false, Err("proves")),
            (&Content::Empty, None, true, true, Err("read only")),
            (&Content::Empty, None, true, false, Err("proves")),
            (&ext4, None, false, true, Ok(Plan::Mount(FileSystem::Ext4))),
            (&ext4, None, true, false, Ok(Plan::Mount(FileSystem::Ext4))),
            (
                &ext4,
                Some(FileSystem::Ext4),
                false,
                false,
                Ok(Plan::Mount(FileSystem::Ext4)),
            ),
            (&ext4, Some(FileSystem::Xfs), false, true, Err("not formatted again")),
            (&ext4, Some(FileSystem::Ext3), false, true, Err("set the fsType ext4")),
            (&luks, None, false, true, Err("crypto_LUKS")),
            (
                &luks,
                Some(FileSystem::Ext4),
                false,
                true,
                Err("neither mounted nor formatted"),
            ),
        ];
        for (content, file_system, read_only, proven, expected) in rows {
            let wanted = Wanted {
                file_system,
                read_only,
                proven,
            };
            match (decide(content, wanted), expected) {
                (Ok(plan), Ok(expected)) => assert_eq!(plan, expected, "{content:?} {wanted:?}"),
                (Err(refused), Err(part)) => {
                    assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
                    assert!(refused.message().contains(part), "{refused}");
                }
                (decided, expected) => panic!("{content:?} {wanted:?}: {decided:?}, not {expected:?}"),
            }
        }
    }
}
