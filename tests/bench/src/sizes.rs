//! How large components are: they travel in ConfigMaps, which hold 1 MiB, and may be compressed there.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::Row;

/// The size of the provider, and of all test guests.
pub fn measure(provider: &Path, guests: &Path) -> Result<Vec<Row>> {
    let mut files = vec![provider.to_owned()];
    files.extend(xtask::guests::components(guests)?);
    files.iter().map(|file| row(file)).collect()
}

fn row(file: &Path) -> Result<Row> {
    let content = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&content)?;
    let packed = encoder.finish()?.len();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, format!("{} ({packed})", content.len())))
}
