//! Images of one layer as tar archives, as containerd imports them; made without a builder of images.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::release::packing;
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
    /// Writes the image with the files below `root` to `file`, for this kind of machine. `work` is a folder for what comes in between.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn archive(&self, root: &Path, work: &Path, file: &Path) -> Result<()> {
        let blobs = Blobs::below(work)?;
        let layer = work.join("layer.tar");
        archive(root, &layer)?;
        let content = fs::read(&layer).context("reading the layer of the image")?;
        let layer = blobs.add("layer.v1.tar", &content)?;
        let diff = layer["digest"].clone();
        let listed = self.manifest(&blobs, "amd64", &layer, &diff)?;
        blobs.finish(self.named(listed), file)
    }

    /// Writes an image for several kinds of machines as a layout in a tar archive: an index that leads to one manifest for each of `roots`, which has the name
    /// of its architecture as OCI calls it. Layers are packed. Gives the digest of the index, by which a registry will have the image.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn archive_for(&self, roots: &[(&str, &Path)], work: &Path, file: &Path) -> Result<String> {
        let blobs = Blobs::below(work)?;
        let mut manifests = Vec::new();
        for (architecture, root) in roots {
            let (plain, packed) = (work.join("layer.tar"), work.join("layer.tar.packed"));
            archive(root, &plain)?;
            let read = |file: &Path| fs::read(file).with_context(|| format!("reading {}", file.display()));
            let diff = json!(digest(&read(&plain)?));
            packing::compress(&plain, &packed)?;
            let layer = blobs.add("layer.v1.tar+gzip", &read(&packed)?)?;
            manifests.push(self.manifest(&blobs, architecture, &layer, &diff)?);
        }
        let index = json!({ "schemaVersion": 2, "mediaType": kind("index.v1+json"), "manifests": manifests });
        let listed = blobs.add("index.v1+json", index.to_string().as_bytes())?;
        let digest = listed["digest"].as_str().unwrap_or_default().to_owned();
        blobs.finish(self.named(listed), file)?;
        Ok(digest)
    }

    /// Writes configuration and manifest of one kind of machine. Gives what describes the manifest.
    fn manifest(&self, blobs: &Blobs, architecture: &str, layer: &Value, diff: &Value) -> Result<Value> {
        let config = json!({
            "architecture": architecture,
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": [format!("PATH={}", self.path)],
                "User": self.user,
                "WorkingDir": "/",
            },
            "rootfs": { "type": "layers", "diff_ids": [diff] },
        });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": kind("manifest.v1+json"),
            "config": blobs.add("config.v1+json", config.to_string().as_bytes())?,
            "layers": [layer],
        });
        let mut described = blobs.add("manifest.v1+json", manifest.to_string().as_bytes())?;
        described["platform"] = json!({ "architecture": architecture, "os": "linux" });
        Ok(described)
    }

    /// With what importers call it by.
    fn named(&self, mut described: Value) -> Value {
        let tag = self.name.rsplit(':').next().unwrap_or_default();
        described["annotations"] =
            json!({ "io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": tag });
        described
    }
}

/// The layout of an image that is being written.
struct Blobs {
    layout: PathBuf,
}

impl Blobs {
    fn below(work: &Path) -> Result<Self> {
        let layout = work.join("oci");
        let blobs = layout.join("blobs/sha256");
        fs::create_dir_all(&blobs).with_context(|| format!("making {}", blobs.display()))?;
        Ok(Self { layout })
    }

    /// Writes a blob under its digest. Gives what describes it.
    fn add(&self, media: &str, content: &[u8]) -> Result<Value> {
        let digest = digest(content);
        let name = digest.trim_start_matches("sha256:");
        fs::write(self.layout.join("blobs/sha256").join(name), content)
            .with_context(|| format!("writing the blob {digest}"))?;
        Ok(json!({ "mediaType": kind(media), "digest": digest, "size": content.len() }))
    }

    /// Writes all of it into a tar archive that begins with what this describes.
    fn finish(&self, listed: Value, file: &Path) -> Result<()> {
        let index = json!({ "schemaVersion": 2, "manifests": [listed] });
        fs::write(self.layout.join("index.json"), index.to_string()).context("writing the index of the image")?;
        fs::write(self.layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)
            .context("writing the layout of the image")?;
        archive(&self.layout, file)
    }
}

/// A media type of OCI's.
fn kind(name: &str) -> String {
    format!("application/vnd.oci.image.{name}")
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(content)))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
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

    /// An image with one file a machine, and its layout unpacked.
    fn layout_of(machines: &[&str], test: impl FnOnce(&Path, &str)) {
        let folder = std::env::temp_dir().join(format!("cloudwit-oci-{}", machines.concat()));
        let roots: Vec<_> = machines.iter().map(|machine| folder.join(machine)).collect();
        for (machine, root) in machines.iter().zip(&roots) {
            fs::create_dir_all(root).unwrap();
            fs::write(root.join("program"), machine).unwrap();
        }
        let image = OciImage {
            name: "example.com/x:1",
            entrypoint: &["/program"],
            path: "/",
            user: "0",
        };
        let roots: Vec<_> = machines
            .iter()
            .copied()
            .zip(roots.iter().map(PathBuf::as_path))
            .collect();
        let digest = image
            .archive_for(&roots, &folder.join("work"), &folder.join("x.tar"))
            .unwrap();
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked).unwrap();
        tools::output(
            Command::new("tar")
                .arg("-xf")
                .arg(folder.join("x.tar"))
                .arg("-C")
                .arg(&unpacked),
        )
        .unwrap();
        test(&unpacked, &digest);
        fs::remove_dir_all(folder).unwrap();
    }

    /// The blob that this describes, whose digest and size are right.
    fn blob(layout: &Path, described: &Value) -> Vec<u8> {
        let name = described["digest"].as_str().unwrap();
        let content = fs::read(layout.join("blobs").join(name.replace(':', "/"))).unwrap();
        assert_eq!(digest(&content), name);
        assert_eq!(described["size"], content.len());
        content
    }

    fn read(layout: &Path, described: &Value) -> Value {
        serde_json::from_slice(&blob(layout, described)).unwrap()
    }

    #[test]
    fn index_leads_to_a_manifest_and_a_layer_for_each_machine() {
        let machines = ["amd64", "arm64"];
        layout_of(&machines, |layout, digest_of_index| {
            let entry: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
            let listed = &entry["manifests"][0];
            assert_eq!(listed["digest"], digest_of_index);
            assert_eq!(listed["annotations"]["org.opencontainers.image.ref.name"], "1");
            let index = read(layout, listed);
            assert_eq!(index["manifests"].as_array().unwrap().len(), machines.len());
            for (machine, described) in machines.iter().zip(index["manifests"].as_array().unwrap()) {
                assert_eq!(described["platform"]["architecture"], *machine);
                let manifest = read(layout, described);
                let config = read(layout, &manifest["config"]);
                assert_eq!(config["architecture"], *machine);
                let layer = layout.join("layer.tar.gz");
                fs::write(&layer, blob(layout, &manifest["layers"][0])).unwrap();
                tools::output(Command::new("gunzip").arg("--force").arg(&layer)).unwrap();
                let plain = fs::read(layer.with_extension("")).unwrap();
                assert_eq!(
                    config["rootfs"]["diff_ids"][0],
                    digest(&plain),
                    "the digest before packing"
                );
                let program = tools::output(
                    Command::new("tar")
                        .arg("-xOf")
                        .arg(layer.with_extension(""))
                        .arg("./program"),
                );
                assert_eq!(program.unwrap(), *machine);
            }
        });
    }
}
