//! Component of a provider: a file, or an artifact of a registry that becomes one.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::registry::access::PinnedComponent;
use crate::registry::pull;

/// Where a component is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Component {
    /// In this file.
    File(PathBuf),
    /// In a registry.
    Pinned(Box<PinnedComponent>),
}

impl Component {
    /// The file that is loaded. Pulls what is in a registry and not yet below `cache_dir`.
    ///
    /// # Errors
    ///
    /// When the registry does not give it, or it is not what it has to be. Trying again may help.
    pub async fn file(&self, cache_dir: Option<&Path>) -> anyhow::Result<PathBuf> {
        match self {
            Self::File(file) => Ok(file.clone()),
            Self::Pinned(pinned) => pull::component(pinned, cache_dir).await,
        }
    }

    /// The files on this machine that it is made of, or pulled and checked by.
    pub fn files(&self) -> Vec<&PathBuf> {
        match self {
            Self::File(file) => vec![file],
            Self::Pinned(pinned) => pinned.files().collect(),
        }
    }
}

impl From<PathBuf> for Component {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Pinned(pinned) => pinned.reference.fmt(f),
        }
    }
}
