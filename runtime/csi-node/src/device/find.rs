//! Which of the devices it is. Pure.

use thiserror::Error;

use super::hints::Hints;
use super::scan::BlockDevice;

/// virtio cuts serials to this (`VIRTIO_BLK_ID_BYTES`).
const VIRTIO: usize = 20;

/// A name in hexadecimal that is shorter proves nothing: NAA and EUI-64 have 16 digits.
const NAME: usize = 16;

/// What a link's name has to have in common with the device to prove it.
const LINK: usize = 8;

/// The device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Which.
    pub device: BlockDevice,
    /// Whether a serial or WWN says so. A path or LUN may be another's meanwhile.
    pub proven: bool,
}

/// What else the hints may lead to, resolved before: sysfs names of the devices that paths and links lead to, links with their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Names of devices that paths lead to.
    pub paths: Vec<String>,
    /// Link in `by-id`, and the name of the device that it leads to.
    pub by_id: Vec<(String, String)>,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotFound {
    /// Not attached yet, or no longer.
    #[error("no block device of this machine fits {0}")]
    None(String),
    /// The device is ambiguous.
    #[error("several block devices fit {hints}: {devices}; none of them is used")]
    Several {
        /// What was looked for.
        hints: String,
        /// Their names.
        devices: String,
    },
}

/// Finds the one device that the hints mean. Where they name a serial or WWN, nothing else counts.
///
/// # Errors
///
/// When there is none, or several.
pub fn find(hints: &Hints, resolved: &Resolved, devices: &[BlockDevice]) -> Result<Match, NotFound> {
    let proves = |device: &BlockDevice| {
        hints.serials.iter().any(|serial| has_serial(device, serial))
            || hints.wwns.iter().any(|wwn| has_wwn(device, wwn))
    };
    let candidate = |device: &BlockDevice| {
        resolved.paths.contains(&device.name)
            || resolved.by_id.iter().any(|(_, name)| *name == device.name)
            || device.lun.is_some_and(|lun| hints.luns.contains(&lun))
    };
    let fits = |device: &&BlockDevice| {
        if hints.can_prove() {
            proves(device)
        } else {
            candidate(device)
        }
    };
    let found: Vec<&BlockDevice> = devices.iter().filter(fits).collect();
    match found.as_slice() {
        [device] => Ok(Match {
            device: (*device).clone(),
            proven: hints.can_prove() || is_named_by_link(device, resolved),
        }),
        [] => Err(NotFound::None(hints.to_string())),
        several => Err(NotFound::Several {
            hints: hints.to_string(),
            devices: several
                .iter()
                .map(|device| device.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Whether the device says that it has this serial, in the forms that clouds and buses give it.
fn has_serial(device: &BlockDevice, wanted: &str) -> bool {
    device.serials.iter().any(|found| {
        found == wanted
            || (found.len() == VIRTIO && wanted.len() > VIRTIO && wanted.as_bytes().starts_with(found.as_bytes()))
            || ebs(wanted).is_some_and(|wanted| wanted == *found)
            || uuid(wanted).is_some_and(|wanted| Some(wanted) == uuid(found))
    })
}

/// `vol-0abc` is `vol0abc` in the serial of an NVMe device of AWS.
fn ebs(id: &str) -> Option<String> {
    let digits = id.strip_prefix("vol-")?;
    let is_hex = digits.len() >= 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| format!("vol{digits}"))
}

/// 32 hexadecimal digits, with dashes or without, in any case: vSphere and Cinder write both.
fn uuid(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|sign| *sign != '-').collect();
    let is_uuid = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_uuid.then(|| digits.to_ascii_lowercase())
}

fn has_wwn(device: &BlockDevice, wanted: &str) -> bool {
    let wanted = name(wanted);
    wanted.is_some() && device.wwns.iter().any(|found| name(found) == wanted)
}

/// The digits of a World Wide Name: `naa.6000c29`, `wwn-0x6000c29`, `0x6000c29` and `6000c29` are one.
fn name(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_prefix("wwn-").unwrap_or(&text);
    let text = ["naa.", "eui.", "uuid.", "0x"]
        .into_iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    let digits: String = text.chars().filter(|sign| *sign != '-').collect();
    let is_name = digits.len() >= NAME && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_name.then_some(digits)
}

/// Whether a link's name ends with what the device says of itself: udev makes such names of it, and a link may be of yesterday.
fn is_named_by_link(device: &BlockDevice, resolved: &Resolved) -> bool {
    let own: Vec<String> = device
        .serials
        .iter()
        .chain(&device.texts)
        .map(|text| as_udev(text))
        .chain(device.wwns.iter().filter_map(|wwn| name(wwn)))
        .filter(|text| text.len() >= LINK)
        .collect();
    let links = resolved.by_id.iter().filter(|(_, target)| *target == device.name);
    links.map(|(link, _)| as_udev(link)).any(|link| {
        own.iter().any(|own| {
            link.strip_suffix(own.as_str())
                // `scsi-0` and `scsi-3` have a digit for the kind of name, `wwn-0x` a base.
                .is_some_and(|before| {
                    before.ends_with(['-', '_', 'x']) || before.ends_with("-0") || before.ends_with("-3")
                })
        })
    })
}

/// Runs of blanks are one `_` in names of links.
fn as_udev(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests;
