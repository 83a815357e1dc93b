//! A device that was found, held open: its number is not given to another one meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tonic::Status;

use super::find::{Match, NotFound, Resolved, find};
use super::hints::Hints;
use super::scan::{BlockDevice, scan};
use crate::mounts::table::Number;

/// How long a device may take to appear after the cloud has attached it. The kubelet retries.
const APPEARS: Duration = Duration::from_secs(20);

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(250);

/// Where devices are.
#[derive(Debug, Clone)]
pub struct Devices {
    /// `/sys`.
    pub sysfs: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
}

/// A device that is held open.
#[derive(Debug)]
pub struct OpenDevice {
    /// Its path.
    pub path: PathBuf,
    /// Its major and minor number.
    pub number: Number,
    /// Whether its serial or WWN is the one that the cloud named.
    pub proven: bool,
    /// It, for reading.
    pub file: File,
}

impl Devices {
    /// The device that the hints mean, as soon as there is one. Blocks.
    ///
    /// # Errors
    ///
    /// `Unavailable` when it does not appear, `FailedPrecondition` when several fit.
    pub fn wait_for(&self, hints: &Hints) -> Result<OpenDevice, Status> {
        let begun = Instant::now();
        loop {
            match self.open(hints) {
                Err(status) if status.code() == tonic::Code::Unavailable && begun.elapsed() < APPEARS => {
                    std::thread::sleep(AGAIN);
                }
                ended => return ended,
            }
        }
    }

    /// The device that the hints mean now.
    ///
    /// # Errors
    ///
    /// As [`wait_for`](Self::wait_for).
    pub fn open(&self, hints: &Hints) -> Result<OpenDevice, Status> {
        let found = self.find(hints)?;
        let (path, file) = self.open_node(&found.device)?;
        // Between the look and the opening it may have gone, and another one come in its place.
        if self.find(hints)? != found {
            return Err(Status::unavailable(format!(
                "device {} changed while it was opened",
                found.device.name
            )));
        }
        Ok(OpenDevice {
            path,
            number: found.device.number,
            proven: found.proven,
            file,
        })
    }

    /// The device with this number.
    ///
    /// # Errors
    ///
    /// `Unavailable` when there is none.
    pub fn with_number(&self, number: Number) -> Result<(BlockDevice, PathBuf, File), Status> {
        let devices = self.scan()?;
        let missing = || Status::unavailable(format!("there is no block device {}:{}", number.0, number.1));
        let device = devices
            .into_iter()
            .find(|device| device.number == number)
            .ok_or_else(missing)?;
        let (path, file) = self.open_node(&device)?;
        Ok((device, path, file))
    }

    /// Rescans the size of a SCSI device; other kinds report it by themselves.
    pub fn rescan(&self, device: &BlockDevice) {
        // Only SCSI devices have it.
        let _ = fs::write(self.sysfs.join("block").join(&device.name).join("device/rescan"), "1");
    }

    fn scan(&self) -> Result<Vec<BlockDevice>, Status> {
        scan(&self.sysfs).map_err(|error| {
            Status::unavailable(format!(
                "block devices cannot be read in {}: {error}",
                self.sysfs.display()
            ))
        })
    }

    fn find(&self, hints: &Hints) -> Result<Match, Status> {
        let found = find(hints, &self.resolve(hints), &self.scan()?);
        found.map_err(|error| match error {
            NotFound::None(_) => Status::unavailable(error.to_string()),
            NotFound::Several { .. } => Status::failed_precondition(error.to_string()),
        })
    }

    fn resolve(&self, hints: &Hints) -> Resolved {
        let by_id = hints.by_id.iter().filter(|link| !link.contains('/'));
        Resolved {
            paths: hints
                .paths
                .iter()
                .filter_map(|path| Path::new(path).strip_prefix("/dev").ok())
                .filter_map(|path| self.leads_to(path))
                .collect(),
            by_id: by_id
                .filter_map(|link| Some((link.clone(), self.leads_to(&Path::new("disk/by-id").join(link))?)))
                .collect(),
        }
    }

    /// The sysfs name of the device that a path below `/dev` leads to.
    fn leads_to(&self, path: &Path) -> Option<String> {
        let dev = fs::canonicalize(&self.dev).ok()?;
        let target = fs::canonicalize(dev.join(path)).ok()?;
        let name = target.strip_prefix(&dev).ok()?.to_str()?;
        Some(name.replace('/', "!"))
    }

    /// Opens the device's node, which has to be a block device of this number.
    fn open_node(&self, device: &BlockDevice) -> Result<(PathBuf, File), Status> {
        let path = self.dev.join(device.node());
        let failed = |error: io::Error| Status::unavailable(format!("{} cannot be opened: {error}", path.display()));
        let file = OpenOptions::new().read(true).open(&path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.file_type().is_block_device() || number(found.rdev()) != device.number {
            return Err(Status::unavailable(format!(
                "{} is not block device {}:{}",
                path.display(),
                device.number.0,
                device.number.1
            )));
        }
        Ok((path, file))
    }
}

/// Major and minor number of a device number.
pub fn number(device: u64) -> Number {
    (rustix::fs::major(device), rustix::fs::minor(device))
}
