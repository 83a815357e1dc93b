//! File systems that volumes can have.

use std::fmt;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, which old volumes have.
    Ext2,
    /// ext3, which old volumes have.
    Ext3,
    /// ext4, the default.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs];

    /// The kernel's name, which blkid has too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The one with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
