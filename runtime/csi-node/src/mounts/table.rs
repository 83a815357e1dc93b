//! The mount table as `/proc/self/mountinfo` has it (proc(5)).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Where the kernel shows it.
const MOUNTINFO: &str = "/proc/self/mountinfo";

/// A table that is larger is not read: a machine with a thousand Pods has one of 2 MiB.
const LARGEST: u64 = 32 << 20;

/// Major and minor number of a device.
pub type Number = (u32, u32);

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device of the file system.
    pub device: Number,
    /// What of the file system is mounted; `/` for all of it.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// Whether this mount can be read only; the file system may be writable elsewhere.
    pub read_only: bool,
    /// The file system's name.
    pub file_system: String,
}

/// Why there is no table.
#[derive(Debug, Error)]
pub enum TableError {
    /// It cannot be read.
    #[error("{MOUNTINFO} cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is larger than any machine's.
    #[error("{MOUNTINFO} has more than {LARGEST} bytes")]
    Large,
    /// Two checks in a row were never the same.
    #[error("{MOUNTINFO} changes all the time")]
    Changes,
    /// A line is not as the kernel writes it.
    #[error("line {0} of {MOUNTINFO} is not understood")]
    Line(usize),
}

impl From<TableError> for tonic::Status {
    fn from(error: TableError) -> Self {
        Self::unavailable(error.to_string())
    }
}

/// Looks at the table until it is the same twice; a busy machine mounts some tens a second.
const LOOKS: usize = 10;

fn bytes() -> Result<Vec<u8>, TableError> {
    let mut bytes = Vec::new();
    File::open(MOUNTINFO)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(TableError::Large);
    }
    Ok(bytes)
}

/// All mounts, in the order of the kernel: what is mounted over another comes after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table(pub Vec<Mount>);

impl Table {
    /// As it is now. Read until it is the same twice: kernels before 5.8 leave entries out when another is unmounted while it is read.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or changes all the time.
    pub fn read() -> Result<Self, TableError> {
        let mut before = bytes()?;
        for _ in 0..LOOKS {
            let now = bytes()?;
            if now == before {
                return Self::parse(&now);
            }
            before = now;
        }
        Err(TableError::Changes)
    }

    /// Reads what the kernel wrote.
    ///
    /// # Errors
    ///
    /// At the first line that is not understood: a mount that is overlooked would be mounted over.
    pub fn parse(bytes: &[u8]) -> Result<Self, TableError> {
        let lines = bytes.split(|byte| *byte == b'\n').enumerate();
        let mounts = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(index, line)| mount(line).ok_or(TableError::Line(index + 1)));
        Ok(Self(mounts.collect::<Result<_, _>>()?))
    }

    /// What is seen at this path, if anything is mounted right there.
    pub fn at(&self, path: &Path) -> Option<&Mount> {
        self.0.iter().rfind(|mount| mount.point == path)
    }

    /// Where else the same is mounted: the same part of the same file system.
    pub fn others<'a>(&'a self, of: &'a Mount) -> impl Iterator<Item = &'a Mount> {
        self.0
            .iter()
            .filter(|mount| mount.device == of.device && mount.root == of.root && mount.point != of.point)
    }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = (major.parse().ok()?, minor.parse().ok()?);
    let (root, point, options) = (fields.next()?, fields.next()?, fields.next()?);
    let read_only = options.split(|byte| *byte == b',').any(|option| option == b"ro");
    // As many optional fields as the kernel has.
    fields.find(|field| *field == b"-")?;
    let file_system = String::from_utf8(fields.next()?.to_vec()).ok()?;
    Some(Mount {
        device,
        root: unescape(root),
        point: unescape(point),
        read_only,
        file_system,
    })
}

/// Blanks, tabs, line ends and backslashes are written as `\040` and so on.
fn unescape(field: &[u8]) -> PathBuf {
    let mut read = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let number = (*byte == b'\\').then(|| after.get(..3).and_then(octal)).flatten();
        match number {
            Some(number) => {
                read.push(number);
                rest = &after[3..];
            }
            None => {
                read.push(*byte);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(read))
}

fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 8)
        .ok()
        .filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
