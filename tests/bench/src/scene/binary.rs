//! The Cloudwit that is measured: a copy of its own, so that no build that goes on meanwhile replaces it in the middle of a run.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustix::fs::Advice;
use tempfile::TempDir;

/// How it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Build {
    /// The static binary that ships: profile `release`, for musl.
    Static,
    /// The release build for this system, where the static one cannot be built.
    Release,
}

impl Build {
    /// For the line that tells with what figures were taken.
    pub fn words(self) -> &'static str {
        match self {
            Self::Static => "Cloudwit is the static binary that ships",
            Self::Release => "Cloudwit is a release build for this system, NOT the static binary that ships",
        }
    }
}

/// A folder with the program `cloudwit` in it, and nothing else. Dropping it removes the folder.
#[derive(Debug)]
pub struct Binary {
    /// How it was built.
    pub build: Build,
    folder: TempDir,
}

impl Binary {
    /// A copy of this program, of which nothing is in memory: see [`forget`].
    ///
    /// # Errors
    ///
    /// When it cannot be copied.
    pub fn copy(program: &Path, build: Build) -> Result<Self> {
        let parent = xtask::workspace::target().join("bench");
        fs::create_dir_all(&parent).with_context(|| format!("making {}", parent.display()))?;
        let folder = tempfile::Builder::new()
            .prefix("cloudwit-")
            .tempdir_in(&parent)
            .context("making a folder for the program that is measured")?;
        let copy = folder.path().join("cloudwit");
        fs::copy(program, &copy).with_context(|| format!("copying {}", program.display()))?;
        forget(&copy)?;
        Ok(Self { build, folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Leaves nothing of this program in the page cache, so that it is read from the disk when it first runs, as one that was installed a while ago. Of a
/// file that was just written more would be mapped (5 MiB of the static binary), since the system keeps it in larger pieces.
///
/// # Errors
///
/// When it cannot be read, or written to the disk.
pub fn forget(program: &Path) -> Result<()> {
    let forgotten = File::open(program).and_then(|file| {
        file.sync_all()?;
        Ok(rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?)
    });
    forgotten.with_context(|| format!("letting the system forget {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_stays_when_the_original_is_built_anew() {
        let built = tempfile::NamedTempFile::new().unwrap();
        fs::write(built.path(), "one").unwrap();
        let binary = Binary::copy(built.path(), Build::Static).unwrap();
        fs::write(built.path(), "two").unwrap();
        let folder = binary.folder().to_owned();
        assert_eq!(fs::read(folder.join("cloudwit")).unwrap(), b"one");
        drop(binary);
        assert!(!folder.exists());
    }

    #[test]
    fn only_a_build_that_does_not_ship_is_called_so() {
        assert!(!Build::Static.words().contains("NOT") && Build::Release.words().contains("NOT"));
    }
}
