//! Images of one layer as tar archives, as containerd imports them; made without a builder of images.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tools;

/// What an image is, besides its files.
#[derive(Debug, Clone, Copy)]
pub struct OciImage<'a> {
    /// Its whole name with the tag.
    pub name: &'a str,
    /// What a container runs unless it is told otherwise.
    pub entrypoint: &'a [&'a str],
    /// The variable `PATH`.
    pub path: &'a str,
    /// Who runs it, `UID` or `UID:GID`.
    pub user: &'a str,
}

impl OciImage<'_> {
    /// Writes the image with the files below `root` to `file`. `work` is a folder for what comes in between.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn archive(&self, root: &Path, work: &Path, file: &Path) -> Result<()> {
        let blobs = work.join("oci/blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("making {}", blobs.display()))?;
        let layer = work.join("layer.tar");
        archive(root, &layer)?;
        let content = fs::read(&layer).context("reading the layer of the image")?;
        let layer = blob(&blobs, &content)?;
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": [format!("PATH={}", self.path)],
                "User": self.user,
                "WorkingDir": "/",
            },
            "rootfs": { "type": "layers", "diff_ids": [layer] },
        });
        let config = config.to_string().into_bytes();
        let described = |kind: &str, digest: &str, size: usize| json!({ "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": digest, "size": size });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("config.v1+json", &blob(&blobs, &config)?, config.len()),
            "layers": [described("layer.v1.tar", &layer, content.len())],
        });
        let manifest = manifest.to_string().into_bytes();
        let mut listed: Value = described("manifest.v1+json", &blob(&blobs, &manifest)?, manifest.len());
        let tag = self.name.rsplit(':').next().unwrap_or_default();
        listed["platform"] = json!({ "architecture": "amd64", "os": "linux" });
        listed["annotations"] =
            json!({ "io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": tag });
        let index = json!({ "schemaVersion": 2, "manifests": [listed] });
        fs::write(work.join("oci/index.json"), index.to_string()).context("writing the index of the image")?;
        fs::write(work.join("oci/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)
            .context("writing the layout of the image")?;
        archive(&work.join("oci"), file)
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes a blob under its digest, which it gives.
fn blob(folder: &Path, content: &[u8]) -> Result<String> {
    let digest = hex(&Sha256::digest(content));
    fs::write(folder.join(&digest), content).with_context(|| format!("writing the blob {digest}"))?;
    Ok(format!("sha256:{digest}"))
}

fn archive(folder: &Path, file: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    // Always the same bytes, whoever makes it and when.
    command.args([
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "-cf",
    ]);
    tools::output(command.arg(file).arg("-C").arg(folder).arg("."))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_after_its_content() {
        let folder = std::env::temp_dir().join(format!("blob-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let digest = blob(&folder, b"").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest, format!("sha256:{empty}"));
        assert!(folder.join(empty).is_file());
        fs::remove_dir_all(folder).unwrap();
    }
}
