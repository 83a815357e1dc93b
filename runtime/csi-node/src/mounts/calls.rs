//! The calls that change what is mounted.

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags};

use super::options::MountOptions;
use super::table::Table;

/// Mounts over each other at one path that are taken down; there is one, or two after a race that there should not be.
const LAYERS: usize = 16;

/// Mounts a device.
///
/// # Errors
///
/// What the kernel says.
pub fn mount(device: &Path, target: &Path, file_system: &str, options: &MountOptions) -> io::Result<()> {
    let mut flags = options.flags.0;
    flags.set(MountFlags::RDONLY, options.read_only);
    let data = CString::new(options.data.join(","))?;
    Ok(rustix::mount::mount(
        device,
        target,
        file_system,
        flags,
        data.as_c_str(),
    )?)
}

/// Shows what is at `source` at `target` too.
///
/// # Errors
///
/// What the kernel says.
pub fn bind(source: &Path, target: &Path) -> io::Result<()> {
    Ok(rustix::mount::mount_bind(source, target)?)
}

/// Gives a bind mount flags of its own.
///
/// # Errors
///
/// What the kernel says.
pub fn restrict(target: &Path, options: &MountOptions, read_only: bool) -> io::Result<()> {
    // The others belong to the file system.
    let own = MountFlags::NOSUID
        | MountFlags::NODEV
        | MountFlags::NOEXEC
        | MountFlags::NOATIME
        | MountFlags::NODIRATIME
        | MountFlags::RELATIME;
    let mut flags = (options.flags.0 & own) | MountFlags::BIND;
    flags.set(MountFlags::RDONLY, read_only);
    Ok(rustix::mount::mount_remount(target, flags, "")?)
}

/// Takes down what is mounted at this path, all of it; whether anything was.
///
/// # Errors
///
/// What the kernel says: `EBUSY` while a file is open.
pub fn unmount(target: &Path) -> io::Result<bool> {
    for layer in 0..LAYERS {
        let table = Table::read().map_err(io::Error::other)?;
        if table.at(target).is_none() {
            return Ok(layer > 0);
        }
        rustix::mount::unmount(target, UnmountFlags::NOFOLLOW)?;
    }
    Err(io::Error::other(format!(
        "more than {LAYERS} mounts over each other at {}",
        target.display()
    )))
}
