//! Disks of the simulated cloud as devices of this machine: a loop device for each that is attached, and what sysfs would say of it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_sim_cloud::{AttachmentState, SimCloud};
use tokio::task::JoinHandle;

/// How often the hardware follows the cloud.
const TICK: Duration = Duration::from_millis(50);

/// They go when this is dropped.
pub struct LoopDisks {
    held: Arc<Held>,
    following: JoinHandle<()>,
}

struct Held {
    folder: PathBuf,
    /// None once they have gone.
    disks: Mutex<Option<BTreeMap<String, LoopDisk>>>,
}

struct LoopDisk {
    /// `loop3`.
    device: String,
    size: u64,
}

impl LoopDisks {
    /// Those of the machine with this id, with their files and a folder like `/sys` below this folder.
    pub fn follow(cloud: Arc<SimCloud>, machine: &str, folder: &Path) -> Self {
        for name in ["disks", "sys/block", "new"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let held = Arc::new(Held {
            folder: folder.to_owned(),
            disks: Mutex::new(Some(BTreeMap::new())),
        });
        let (following, machine) = (held.clone(), machine.to_owned());
        let following = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                let attached = attached(&cloud, &machine);
                let held = following.clone();
                tokio::task::spawn_blocking(move || held.sync(&attached)).await.unwrap();
            }
        });
        Self { held, following }
    }

    /// The file behind a disk; it is there as soon as somebody makes it or the disk is attached, and stays.
    pub fn file(&self, disk: &str) -> PathBuf {
        self.held.file(disk)
    }

    /// The folder like `/sys`.
    pub fn sysfs(&self) -> PathBuf {
        self.held.folder.join("sys")
    }

    /// The device of a disk, such as `loop3`, while it is attached.
    pub fn device(&self, disk: &str) -> Option<String> {
        let disks = self.held.disks.lock().unwrap();
        disks.as_ref()?.get(disk).map(|disk| disk.device.clone())
    }

    /// What the device of a disk says is its serial number from now on.
    pub fn set_serial(&self, disk: &str, serial: &str) {
        let device = self.device(disk).unwrap();
        fs::write(self.sysfs().join("block").join(device).join("serial"), serial).unwrap();
    }
}

impl Drop for LoopDisks {
    fn drop(&mut self) {
        self.following.abort();
        // A tick that runs still finds none, and makes none.
        let disks = self
            .held
            .disks
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
            .take();
        for disk in disks.into_iter().flatten().map(|(_, disk)| disk) {
            losetup(&["-d", &format!("/dev/{}", disk.device)]);
        }
    }
}

/// Disks that are attached to a machine, with their sizes.
fn attached(cloud: &SimCloud, machine: &str) -> BTreeMap<String, u64> {
    let is_here = |disk: &cloudwit_sim_cloud::Disk| {
        let mut attachments = disk.attachments.iter();
        attachments.any(|one| one.machine == machine && one.state == AttachmentState::Attached)
    };
    let disks = cloud.disks().into_iter().filter(is_here);
    disks.map(|disk| (disk.id, disk.spec.size)).collect()
}

impl Held {
    fn file(&self, disk: &str) -> PathBuf {
        self.folder.join("disks").join(disk)
    }

    fn sysfs(&self, device: &str) -> PathBuf {
        self.folder.join("sys/block").join(device)
    }

    fn sync(&self, attached: &BTreeMap<String, u64>) {
        let mut disks = self.disks.lock().unwrap();
        let Some(disks) = disks.as_mut() else { return };
        disks.retain(|id, disk| {
            let stays = attached.contains_key(id);
            if !stays {
                fs::remove_dir_all(self.sysfs(&disk.device)).unwrap();
                losetup(&["-d", &format!("/dev/{}", disk.device)]);
            }
            stays
        });
        for (id, size) in attached {
            match disks.get_mut(id) {
                Some(disk) if disk.size != *size => {
                    self.resize(id, *size);
                    losetup(&["-c", &format!("/dev/{}", disk.device)]);
                    disk.size = *size;
                }
                Some(_) => {}
                None => {
                    let device = self.insert(id, *size);
                    disks.insert(id.clone(), LoopDisk { device, size: *size });
                }
            }
        }
    }

    fn resize(&self, disk: &str, size: u64) {
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.file(disk))
            .unwrap();
        file.set_len(size).unwrap();
    }

    fn insert(&self, disk: &str, size: u64) -> String {
        self.resize(disk, size);
        let made = losetup(&["--find", "--show", self.file(disk).to_str().unwrap()]);
        let device = made.trim().strip_prefix("/dev/").unwrap().to_owned();
        // All of it at once, as the kernel does.
        let new = self.folder.join("new").join(&device);
        fs::create_dir_all(&new).unwrap();
        fs::copy(Path::new("/sys/block").join(&device).join("dev"), new.join("dev")).unwrap();
        fs::write(new.join("serial"), format!("{disk}\n")).unwrap();
        fs::rename(new, self.sysfs(&device)).unwrap();
        device
    }
}

fn losetup(arguments: &[&str]) -> String {
    let ran = Command::new("losetup").args(arguments).output().unwrap();
    if !ran.status.success() {
        eprintln!("losetup {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    String::from_utf8(ran.stdout).unwrap()
}
