//! Virtual environments for the third-party servers that are written in Python, made once for each version of their requirements.
//!
//! A file of requirements pins every package with the digests of its files. The environment lies under `target/tools`, named after a hash of
//! that file and of the Python that runs it; a new one takes the place of the older ones of its name.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::run::progress;
use crate::{debian, tools, workspace};

/// The oldest version that all packages run on.
const OLDEST: (u32, u32) = (3, 11);

/// Written when all packages are there: an environment cannot be renamed once made, since its programs know where it lies.
const COMPLETE: &str = "complete";

/// Prints the version and fails where the modules are missing that Debian packs apart.
const ASK: &str =
    "import sys, ensurepip, venv; print(sys.version_info[0], sys.version_info[1], sys.version.replace(chr(10), ' '))";

/// An environment that is there.
#[derive(Debug, Clone)]
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment with these requirements, a file named from the root (`tests/python/moto.txt`), made if it is not there yet (a minute or
    /// so, with progress). Safe to call from several processes at once: the others wait for the first.
    ///
    /// # Errors
    ///
    /// When Python or a part of it is missing, or a package cannot be had.
    pub fn get(name: &str, requirements: &str) -> Result<Self> {
        let requirements = workspace::root().join(requirements);
        let text = fs::read(&requirements).with_context(|| format!("reading {}", requirements.display()))?;
        let python = require_python()?;
        let tools_dir = workspace::target().join("tools");
        fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
        let lock = File::create(tools_dir.join(format!("python-{name}.lock")))
            .with_context(|| format!("making the lock of the Python environment {name}"))?;
        lock.lock()
            .with_context(|| format!("waiting for another process that makes the Python environment {name}"))?;
        let begin = format!("python-{name}-");
        let folder = tools_dir.join(format!("{begin}{}", fingerprint(&text, &python)));
        if !folder.join(COMPLETE).is_file() {
            make(name, &folder, &requirements)?;
            tools::remove_others(&tools_dir, &begin, &folder);
        }
        Ok(Self { folder })
    }

    /// The interpreter.
    pub fn python(&self) -> PathBuf {
        self.program("python")
    }

    /// A program that one of the packages brings.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// The folder in which all of it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Checks that there is a Python that can make environments, and gives its version in words.
///
/// # Errors
///
/// When there is none, or it is too old, or lacks a part; says how to get it.
pub fn require_python() -> Result<String> {
    let how = "on Debian and Ubuntu `apt-get install python3-venv`, on Fedora `dnf install python3`, elsewhere from https://python.org";
    if tools::find("python3").is_none() {
        bail!("Python is missing, which runs third-party servers of the tests: {how}");
    }
    let said = tools::output(Command::new("python3").args(["-c", ASK]));
    let said = said.with_context(|| format!("python3 cannot make environments (modules venv and ensurepip): {how}"))?;
    checked_version(said.trim())
}

/// The same, after having installed it if this is Debian and we may.
///
/// # Errors
///
/// As [`require_python`].
pub fn get_python() -> Result<String> {
    match require_python() {
        Err(missing) if !debian::install(&["python3", "python3-venv"])? => Err(missing),
        Err(_) => require_python(),
        found => found,
    }
}

fn checked_version(said: &str) -> Result<String> {
    let mut words = said.splitn(3, ' ');
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u32>().ok());
    let (major, minor) = (number(words.next()), number(words.next()));
    let (Some(major), Some(minor)) = (major, minor) else {
        bail!("python3 says {said:?} where its version was expected");
    };
    if (major, minor) < OLDEST {
        bail!(
            "python3 is {major}.{minor}, and the third-party servers of the tests need {}.{} or newer",
            OLDEST.0,
            OLDEST.1
        );
    }
    Ok(words.next().unwrap_or_default().to_owned())
}

/// A hash of what goes into the environment.
fn fingerprint(requirements: &[u8], python: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(requirements.len().to_le_bytes());
    hash.update(requirements);
    hash.update(python);
    let digest = hash.finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn make(name: &str, folder: &Path, requirements: &Path) -> Result<()> {
    if folder.exists() {
        // Begun and not completed.
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let mut venv = Command::new("nice");
    venv.args(["python3", "-m", "venv"]).arg(folder);
    progress::run(&mut venv, &format!("making the Python environment {name}"), |_| None)?;
    let mut packages = 0;
    let mut pip = Command::new("sh");
    // Its lines go to standard output, where progress does not look; the shell sends them over.
    pip.args(["-c", r#"exec nice "$@" >&2"#, "pip"])
        .arg(folder.join("bin/python"))
        .args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"])
        // With the digest of one file in there, pip asks for the digests of all.
        .arg("--requirement")
        .arg(requirements);
    progress::run(&mut pip, &format!("fetching the Python packages of {name}"), |line| {
        let package = line.trim().strip_prefix("Collecting ")?;
        packages += 1;
        Some(format!(
            "package {packages}, {}",
            package.split(' ').next().unwrap_or_default()
        ))
    })
    .with_context(|| format!("the Python environment {name} could not be made"))?;
    fs::write(folder.join(COMPLETE), "").with_context(|| format!("writing in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_or_unparsable_python_is_refused_by_version() {
        assert_eq!(checked_version("3 12 3.12.1 (main)").unwrap(), "3.12.1 (main)");
        let old = checked_version("3 9 3.9.2 (default)").unwrap_err().to_string();
        assert!(old.contains("3.9") && old.contains("3.11"), "{old}");
        let nonsense = checked_version("Segmentation fault").unwrap_err().to_string();
        assert!(nonsense.contains("Segmentation fault"), "{nonsense}");
    }

    #[test]
    fn another_python_or_other_requirements_are_another_environment() {
        let known = fingerprint(b"moto==5.2.5", "3.11.7");
        assert_eq!(known, fingerprint(b"moto==5.2.5", "3.11.7"));
        assert_ne!(known, fingerprint(b"moto==5.2.6", "3.11.7"));
        assert_ne!(known, fingerprint(b"moto==5.2.5", "3.12.1"));
    }

    #[test]
    fn each_package_is_pinned_to_version_and_digests() {
        let folder = workspace::root().join("tests/python");
        let mut files = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|kind| kind != "txt") {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&file).unwrap();
            for package in text.replace("\\\n", " ").lines().filter(|line| !line.starts_with('#')) {
                let pinned = package.contains("==") && package.contains("--hash=sha256:");
                assert!(pinned || package.trim().is_empty(), "{}: {package}", file.display());
            }
        }
        assert!(files > 0);
    }
}
