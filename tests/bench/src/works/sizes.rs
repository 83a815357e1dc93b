//! How large things are: components travel in ConfigMaps, which hold 1 MiB, and may be compressed there; a binary is pulled by every machine that
//! may run it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::image_layer;
use crate::measure::{Goal, Measure, Section, Unit};

/// What the image may have on a disk.
const IMAGE: f64 = 25e6;

/// What is measured.
#[derive(Debug)]
pub struct Things<'a> {
    /// Cloudwit's program.
    pub cloudwit: &'a Path,
    /// Whether that is the one that ships. Any other has debug information, and makes no image.
    pub ships: bool,
    /// The folder with the components.
    pub components: &'a Path,
    /// The peer's program, which is static too, and stripped.
    pub peer: &'a Path,
}

/// All sizes.
///
/// # Errors
///
/// When a file cannot be read, or `strip` or `tar` is missing.
pub fn measure(things: &Things<'_>) -> Result<Section> {
    let mut section = Section::new(
        "sizes",
        "Sizes",
        "Components as `cargo xtask` builds them, and as `zstd -19` packs them. An image holds one program and nothing else, in one layer: as it is on a disk, \
         and packed by gzip as it is pulled. Upstream's program is a static Go program with its provider in it, stripped, in an image of its own made in the \
         same way",
    );
    let mut sim_packed = 0;
    for component in xtask::guests::components(things.components)? {
        let name = component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let packed = usize::try_from(xtask::guests::packed_size(&component)?)?;
        let most = Goal::AtMost(xtask::guests::packed_limit(&name) as f64);
        if name == "sim" {
            sim_packed = packed;
        }
        section.measures.extend([
            size(&name, format!("component `{name}`"), bytes(&component)?),
            size(&format!("{name}-packed"), format!("component `{name}`, packed"), packed).goal(most),
        ]);
    }
    let peer = bytes(things.peer)?;
    if !things.ships {
        let title = "binary, release build, stripped";
        section
            .measures
            .push(size("binary", title, stripped(things.cloudwit)?).peer([peer as f64]));
        return Ok(section);
    }
    let (layer, peer_layer) = (image_layer::of(things.cloudwit)?, image_layer::of(things.peer)?);
    let pulled = peer_layer.packed as f64;
    section.measures.extend([
        size("binary", "static binary", bytes(things.cloudwit)?).peer([peer as f64]),
        size("image", "image", layer.unpacked)
            .peer([peer_layer.unpacked as f64])
            .goal(Goal::AtMost(IMAGE)),
        size("image-packed", "image, packed", layer.packed).peer([pulled]),
        size(
            "with-provider-packed",
            "image and component `sim`, packed",
            layer.packed + sim_packed,
        )
        .peer([pulled]),
    ]);
    Ok(section)
}

fn size(id: &str, title: impl Into<String>, bytes: usize) -> Measure {
    Measure::new(id, title, Unit::Bytes).ours([bytes as f64])
}

fn bytes(file: &Path) -> Result<usize> {
    let looked = fs::metadata(file).with_context(|| format!("looking at {}", file.display()))?;
    Ok(looked.len().try_into()?)
}

/// The size of a program without symbols and debug information.
fn stripped(program: &Path) -> Result<usize> {
    let folder = tempfile::tempdir().context("making a folder")?;
    let copy = folder.path().join("stripped");
    let done = Command::new("strip")
        .arg("-o")
        .args([&copy, program])
        .status()
        .context("starting strip (package binutils)")?;
    ensure!(done.success(), "{} could not be stripped", program.display());
    bytes(&copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_measured_plain_packed_and_as_image() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, size: usize| {
            let file = folder.path().join(name);
            fs::write(&file, vec![0; size]).unwrap();
            file
        };
        file("sim.wasm", 130 * 1024);
        let (cloudwit, peer) = (file("cloudwit", 1 << 20), file("peer", 3 << 20));
        let things = Things {
            cloudwit: &cloudwit,
            ships: true,
            components: folder.path(),
            peer: &peer,
        };
        let section = measure(&things).unwrap();
        let found = |id: &str| section.measures.iter().find(|measure| measure.id == id).unwrap();
        let sides = |id: &str| (found(id).ours.values[0], found(id).peer.as_ref().unwrap().values[0]);
        assert_eq!(found("sim").ours.values, [130.0 * 1024.0]);
        assert!(found("sim-packed").ours.values[0] < 1024.0);
        assert_eq!(sides("binary"), (1_048_576.0, 3_145_728.0));
        let (ours, peers) = sides("image");
        assert!(
            ours > 1_048_576.0 && peers - ours >= 2_097_152.0,
            "an image is a little more than its program: {ours}, {peers}"
        );
        let (alone, provided) = (sides("image-packed"), sides("with-provider-packed"));
        assert_eq!(provided.0 - alone.0, found("sim-packed").ours.values[0]);
        assert_eq!(provided.1, alone.1);
    }

    #[test]
    fn a_build_that_does_not_ship_is_stripped_and_has_no_image() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("cloudwit");
        fs::copy("/proc/self/exe", &program).unwrap();
        let things = Things {
            cloudwit: &program,
            ships: false,
            components: folder.path(),
            peer: &program,
        };
        let section = measure(&things).unwrap();
        let ids: Vec<&str> = section.measures.iter().map(|measure| measure.id.as_str()).collect();
        assert_eq!(ids, ["binary"]);
        let binary = &section.measures[0];
        assert!(
            binary.ours.values[0] < binary.peer.as_ref().unwrap().values[0],
            "it was stripped"
        );
        assert!(binary.goal.is_none());
    }
}
