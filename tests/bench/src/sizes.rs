//! How large things are: components travel in ConfigMaps, which hold 1 MiB, and may be compressed there; a binary is pulled by every machine that
//! may run it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::measure::{Goal, Measure, Section, Unit};

/// What the component of the simulated cloud may have.
const SIM: f64 = 120.0 * 1024.0;

/// What that of a real cloud may have.
const REAL: f64 = 300.0 * 1024.0;

/// What the static binary may have, which is all there is in the image.
const STATIC: f64 = 25e6;

/// What is measured.
#[derive(Debug)]
pub struct Things<'a> {
    /// The folder with our programs.
    pub programs: &'a Path,
    /// The folder with the components.
    pub components: &'a Path,
    /// Our static binary, which is left out while nobody has built it.
    pub static_binary: &'a Path,
    /// The peer's program, which is static too, and stripped.
    pub peer: &'a Path,
}

/// All sizes.
///
/// # Errors
///
/// When a file cannot be read, or `strip` is missing.
pub fn measure(things: &Things<'_>) -> Result<Section> {
    let mut section = Section::new(
        "sizes",
        "Sizes",
        "Components as `cargo xtask` builds them, and as `gzip -9` packs them. The binary is the one of the release build, which is built for speed; the \
         static one is built for size and is as the last `cargo xtask image` left it; the image holds nothing else. Upstream's is a static Go program with \
         its provider in it, stripped",
    );
    let mut sim_packed = 0;
    for component in xtask::guests::components(things.components)? {
        let name = component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let content = fs::read(&component).with_context(|| format!("reading {}", component.display()))?;
        let goal = Goal::AtMost(if name == "sim" { SIM } else { REAL });
        let packed = packed(&content)?;
        if name == "sim" {
            sim_packed = packed;
        }
        section.measures.extend([
            size(&name, format!("component `{name}`"), content.len()).goal(goal),
            size(&format!("{name}-packed"), format!("component `{name}`, packed"), packed),
        ]);
    }
    let peer = fs::read(things.peer).with_context(|| format!("reading {}", things.peer.display()))?;
    let (peer, peer_packed) = (peer.len(), packed(&peer)?);
    let binary = things.programs.join("cloudwit");
    section
        .measures
        .push(size("binary", "binary, release build, stripped", stripped(&binary)?).peer([peer as f64]));
    if let Ok(content) = fs::read(things.static_binary) {
        let packed = packed(&content)?;
        section.measures.extend([
            size("static-binary", "static binary", content.len())
                .peer([peer as f64])
                .goal(Goal::AtMost(STATIC)),
            size("static-binary-packed", "static binary, packed as in an image", packed).peer([peer_packed as f64]),
            size(
                "with-provider-packed",
                "the same and the component `sim`",
                packed + sim_packed,
            )
            .peer([peer_packed as f64]),
        ]);
    }
    Ok(section)
}

fn size(id: &str, title: impl Into<String>, bytes: usize) -> Measure {
    Measure::new(id, title, Unit::Bytes).ours([bytes as f64])
}

fn packed(content: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?.len())
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
    Ok(fs::metadata(&copy)
        .context("looking at the stripped program")?
        .len()
        .try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_measured_as_they_are_and_packed_and_a_missing_image_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sim.wasm"), vec![0; 130 * 1024]).unwrap();
        let programs = folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        fs::copy("/proc/self/exe", programs.join("cloudwit")).unwrap();
        let peer = folder.path().join("peer");
        fs::write(&peer, [0; 1000]).unwrap();
        let mut things = Things {
            programs: &programs,
            components: folder.path(),
            static_binary: Path::new("/not/built"),
            peer: &peer,
        };
        let section = measure(&things).unwrap();
        let value = |id: &str| {
            let found = section.measures.iter().find(|measure| measure.id == id);
            found.map(|measure| measure.ours.values[0])
        };
        assert_eq!(value("sim"), Some(130.0 * 1024.0));
        assert!(value("sim-packed").unwrap() < 1024.0);
        let whole = fs::metadata("/proc/self/exe").unwrap().len() as f64;
        assert!(value("binary").unwrap() < whole, "it was stripped");
        assert_eq!(value("static-binary"), None);

        things.static_binary = &peer;
        let section = measure(&things).unwrap();
        let found = |id: &str| section.measures.iter().find(|measure| measure.id == id).unwrap();
        let sides = |id: &str| (found(id).ours.values[0], found(id).peer.as_ref().unwrap().values[0]);
        assert_eq!(sides("static-binary"), (1000.0, 1000.0));
        let (alone, provided) = (sides("static-binary-packed"), sides("with-provider-packed"));
        assert_eq!(provided.0 - alone.0, found("sim-packed").ours.values[0]);
        assert_eq!(provided.1, alone.1);
    }
}
