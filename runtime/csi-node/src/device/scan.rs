//! What sysfs says of each block device.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::vpd;
use crate::mounts::table::Number;

/// Devices that are checked; a machine has tens.
const MOST: usize = 4096;

/// Bytes of one attribute.
const ATTRIBUTE: u64 = 4096;

/// A block device, not a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name in sysfs.
    pub name: String,
    /// Its major and minor number.
    pub number: Number,
    /// Serial numbers that it says it has, without padding.
    pub serials: Vec<String>,
    /// World Wide Names, as the kernel writes them or in hexadecimal.
    pub wwns: Vec<String>,
    /// Other names that it says it has: vendor, model and serial in one.
    pub texts: Vec<String>,
    /// Its LUN, where it has one.
    pub lun: Option<u32>,
}

impl BlockDevice {
    /// Its path below the folder of devices: the kernel writes `!` for `/`.
    pub fn node(&self) -> String {
        self.name.replace('!', "/")
    }
}

/// All block devices. A device that goes meanwhile, and one without a number, is left out.
///
/// # Errors
///
/// When the folder cannot be read, or has more entries than any machine's.
pub fn scan(sysfs: &Path) -> io::Result<Vec<BlockDevice>> {
    let mut found = Vec::new();
    // Partitions are below their devices, and not in this folder.
    for entry in fs::read_dir(sysfs.join("block"))? {
        if found.len() >= MOST {
            return Err(io::Error::other(format!("more than {MOST} block devices")));
        }
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string() {
            found.extend(device(&entry.path(), name));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn device(folder: &Path, name: String) -> Option<BlockDevice> {
    let number = text(&folder.join("dev"))?;
    let (major, minor) = number.split_once(':')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let below = folder.join("device");
    let page83 = bytes(&below.join("vpd_pg83")).map(|page| vpd::designators(&page));
    let page83 = page83.unwrap_or_default();
    let serials = [text(&folder.join("serial")), text(&below.join("serial"))];
    let page80 = bytes(&below.join("vpd_pg80")).and_then(|page| vpd::serial(&page));
    let wwns = [text(&folder.join("wwid")), text(&below.join("wwid"))];
    let mut serials: Vec<String> = serials.into_iter().chain([page80]).flatten().collect();
    serials.dedup();
    Some(BlockDevice {
        name,
        number,
        serials,
        wwns: wwns.into_iter().flatten().chain(page83.names).collect(),
        texts: page83.texts,
        lun: lun(&below),
    })
}

/// `device` is a link to a folder named by host, channel, target and LUN.
fn lun(device: &Path) -> Option<u32> {
    let link = fs::read_link(device).ok()?;
    let address: Vec<&str> = link.file_name()?.to_str()?.split(':').collect();
    match address.as_slice() {
        [_, _, _, lun] => lun.parse().ok(),
        _ => None,
    }
}

fn bytes(file: &Path) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    File::open(file).ok()?.take(ATTRIBUTE).read_to_end(&mut read).ok()?;
    Some(read)
}

fn text(file: &Path) -> Option<String> {
    let text = String::from_utf8(bytes(file)?).ok()?;
    let text = text.trim_matches(|sign: char| sign.is_whitespace() || sign == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn attributes_of_each_kind_of_device_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let block = folder.path().join("block");
        let write = |file: &str, content: &[u8]| {
            let file = block.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        };
        write("vda/dev", b"254:0\n");
        write("vda/serial", b"0b8f4a5e-1d2c-4f3a-9");
        write("nvme1n1/dev", b"259:1\n");
        write("nvme1n1/device/serial", b"vol0abc             \n");
        write("nvme1n1/wwid", b"nvme.1d0f-766f6c\n");
        write("scsi/target/3:0:0:5/vpd_pg80", b"\0\x80\0\x036ab");
        write("scsi/target/3:0:0:5/vpd_pg83", b"\0\x83\0\x06\x01\x03\0\x02\x60\x0c");
        write("sdb/dev", b"8:16\n");
        symlink("../scsi/target/3:0:0:5", block.join("sdb/device")).unwrap();
        write("odd/dev", b"none");
        let found = scan(folder.path()).unwrap();
        let names: Vec<&str> = found.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["nvme1n1", "sdb", "vda"]);
        assert_eq!(found[0].serials, ["vol0abc"]);
        assert_eq!(found[0].wwns, ["nvme.1d0f-766f6c"]);
        assert_eq!((found[1].number, found[1].lun), ((8, 16), Some(5)));
        assert_eq!(found[1].serials, ["6ab"]);
        assert_eq!(found[1].wwns, ["600c"]);
        assert_eq!(found[2].serials, ["0b8f4a5e-1d2c-4f3a-9"]);
    }

    #[test]
    fn name_with_a_slash_is_found_below_dev() {
        let device = BlockDevice {
            name: "cciss!c0d0".into(),
            ..BlockDevice::default()
        };
        assert_eq!(device.node(), "cciss/c0d0");
    }

    #[test]
    fn devices_of_this_machine_are_read() {
        let found = scan(Path::new("/sys")).unwrap();
        assert!(found.iter().all(|device| !device.name.is_empty()));
    }
}
