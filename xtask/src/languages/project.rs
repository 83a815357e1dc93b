//! A project as its author has it: what `cloudwit provider new` writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::languages::Language;
use crate::{programs, tools, workspace};

/// The world of the templates.
const INSTANCES: &str = "cloud-provider-instances";

/// The world of the test guests.
const BALANCERS: &str = "cloud-provider-instances-load-balancers";

/// A provider that is written and not built yet.
#[derive(Debug, Clone)]
pub struct Project {
    /// The language.
    pub language: Language,
    /// Its name, and that of its component.
    pub name: String,
    folder: PathBuf,
    world: &'static str,
}

impl Project {
    /// The template as `cloudwit provider new` writes it.
    ///
    /// # Errors
    ///
    /// When Cloudwit does not build, or a file cannot be read or written.
    pub fn template(language: Language) -> Result<Self> {
        Self::written(language, &format!("{}-template", language.name()), INSTANCES, None)
    }

    /// The template with the files of `tests/guests/NAME-machines` over it.
    ///
    /// # Errors
    ///
    /// When Cloudwit does not build, or a file cannot be read or written.
    pub fn guest(language: Language) -> Result<Self> {
        let name = format!("{}-machines", language.name());
        let over = workspace::root().join("tests/guests").join(&name);
        Self::written(language, &name, BALANCERS, Some(&over))
    }

    /// Below a folder that is named after all that is in it, so that what was built of the same files is found again.
    fn written(language: Language, name: &str, world: &'static str, over: Option<&Path>) -> Result<Self> {
        let program = programs::build(&["cloudwit"])?.join("cloudwit");
        let parent = workspace::target().join("languages");
        fs::create_dir_all(&parent).with_context(|| format!("making {}", parent.display()))?;
        let lock = File::create(parent.join(format!("{name}.lock"))).context("making the lock of a project")?;
        lock.lock()
            .context("waiting for another process that writes a project")?;
        // Renamed when complete, so that an interrupted run leaves nothing that looks finished.
        let unfinished = parent.join(format!("unfinished-{name}"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
        }
        let mut new = Command::new(program);
        new.args(["provider", "new", name, "--lang", language.name(), "--out"])
            .arg(&unfinished);
        tools::output(&mut new)?;
        for (path, content) in over.map(read).transpose()?.unwrap_or_default() {
            let file = unfinished.join(path);
            fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
            fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
        }
        let mut files = read(&unfinished)?;
        files.sort();
        let mut hash = Sha256::new();
        for (path, content) in &files {
            for part in [path.as_os_str().as_encoded_bytes(), content] {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
        }
        let digest: String = hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let folder = parent.join(format!("{name}-{digest}"));
        if folder.is_dir() {
            fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
        } else {
            tools::remove_others(&parent, &format!("{name}-"), &folder);
            fs::rename(&unfinished, &folder).with_context(|| format!("moving {} to {name}", unfinished.display()))?;
        }
        Ok(Self {
            language,
            name: name.to_owned(),
            folder,
            world,
        })
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The component, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
    ///
    /// # Errors
    ///
    /// When a program is missing or it does not build; with the end of what the build said.
    pub fn component(&self) -> Result<PathBuf> {
        let _lock = self.lock()?;
        let file = self.folder.join(&self.name).with_extension("wasm");
        if !file.is_file() {
            self.language.build(&self.folder, self.world)?;
        }
        if !file.is_file() {
            bail!("the build of {} made no {}", self.name, file.display());
        }
        Ok(file)
    }

    /// Runs its own tests. Gives what the runner printed.
    ///
    /// # Errors
    ///
    /// When a test fails; with what the runner said.
    pub fn test(&self) -> Result<String> {
        let _lock = self.lock()?;
        self.language.test(&self.folder)
    }

    fn lock(&self) -> Result<File> {
        let file = File::create(self.folder.join("build.lock")).context("making the lock of a build")?;
        file.lock()
            .with_context(|| format!("waiting for another process that builds {}", self.name))?;
        Ok(file)
    }
}

/// All files below a folder, by their paths in it.
fn read(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inner) = folders.pop() {
        let here = folder.join(&inner);
        for entry in fs::read_dir(&here).with_context(|| format!("reading {}", here.display()))? {
            let path = entry?.path();
            let name = inner.join(path.file_name().unwrap_or_default());
            if path.is_dir() {
                folders.push(name);
            } else {
                let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
                found.push((name, content));
            }
        }
    }
    Ok(found)
}
