//! Mount options of a request: flags of the system call, and what the file system itself reads.

use rustix::mount::MountFlags;

/// Options of one volume.
const MOST: usize = 64;

/// The kernel takes one page.
const LONGEST: usize = 4095;

/// Parsed options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// What any file system can be mounted with. Never [`MountFlags::RDONLY`].
    pub flags: Flags,
    /// Whether it can be read only.
    pub read_only: bool,
    /// What is for the file system alone.
    pub data: Vec<String>,
}

/// Flags as an enumeration of their own: rustix' have no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub MountFlags);

impl Default for Flags {
    fn default() -> Self {
        Self(MountFlags::empty())
    }
}

/// Each flag with the options that set it and take it back (mount(8)).
const FLAGS: [(&str, &str, MountFlags); 9] = [
    ("nosuid", "suid", MountFlags::NOSUID),
    ("nodev", "dev", MountFlags::NODEV),
    ("noexec", "exec", MountFlags::NOEXEC),
    ("noatime", "atime", MountFlags::NOATIME),
    ("nodiratime", "diratime", MountFlags::NODIRATIME),
    ("relatime", "norelatime", MountFlags::RELATIME),
    ("strictatime", "nostrictatime", MountFlags::STRICTATIME),
    ("sync", "async", MountFlags::SYNCHRONOUS),
    ("dirsync", "nodirsync", MountFlags::DIRSYNC),
];

/// Options for mount(8) and fstab(5) alone.
const FOR_OTHERS: [&str; 7] = ["defaults", "auto", "noauto", "nofail", "_netdev", "user", "nouser"];

/// Options that would do something else than mount this volume here, or would bring in another device.
const REFUSED: [&str; 13] = [
    "bind",
    "rbind",
    "move",
    "remount",
    "loop",
    "shared",
    "rshared",
    "offset",
    "sizelimit",
    "journal_dev",
    "journal_path",
    "logdev",
    "rtdev",
];

impl MountOptions {
    /// Reads the options of a capability; each may be several with commas.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn parse(options: &[String]) -> Result<Self, String> {
        let length: usize = options.iter().map(|option| option.len() + 1).sum();
        if options.len() > MOST || length > LONGEST {
            return Err(format!(
                "{} mount options of {length} bytes, at most {MOST} of {LONGEST} bytes are allowed",
                options.len()
            ));
        }
        let mut read = Self::default();
        for option in options.iter().flat_map(|option| option.split(',')).map(str::trim) {
            read.add(option)?;
        }
        Ok(read)
    }

    fn add(&mut self, option: &str) -> Result<(), String> {
        if option.contains(char::is_control) {
            return Err(format!("mount option {option:?} contains control characters"));
        }
        let name = option.split('=').next().unwrap_or_default();
        if REFUSED.contains(&name) {
            return Err(format!("mount option {name} cannot be used for volumes"));
        }
        if option.is_empty() || FOR_OTHERS.contains(&option) {
            return Ok(());
        }
        match option {
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            _ => {
                for (set, unset, flag) in FLAGS {
                    if option == set {
                        self.flags.0 |= flag;
                        return Ok(());
                    }
                    if option == unset {
                        self.flags.0 &= !flag;
                        return Ok(());
                    }
                }
                self.data.push(option.to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<MountOptions, String> {
        MountOptions::parse(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn flags_and_file_system_options_are_separated() {
        let read = parse(&["noatime,nosuid", "discard", "errors=remount-ro", "defaults", "ro"]).unwrap();
        assert_eq!(read.flags.0, MountFlags::NOATIME | MountFlags::NOSUID);
        assert!(read.read_only);
        assert_eq!(read.data, ["discard", "errors=remount-ro"]);
    }

    #[test]
    fn later_options_take_back_earlier_ones() {
        let read = parse(&["nosuid", "suid", "ro", "rw", "noexec"]).unwrap();
        assert_eq!((read.flags.0, read.read_only), (MountFlags::NOEXEC, false));
    }

    #[test]
    fn options_that_mount_something_else_are_refused() {
        for refused in ["bind", "remount", "loop", "offset=5", "logdev=/dev/sda", "a\u{0}b"] {
            assert!(parse(&[refused]).is_err(), "{refused:?}");
            assert!(parse(&["noatime", &format!("rw,{refused}")]).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn number_and_length_are_bounded() {
        assert!(parse(&["discard"; MOST + 1]).is_err());
        assert!(parse(&[&"x".repeat(LONGEST)]).is_err());
        assert_eq!(parse(&[]).unwrap(), MountOptions::default());
    }
}
