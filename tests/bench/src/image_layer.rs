//! The image that holds one program and nothing else, as a registry keeps it: one layer, a tar archive packed by gzip. The file that describes the image
//! comes to less than a kilobyte and is left out.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Where `deploy/image/Containerfile` puts the program.
const FOLDER: &str = "usr/local/bin";

/// Bytes of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// On the disk of a machine that runs it.
    pub unpacked: usize,
    /// As it is pulled.
    pub packed: usize,
}

/// The layer with this program.
///
/// # Errors
///
/// When the program cannot be read, or `tar` is missing.
pub fn of(program: &Path) -> Result<Layer> {
    let root = tempfile::tempdir().context("making a folder")?;
    let folder = root.path().join(FOLDER);
    fs::create_dir_all(&folder).context("making the folders of a layer")?;
    let name = program.file_name().context("the program has no name")?;
    fs::copy(program, folder.join(name)).with_context(|| format!("copying {}", program.display()))?;
    let archive = Command::new("tar")
        .args([
            "--create",
            "--numeric-owner",
            "--owner=0",
            "--group=0",
            "--file=-",
            "--directory",
        ])
        .arg(root.path())
        .arg("usr")
        .output()
        .context("starting tar")?;
    ensure!(
        archive.status.success(),
        "tar failed: {}",
        String::from_utf8_lossy(&archive.stderr)
    );
    Ok(Layer {
        unpacked: archive.stdout.len(),
        packed: packed(&archive.stdout, Compression::default())?,
    })
}

/// How many bytes gzip makes of it.
///
/// # Errors
///
/// Never in practice: it is written into memory.
fn packed(content: &[u8], level: Compression) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(content).context("packing")?;
    Ok(encoder.finish().context("packing")?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_the_program_and_a_little_that_packs_well() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![7; 1 << 20]).unwrap();
        let Layer { unpacked, packed } = of(file.path()).unwrap();
        assert!(unpacked > 1 << 20 && unpacked < (1 << 20) + (32 << 10), "{unpacked}");
        assert!(packed < 32 << 10, "{packed}");
        assert!(of(Path::new("/not/there")).is_err());
    }
}
