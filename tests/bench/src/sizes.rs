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

/// The components of these folders' providers and of our programs in `programs`; `static_binary` is left out while nobody has built it.
///
/// # Errors
///
/// When a file cannot be read, or `strip` is missing.
pub fn measure(programs: &Path, components: &Path, static_binary: &Path) -> Result<Section> {
    let mut section = Section::new(
        "sizes",
        "Sizes",
        "Components as `cargo xtask` builds them, and as `gzip -9` packs them. The binary is the one of the release build, which is built for speed; the \
         static one is built for size (`cargo xtask image`), and the image holds nothing else",
    );
    for component in xtask::guests::components(components)? {
        let name = component.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let content = fs::read(&component).with_context(|| format!("reading {}", component.display()))?;
        let goal = Goal::AtMost(if name == "sim" { SIM } else { REAL });
        let packed = packed(&content)?;
        section.measures.extend([
            size(&name, format!("component `{name}`"), content.len()).goal(goal),
            size(&format!("{name}-packed"), format!("component `{name}`, packed"), packed),
        ]);
    }
    let binary = programs.join("cloudwit");
    section
        .measures
        .push(size("binary", "binary, release build, stripped", stripped(&binary)?));
    if let Ok(content) = fs::read(static_binary) {
        section.measures.extend([
            size("static-binary", "static binary", content.len()).goal(Goal::AtMost(STATIC)),
            size(
                "static-binary-packed",
                "static binary, packed as in an image",
                packed(&content)?,
            ),
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
        let section = measure(&programs, folder.path(), Path::new("/not/built")).unwrap();
        let value = |id: &str| {
            let found = section.measures.iter().find(|measure| measure.id == id);
            found.map(|measure| measure.ours.values[0])
        };
        assert_eq!(value("sim"), Some(130.0 * 1024.0));
        assert!(value("sim-packed").unwrap() < 1024.0);
        let whole = fs::metadata("/proc/self/exe").unwrap().len() as f64;
        assert!(value("binary").unwrap() < whole, "it was stripped");
        assert_eq!(value("static-binary"), None);
    }
}
