//! Programs written in Go by others, built once for each version and kept under `target/tools`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::go::module;
use crate::run::progress;
use crate::{tools, workspace};

/// A program, or several that share their packages.
#[derive(Debug, Clone, Copy)]
pub struct GoTool {
    /// What the folder under `target/tools` is called, without the version.
    pub name: &'static str,
    /// The version of the module.
    pub version: &'static str,
    /// The main packages.
    pub packages: &'static [&'static str],
    /// Build tags, separated by commas; usually none.
    pub tags: &'static str,
    /// What it is, and how long its first build takes.
    pub what: &'static str,
}

impl GoTool {
    /// The folder with the programs, which are built if they are not there yet. Safe to call from several processes at once: the others wait
    /// for the first.
    ///
    /// # Errors
    ///
    /// When Go is missing or a program does not build.
    pub fn get(&self) -> Result<PathBuf> {
        let tools_dir = workspace::target().join("tools");
        fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
        let lock = File::create(tools_dir.join(format!("{}.lock", self.name)))
            .with_context(|| format!("making the lock of the build of {}", self.name))?;
        lock.lock()
            .with_context(|| format!("waiting for another process that builds {}", self.name))?;
        let folder = tools_dir.join(format!("{}-{}", self.name, self.version));
        if !folder.is_dir() {
            self.build(&tools_dir.join(format!("{}.unfinished", self.name)), &folder)?;
            tools::remove_others(&tools_dir, &format!("{}-", self.name), &folder);
        }
        Ok(folder)
    }

    /// Renamed when complete, so that an interrupted build leaves nothing that looks finished.
    fn build(&self, unfinished: &Path, folder: &Path) -> Result<()> {
        tools::require_go_for(self.what)?;
        let mut packages = 0;
        let mut go = module::nice_go(&workspace::root());
        go.env("GOBIN", unfinished)
            .args(["install", "-v"])
            .args(module::QUICK)
            .args(["-ldflags=-s -w", "-tags", self.tags])
            .args(
                self.packages
                    .iter()
                    .map(|package| format!("{package}@{}", self.version)),
            );
        progress::run(&mut go, &format!("building {}", self.what), |line| {
            packages += 1;
            Some(format!("package {packages}, {line}"))
        })?;
        fs::rename(unfinished, folder).with_context(|| format!("moving {} to {}", self.name, folder.display()))
    }
}
