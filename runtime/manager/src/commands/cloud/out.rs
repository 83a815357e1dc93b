//! The answer of a command, on standard output or in a file.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Where the answer goes.
#[derive(Debug, clap::Args)]
pub struct OutArgs {
    /// Write the answer to this file instead, whole or not at all. One that has it already is not touched.
    #[arg(id = "cloud_out", long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
}

impl OutArgs {
    /// Prints or writes it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&self, text: &str) -> anyhow::Result<()> {
        match &self.out {
            Some(file) => write(file, text).with_context(|| format!("--out={}", file.display())),
            None => print(text).context("printing the answer"),
        }
    }
}

/// Whoever reads may stop before the end, as `head` does.
fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Beside the file first, and then in its place: who reads it finds the old one or the new one.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if fs::read(file).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    let Some(name) = file.file_name() else {
        bail!("this is not a file name");
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", std::process::id()));
    let beside = folder.join(hidden);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_whole_and_left_alone_when_equal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/location");
        write(&file, "a\n").unwrap();
        let first = fs::metadata(&file).unwrap().modified().unwrap();
        write(&file, "a\n").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), first);
        write(&file, "b\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "b\n");
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing else is left"
        );
        assert!(write(folder.path(), "a\n").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
