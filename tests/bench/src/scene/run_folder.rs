//! The folder of one run: logs, configuration, the files of its cluster. Each run has its own, so that benchmarks beside each other do not meet; only
//! the results are shared.
//!
//! It goes when the run has reached its end. That of a run that failed stays, since its logs say why, and standard error says where it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Removed by [`done`](Self::done), and by nothing else.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    done: bool,
}

impl RunFolder {
    /// A new one in `target/bench`, whose name begins with that of the work.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn new(work: &str) -> Result<Self> {
        Self::new_in(&xtask::workspace::target().join("bench"), work)
    }

    fn new_in(parent: &Path, work: &str) -> Result<Self> {
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        let folder = tempfile::Builder::new()
            .prefix(&format!("{work}-"))
            .tempdir_in(parent)
            .with_context(|| format!("making a folder in {}", parent.display()))?;
        Ok(Self {
            path: folder.keep(),
            done: false,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run reached its end, and all its processes have ended: nobody needs the folder any more.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn done(mut self) -> Result<()> {
        self.done = true;
        fs::remove_dir_all(&self.path).with_context(|| format!("removing {}", self.path.display()))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.done {
            eprintln!("the run did not reach its end; its logs: {}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_the_same_work_do_not_share_a_folder() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| RunFolder::new_in(parent.path(), "wave").unwrap());
        assert_ne!(one.path(), other.path());
        one.done().unwrap();
        assert!(other.path().is_dir());
    }

    #[test]
    fn folder_goes_after_complete_run_and_stays_otherwise() {
        let parent = tempfile::tempdir().unwrap();
        let left = || fs::read_dir(parent.path()).unwrap().count();
        let folder = RunFolder::new_in(parent.path(), "wave").unwrap();
        fs::write(folder.path().join("log"), "why").unwrap();
        folder.done().unwrap();
        assert_eq!(left(), 0);
        let folder = RunFolder::new_in(parent.path(), "wave").unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "why").unwrap();
        drop(folder);
        assert_eq!(fs::read_to_string(log).unwrap(), "why");
    }
}
