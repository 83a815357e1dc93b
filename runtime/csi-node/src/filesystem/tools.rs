//! The programs that look at, make, check and grow file systems.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use tonic::Status;
use tracing::{info, warn};

use super::content::{self, Content};
use super::kind::FileSystem;
use crate::program;

/// Reads a few blocks.
const LOOK: Duration = Duration::from_secs(60);

/// Writes tables over the whole device, or reads them all: terabytes take minutes.
const WORK: Duration = Duration::from_secs(15 * 60);

/// `e2fsck`: errors are left (e2fsck(8)).
const ERRORS_LEFT: i32 = 4;

/// `e2fsck`: errors were mended.
const MENDED: i32 = 1 | 2;

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
        // No blocks are kept for root: a volume belongs to one user.
        FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => &["-F", "-m0"],
        FileSystem::Xfs => &["-f"],
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
    match ended.code {
        Some(0) => Ok(()),
        Some(code) if code & ERRORS_LEFT != 0 => Err(Status::failed_precondition(format!(
            "the file system has errors that have to be mended by hand; e2fsck {}",
            ended.told()
        ))),
        Some(code) if code & !MENDED == 0 => {
            info!(device = %device.display(), "file system errors corrected");
            Ok(())
        }
        // Such as a device that is mounted elsewhere: the mount tells.
        _ => {
            warn!(device = %device.display(), "file system not checked; e2fsck {}", ended.told());
            Ok(())
        }
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
