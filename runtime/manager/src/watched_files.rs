//! Small files that are read again when they change, such as certificates: compared by content once a second, which sees every way of
//! replacing a file, the links of ConfigMap and Secret mounts included.

use std::path::PathBuf;
use std::time::Duration;

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Calls `reload` after each change of the content of `files`, which may name each other and are asked for anew each time. An error is
/// told once for each change, and what was before stays.
pub fn follow<F>(
    files: impl Fn() -> Vec<PathBuf> + Send + 'static,
    what: &'static str,
    reload: impl Fn() -> F + Send + 'static,
) where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    tokio::spawn(async move {
        let mut known = contents(files()).await;
        loop {
            tokio::time::sleep(PERIOD).await;
            let now = contents(files()).await;
            if now == known {
                continue;
            }
            known = now;
            match reload().await {
                Ok(()) => tracing::info!("{what}: changed, and read again"),
                Err(error) => {
                    tracing::warn!("{what}: changed, and cannot be used, so the last good one stays: {error:#}")
                }
            }
        }
    });
}

/// A file that cannot be read counts as empty.
async fn contents(files: Vec<PathBuf>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut contents = Vec::with_capacity(files.len());
    for file in files {
        let content = tokio::fs::read(&file).await.unwrap_or_default();
        contents.push((file, content));
    }
    contents
}
