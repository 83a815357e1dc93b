//! Cache folders that only this process's user may write to: created, checked, kept small.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Makes the folder, with those above it, and checks that no other user could write to it.
///
/// # Errors
///
/// What is wrong, as a sentence about "it".
pub fn create(dir: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| io::Error::new(error.kind(), format!("it cannot be created: {error}")))?;
    let metadata = fs::symlink_metadata(dir)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("it is not a folder"));
    }
    if !is_private(&metadata) {
        let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
        return Err(io::Error::other(format!(
            "it belongs to user {owner} with mode {mode:o} and so may hold code of others"
        )));
    }
    Ok(())
}

/// Whether this process's user owns it and no other user may write to it.
pub(crate) fn is_private(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// Writes a file of these parts, one after the other, beside its place and renames it, so that a reader never finds half of it.
///
/// # Errors
///
/// When it cannot be written; then nothing is left beside it.
pub fn write(file: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let beside = file.with_extension(format!("{}.{:?}.new", std::process::id(), std::thread::current().id()));
    let result = write_new(&beside, parts).and_then(|()| fs::rename(&beside, file));
    if result.is_err() {
        // What matters is the first error. A file that stays is replaced by the next one of its name.
        drop(fs::remove_file(&beside));
    }
    result
}

fn write_new(file: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut opened = create_new(file).or_else(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        fs::remove_file(file)?;
        create_new(file)
    })?;
    parts.iter().try_for_each(|part| opened.write_all(part))
}

fn create_new(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)
}

/// Removes the files that were changed longest ago, until so many are left. One that cannot be removed stays.
pub fn remove_oldest(dir: &Path, keep: usize) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(keep);
    for (_, file) in &files[..surplus] {
        if let Err(error) = fs::remove_file(file) {
            tracing::debug!(file = %file.display(), %error, "failed to remove an old entry of a cache");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KEPT: usize = 32;

    #[test]
    fn only_the_newest_entries_stay() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..KEPT + 3 {
            let file = File::create(dir.path().join(number.to_string())).unwrap();
            let age = u64::try_from(number).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(age))
                .unwrap();
        }
        remove_oldest(dir.path(), KEPT);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), KEPT);
        assert!(!dir.path().join("2").exists() && dir.path().join("3").exists());
    }
}
