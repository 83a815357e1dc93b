//! What is on a device: by blkid's signatures, and by a look at its ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use tonic::Status;

use crate::filesystem::kind::FileSystem;
use crate::program::Ended;

/// So much at both ends has to be zeros. File systems, volume managers, partition tables and RAID have their signatures within it.
const ENDS: u64 = 1 << 20;

/// What a device has to be to count as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyCheck {
    /// No known signature, and zeros at both ends.
    #[default]
    Zeros,
    /// No known signature. For volumes whose unwritten blocks are not zeros, such as those that a hypervisor encrypts.
    Signatures,
}

/// What is on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Empty,
    /// A file system that volumes can have.
    FileSystem(FileSystem),
    /// Something else, by its name.
    Other(String),
}

/// What `blkid -p -o export` found. Exit code 2 says that nothing was found, and also that nothing could be read: so [`looks_written`] reads for itself.
///
/// # Errors
///
/// `Unavailable` when it does not say.
pub fn of_blkid(ended: &Ended) -> Result<Content, Status> {
    match ended.code {
        Some(0) => Ok(named(&ended.output)),
        Some(2) => Ok(Content::Empty),
        Some(8) => Ok(Content::Other("signatures of several kinds".to_owned())),
        _ => Err(Status::unavailable(format!("blkid {}", ended.told()))),
    }
}

/// `TYPE=ext4` and so on, one a line.
fn named(output: &str) -> Content {
    let value = |key: &str| {
        let mut values = output.lines().filter_map(|line| line.strip_prefix(key));
        values.next().map(str::trim).filter(|value| !value.is_empty())
    };
    match (value("TYPE="), value("PTTYPE=")) {
        (Some(name), None) => {
            FileSystem::parse(name).map_or_else(|| Content::Other(name.to_owned()), Content::FileSystem)
        }
        (Some(name), Some(table)) => Content::Other(format!("{name} and a partition table ({table})")),
        (None, Some(table)) => Content::Other(format!("a partition table ({table})")),
        // It found something, and does not say what.
        (None, None) => Content::Other("something without a name".to_owned()),
    }
}

/// Whether there is anything but zeros at either end.
///
/// # Errors
///
/// When it cannot be read.
pub fn looks_written(device: &mut (impl Read + Seek)) -> io::Result<bool> {
    let size = device.seek(SeekFrom::End(0))?;
    let mut buffer = Vec::new();
    for begin in [0, size.saturating_sub(ENDS)] {
        device.seek(SeekFrom::Start(begin))?;
        buffer.clear();
        device.by_ref().take(ENDS).read_to_end(&mut buffer)?;
        if (buffer.len() as u64) < ENDS.min(size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if buffer.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bytes of a device or file.
///
/// # Errors
///
/// When the system does not say.
pub fn size(mut device: &File) -> io::Result<u64> {
    device.seek(SeekFrom::End(0))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn blkid(code: i32, output: &str) -> Result<Content, Status> {
        of_blkid(&Ended {
            code: Some(code),
            output: output.to_owned(),
            errors: String::new(),
        })
    }

    #[test]
    fn signatures_are_distinguished() {
        let other = |text: &str| Content::Other(text.to_owned());
        for (code, output, expected) in [
            (2, "", Content::Empty),
            (
                0,
                "DEVNAME=/dev/a\nUUID=1-2\nTYPE=ext4\nUSAGE=filesystem\n",
                Content::FileSystem(FileSystem::Ext4),
            ),
            (0, "TYPE=xfs\n", Content::FileSystem(FileSystem::Xfs)),
            (0, "TYPE=crypto_LUKS\n", other("crypto_LUKS")),
            (0, "TYPE=LVM2_member\n", other("LVM2_member")),
            (0, "PTTYPE=gpt\n", other("a partition table (gpt)")),
            (0, "TYPE=ext4\nPTTYPE=dos\n", other("ext4 and a partition table (dos)")),
            (0, "", other("something without a name")),
            (0, "TYPE=\n", other("something without a name")),
            (8, "", other("signatures of several kinds")),
        ] {
            assert_eq!(blkid(code, output).unwrap(), expected, "{code} {output}");
        }
        assert_eq!(blkid(4, "").unwrap_err().code(), tonic::Code::Unavailable);
        assert_eq!(blkid(1, "TYPE=ext4").unwrap_err().code(), tonic::Code::Unavailable);
    }

    #[test]
    fn zeros_at_both_ends_are_looked_for() {
        let large = (3 * ENDS) as usize;
        let with = |at: usize| {
            let mut bytes = vec![0_u8; large];
            bytes[at] = 1;
            looks_written(&mut Cursor::new(bytes)).unwrap()
        };
        assert!(!looks_written(&mut Cursor::new(vec![0_u8; large])).unwrap());
        assert!(with(0) && with(ENDS as usize - 1) && with(large - 1) && with(2 * ENDS as usize));
        // The middle is not read: a volume may have terabytes.
        assert!(!with(ENDS as usize + 5));
        assert!(looks_written(&mut Cursor::new(vec![7_u8; 10])).unwrap());
        assert!(!looks_written(&mut Cursor::new(Vec::new())).unwrap());
    }
}
