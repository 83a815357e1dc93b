//! `SHA256SUMS`: the digests of all files of a folder, as `sha256sum --check` reads them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::kubernetes::oci::hex;

/// The name of the file.
pub const FILE: &str = "SHA256SUMS";

/// Writes it beside the files.
///
/// # Errors
///
/// When a file cannot be read or written.
pub fn write(folder: &Path) -> Result<()> {
    let text = of(folder)?;
    fs::write(folder.join(FILE), text).with_context(|| format!("writing {FILE}"))
}

/// The digest of a file in hexadecimal.
///
/// # Errors
///
/// When it cannot be read.
pub fn digest(file: &Path) -> Result<String> {
    let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(hex(&Sha256::digest(content)))
}

/// One line a file, sorted by name, but for the file of digests itself.
fn of(folder: &Path) -> Result<String> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.retain(|name| name != FILE);
    names.sort_unstable();
    let line = |name: &String| Ok(format!("{}  {name}\n", digest(&folder.join(name))?));
    names.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn sha256sum_finds_every_file_and_notices_a_change() {
        let folder = std::env::temp_dir().join(format!("cloudwit-checksums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["b.wasm", "a.tar.gz"] {
            fs::write(folder.join(name), name).unwrap();
        }
        write(&folder).unwrap();
        // A second time, with the file of digests there.
        write(&folder).unwrap();
        let text = fs::read_to_string(folder.join(FILE)).unwrap();
        let names: Vec<&str> = text.lines().filter_map(|line| line.split("  ").nth(1)).collect();
        let check = || {
            let mut command = Command::new("sha256sum");
            command
                .args(["--check", "--strict", "--quiet", FILE])
                .current_dir(&folder);
            command.output().unwrap().status.success()
        };
        let right = check();
        fs::write(folder.join("b.wasm"), "other").unwrap();
        let changed = check();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["a.tar.gz", "b.wasm"]);
        assert!(right && !changed);
    }
}
