//! Disks of the simulated cloud: a file each, and a loop device where a disk is attached to a machine that runs, with what sysfs would say of it there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cloudwit_sim_cloud::{AttachmentState, Disk, DiskSource};
use xtask::tools;

use crate::cloud::State;
use crate::process::call;

/// The disks there are.
pub struct Disks {
    folder: PathBuf,
    /// Disks and snapshots that have a file.
    stored: BTreeSet<String>,
    /// By disk and name of the machine.
    devices: BTreeMap<(String, String), Device>,
}

/// An attached disk.
struct Device {
    /// Such as `loop3`.
    name: String,
    /// In bytes.
    size: u64,
    /// What the machine's sysfs says of it.
    description: PathBuf,
    /// The device goes with its last user, and with us in whichever way we end.
    _open: File,
}

impl Disks {
    /// None of them yet; their files are below this folder, which is that of all machines.
    pub fn new(folder: &Path) -> Result<Self> {
        for kind in ["disks", "snapshots"] {
            make(&folder.join(kind))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            stored: BTreeSet::new(),
            devices: BTreeMap::new(),
        })
    }

    /// Follows the cloud. `running` tells the names of the machines that run by their ids.
    ///
    /// # Errors
    ///
    /// When a file or a device cannot be made.
    pub fn follow(&mut self, state: &State, running: &BTreeMap<String, String>) -> Result<()> {
        self.store(state)?;
        let wanted = attached(&state.disks, running);
        let over: Vec<_> = self
            .devices
            .keys()
            .filter(|key| !wanted.contains_key(*key))
            .cloned()
            .collect();
        for key in over {
            if let Some(device) = self.devices.remove(&key) {
                // Gone for the machine at once; the device itself once nobody uses it.
                fs::remove_dir_all(&device.description).context("removing a device")?;
            }
        }
        for ((disk, machine), size) in wanted {
            let file = self.disk(&disk);
            match self.devices.get_mut(&(disk.clone(), machine.clone())) {
                Some(device) if device.size != size => {
                    resize(&file, size)?;
                    call(&format!("losetup --set-capacity /dev/{}", device.name))?;
                    device.size = size;
                }
                Some(_) => {}
                None => {
                    let device = self.plug_in(&disk, &machine, size)?;
                    self.devices.insert((disk, machine), device);
                }
            }
        }
        Ok(())
    }

    /// Files come and go with their disks and snapshots. Snapshots come first: a disk may begin as one.
    fn store(&mut self, state: &State) -> Result<()> {
        let sources = state.snapshots.iter().map(|one| {
            (
                &one.id,
                self.snapshot(&one.id),
                Some(self.disk(&one.spec.disk)),
                one.size,
            )
        });
        let disks = state.disks.iter().map(|disk| {
            let source = disk.spec.source.as_ref().map(|source| match source {
                DiskSource::Disk(id) => self.disk(id),
                DiskSource::Snapshot(id) => self.snapshot(id),
            });
            (&disk.id, self.disk(&disk.id), source, disk.spec.size)
        });
        let mut there = BTreeMap::new();
        for (id, file, source, size) in sources.chain(disks) {
            if !self.stored.contains(id) {
                match source.filter(|source| source.exists()) {
                    Some(source) => call(&format!("cp --sparse=always {} {}", source.display(), file.display()))?,
                    None => drop(File::create(&file).with_context(|| format!("making {}", file.display()))?),
                }
                resize(&file, size)?;
            }
            there.insert(id.clone(), file);
        }
        for gone in self.stored.iter().filter(|id| !there.contains_key(*id)) {
            for file in [self.disk(gone), self.snapshot(gone)]
                .iter()
                .filter(|file| file.exists())
            {
                fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
            }
        }
        self.stored = there.into_keys().collect();
        Ok(())
    }

    fn plug_in(&self, disk: &str, machine: &str, size: u64) -> Result<Device> {
        let mut command = std::process::Command::new("losetup");
        let made = tools::output(command.args(["--find", "--show"]).arg(self.disk(disk)))?;
        let path = made.trim();
        let open = File::open(path).with_context(|| format!("opening {path}"))?;
        // It is in use, so the kernel removes it only when it no longer is: also after a `kill -9` of all of us.
        call(&format!("losetup --detach {path}"))?;
        let name = path.trim_start_matches("/dev/").to_owned();
        let description = sysfs(&self.folder, machine).join("block").join(&name);
        // All of it at once, as the kernel does.
        let new = self.folder.join("disks").join(format!("new-{name}"));
        make(&new)?;
        let number = Path::new("/sys/block").join(&name).join("dev");
        fs::copy(&number, new.join("dev")).with_context(|| format!("reading {}", number.display()))?;
        fs::write(new.join("serial"), format!("{disk}\n")).context("writing a serial number")?;
        fs::rename(&new, &description).with_context(|| format!("making {}", description.display()))?;
        Ok(Device {
            name,
            size,
            description,
            _open: open,
        })
    }

    fn disk(&self, id: &str) -> PathBuf {
        self.folder.join("disks").join(id)
    }

    fn snapshot(&self, id: &str) -> PathBuf {
        self.folder.join("snapshots").join(id)
    }
}

/// The folder like `/sys` of a machine: in its kubelet's folder, where a Pod for volumes finds it too.
pub fn sysfs(folder: &Path, machine: &str) -> PathBuf {
    folder.join(machine).join("kubelet/sys")
}

/// Sizes of the disks that machines have, by disk and name of the machine.
fn attached(disks: &[Disk], running: &BTreeMap<String, String>) -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    for disk in disks {
        for one in disk
            .attachments
            .iter()
            .filter(|one| one.state == AttachmentState::Attached)
        {
            if let Some(name) = running.get(&one.machine) {
                all.insert((disk.id.clone(), name.clone()), disk.spec.size);
            }
        }
    }
    all
}

fn resize(file: &Path, size: u64) -> Result<()> {
    let open = OpenOptions::new().write(true).open(file);
    let open = open.with_context(|| format!("opening {}", file.display()))?;
    open.set_len(size)
        .with_context(|| format!("growing {}", file.display()))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
