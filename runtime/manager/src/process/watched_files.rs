//! Watcher of small files such as certificates: checked once a second, read when changed.
//!
//! That happens on the blocking pool (`bounded_work`): a mount that hangs costs one thread, and what was read last stays in use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloudwit_host::bounded_work::{BoundedWorkError, FILE_LIMIT, bounded};

use crate::process::file_look::Fingerprint;

/// How often files are checked.
const PERIOD: Duration = Duration::from_secs(1);

/// Bytes of one file that count.
const FILE_BYTES: u64 = 4 << 20;

static FOLLOWERS: AtomicU64 = AtomicU64::new(0);

/// Calls `reload` after each change of `files`, which may name each other and are requested anew each time; that may block.
/// An error is logged once for each change, and what was before stays.
pub fn follow<F>(
    files: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static,
    what: impl Into<String>,
    reload: impl Fn() -> F + Send + 'static,
) where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let (files, what) = (Arc::new(files), what.into());
    // Several may follow the same file.
    let key = format!("{what}: watch {}", FOLLOWERS.fetch_add(1, Ordering::Relaxed));
    drop(tokio::spawn(async move {
        let (mut known, mut hangs) = (None, false);
        loop {
            let listed = files.clone();
            match bounded(&key, FILE_LIMIT, move || Fingerprint::of(&listed())).await {
                Ok(now) => {
                    hangs = false;
                    let changed = known.as_ref().is_some_and(|known| *known != now);
                    known = Some(now);
                    if changed {
                        match reload().await {
                            Ok(()) => tracing::info!("{what}: reloaded"),
                            Err(error) => {
                                tracing::warn!("{what}: reload failed; keeping the last good version: {error:#}")
                            }
                        }
                    }
                }
                Err(error) if !hangs => {
                    hangs = true;
                    tracing::warn!("{what}: read failed; keeping the last good version: {error}");
                }
                Err(_) => {}
            }
            tokio::time::sleep(PERIOD).await;
        }
    }));
}

/// Reads a change on the blocking pool; for `reload` of [`follow`].
pub async fn read_change(what: &str, read: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
    let read: Result<anyhow::Result<()>, BoundedWorkError> = bounded(&format!("{what}: read"), FILE_LIMIT, read).await;
    read?
}

/// The beginning of a file. Blocks.
pub fn read_file(file: &std::path::Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut content = Vec::new();
    std::fs::File::open(file)?.take(FILE_BYTES).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::sync::Mutex;

    use super::*;

    /// `O_NONBLOCK` of Linux.
    const NONBLOCK: i32 = 0o4000;

    /// A FIFO without a writer stands for a mount that hangs: whoever opens it waits for ever.
    #[tokio::test]
    async fn a_file_that_hangs_leaves_its_last_content_and_the_thread() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "1").unwrap();
        let (reads, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let last = Arc::new(Mutex::new(String::new()));
        let (watched, kept) = (file.clone(), last.clone());
        follow(move || vec![watched.clone()], "a test of a file that hangs", {
            let file = file.clone();
            move || {
                let (file, kept, reads) = (file.clone(), kept.clone(), reads.clone());
                async move {
                    let done = read_change("a test of a file that hangs", move || {
                        *kept.lock().unwrap() = String::from_utf8(read_file(&file)?)?;
                        Ok(())
                    });
                    done.await?;
                    reads.send(()).unwrap();
                    Ok(())
                }
            }
        });
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &file).unwrap();
        };
        // The first look may come after any of these.
        let mut number = 1;
        while tokio::time::timeout(PERIOD * 2, seen.recv()).await.is_err()
            || *last.lock().unwrap() != number.to_string()
        {
            number += 1;
            write(&number.to_string());
        }
        let fifo = folder.path().join("fifo");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        std::fs::rename(&fifo, &file).unwrap();
        // The writing end can be opened as soon as a reader hangs; the only thread of this test's runtime runs meanwhile.
        let writer = loop {
            let end = std::fs::OpenOptions::new()
                .write(true)
                .custom_flags(NONBLOCK)
                .open(&file);
            match end {
                Ok(writer) => break writer,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert_eq!(*last.lock().unwrap(), number.to_string());
        // Ends the thread that hangs.
        drop(writer);
    }
}
