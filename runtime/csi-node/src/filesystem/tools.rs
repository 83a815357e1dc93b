//! The programs that look at, make, check and grow file systems.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use tonic::Status;
use tracing::{info, warn};

use super::content::{self, Content};
use super::kind::FileSystem;
use crate::program::{self, Ended};

/// Reads a few blocks.
const LOOK: Duration = Duration::from_secs(60);

/// Writes tables over the whole device, or reads them all: terabytes on slow disks take hours, and what is killed begins anew. The kubelet gets meanwhile that it
/// is under way.
const WORK: Duration = Duration::from_secs(12 * 3600);

/// `e2fsck`: errors are left (e2fsck(8)).
const ERRORS_LEFT: i32 = 4;

/// `e2fsck`: errors were mended.
const MENDED: i32 = 1 | 2;

/// `e2fsck`: an operational error.
const NOT_POSSIBLE: i32 = 8;

/// What signatures are on a device.
///
/// # Errors
///
/// `Unavailable` when blkid does not say.
pub fn look(device: &Path) -> Result<Content, Status> {
    let arguments = ["-p", "-o", "export"].map(OsStr::new);
    let ended = program::run("blkid", arguments.into_iter().chain([device.as_os_str()]), LOOK)?;
    content::of_blkid(&ended)
}

/// Makes a file system. What is on the device is lost.
///
/// # Errors
///
/// `Unavailable` when it fails: the device may be half formatted.
pub fn format(device: &Path, file_system: FileSystem) -> Result<(), Status> {
    let name = format!("mkfs.{file_system}");
    let flags: &[&str] = match file_system {
        // No blocks are kept for root: a volume belongs to one user. Nothing is discarded: it was found empty.
        FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => &["-F", "-m0", "-E", "nodiscard"],
        FileSystem::Xfs => &["-f", "-K"],
    };
    let arguments = flags.iter().map(OsStr::new).chain([device.as_os_str()]);
    info!(device = %device.display(), %file_system, "formatting volume");
    let ended = program::run(&name, arguments, WORK)?;
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(Status::unavailable(format!("{name} {}", ended.told()))),
    }
}

/// Checks a file system that is not mounted and mends what is safe to mend. XFS does so when it is mounted.
///
/// # Errors
///
/// `FailedPrecondition` when errors are left.
pub fn check(device: &Path, file_system: FileSystem) -> Result<(), Status> {
    if file_system == FileSystem::Xfs {
        return Ok(());
    }
    let ended = program::run("e2fsck", [OsStr::new("-a"), device.as_os_str()], WORK)?;
    match verdict(&ended)? {
        Verdict::Sound => {}
        Verdict::Mended => info!(device = %device.display(), "file system errors corrected"),
        Verdict::Unchecked => warn!(device = %device.display(), "file system not checked; e2fsck {}", ended.told()),
    }
    Ok(())
}

/// What e2fsck found.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// No error.
    Sound,
    /// Errors, which it mended.
    Mended,
    /// It could not check, such as a device that is mounted elsewhere: the mount will fail.
    Unchecked,
}

/// One that was killed may have stopped in the middle of mending, so what it was about is not mounted.
fn verdict(ended: &Ended) -> Result<Verdict, Status> {
    match ended.code {
        Some(0) => Ok(Verdict::Sound),
        Some(code) if code & ERRORS_LEFT != 0 => Err(Status::failed_precondition(format!(
            "the file system has errors that have to be mended by hand; e2fsck {}",
            ended.told()
        ))),
        Some(code) if code & !MENDED == 0 => Ok(Verdict::Mended),
        Some(code) if code & !(MENDED | NOT_POSSIBLE) == 0 => Ok(Verdict::Unchecked),
        _ => Err(Status::unavailable(format!("e2fsck {}", ended.told()))),
    }
}

/// Grows a mounted file system to the size of its device; nothing happens when it has that size.
///
/// # Errors
///
/// `Unavailable` when it fails.
pub fn grow(device: &Path, mounted_at: &Path, file_system: FileSystem) -> Result<(), Status> {
    let (name, ended) = match file_system {
        FileSystem::Xfs => {
            let arguments = [OsStr::new("-d"), mounted_at.as_os_str()];
            ("xfs_growfs", program::run("xfs_growfs", arguments, WORK)?)
        }
        _ => ("resize2fs", program::run("resize2fs", [device], WORK)?),
    };
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(Status::unavailable(format!("{name} {}", ended.told()))),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn only_a_check_that_came_to_its_end_is_followed_by_a_mount() {
        for (code, expected) in [
            (Some(0), Ok(Verdict::Sound)),
            (Some(1), Ok(Verdict::Mended)),
            (Some(3), Ok(Verdict::Mended)),
            (Some(8), Ok(Verdict::Unchecked)),
            (Some(4), Err(Code::FailedPrecondition)),
            (Some(12), Err(Code::FailedPrecondition)),
            (Some(16), Err(Code::Unavailable)),
            (Some(32), Err(Code::Unavailable)),
            (Some(128), Err(Code::Unavailable)),
            (None, Err(Code::Unavailable)),
        ] {
            let ended = Ended {
                code,
                output: String::new(),
                errors: String::new(),
            };
            assert_eq!(verdict(&ended).map_err(|status| status.code()), expected, "{code:?}");
        }
    }
}
