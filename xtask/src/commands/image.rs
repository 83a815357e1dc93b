//! `cargo xtask image`: the static binary that goes into an image with nothing else, and the proof that it needs nothing else.
//!
//! Built for musl in the profile `release`, checked to ask for no dynamic loader, and then run in an empty root: started with the files that its
//! Deployment mounts, on a real API server and the simulated cloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kubernetes::controlplane;
use crate::run::progress;
use crate::run::steps::{Found, shown};
use crate::{debian, guests, tools, workspace};

/// What it is built for.
pub const TARGET: &str = "x86_64-unknown-linux-musl";

/// What the image should come to, in bytes. Most of it is the compiler of components and the types of Kubernetes.
const GOAL: u64 = 25_000_000;

/// What it may have, in bytes, so that growth is noticed.
const LIMIT: u64 = 29_000_000;

/// Builds, checks, runs and measures; prints the numbers.
///
/// # Errors
///
/// When a tool is missing, the build fails, the binary is not static or too large, or does not work in an empty root.
pub fn run() -> Result<()> {
    checked().map(|found| println!("{}", found.note))
}

/// The same as a step of the tests.
///
/// # Errors
///
/// As [`run`].
pub fn checked() -> Result<Found> {
    require_musl()?;
    tools::require_wasm_target()?;
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        controlplane::binary()?;
    }
    let binary = binary()?;
    let size = fs::metadata(&binary)
        .with_context(|| format!("looking at {}", binary.display()))?
        .len();
    println!("{size} bytes (goal {GOAL}), static: {}", binary.display());
    if size > LIMIT {
        bail!(
            "{} has {size} bytes, more than the {LIMIT} that are allowed",
            binary.display()
        );
    }
    let version = tools::output(in_empty_root(&binary)?.arg("--version"))?;
    let provider = guests::provider("sim")?;
    progress::cargo_build(&["--package", "cloudwit-bench", "--bins"], "building what runs it")?;
    let mut command = Command::new(workspace::target().join("debug/cloudwit-empty-root"));
    shown(command.current_dir(workspace::root()).arg(&binary).arg(provider))?;
    Ok(format!(
        "{} in {size} bytes (limit {LIMIT}); it works in an empty root",
        version.trim()
    )
    .into())
}

/// The binary that ships, built if it is not there yet.
///
/// # Errors
///
/// When it does not build, or is not static.
pub fn binary() -> Result<PathBuf> {
    let binary = build()?;
    let content = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
    if !is_static(&content) {
        bail!("{} is not static: it needs a dynamic loader", binary.display());
    }
    Ok(binary)
}

/// Checks that it can be built, after having installed what is missing where that is possible: the target through rustup, musl's compiler from
/// Debian's packages.
///
/// # Errors
///
/// When something is missing; one line says what, and how to get it.
pub fn require_musl() -> Result<()> {
    match tools::require_musl(TARGET) {
        // Whatever keeps it from being installed, what is missing is what a reader needs to know.
        Err(missing) if tools::find(tools::MUSL_COMPILER).is_none() => match debian::install(&["musl-tools"]) {
            Ok(true) => tools::require_musl(TARGET),
            Ok(false) | Err(_) => Err(missing),
        },
        other => other,
    }
}

/// Builds it for a target with this command of cargo, such as `build`, in a target folder of its own, whose content another profile and target would only
/// crowd. Gives the binary.
///
/// # Errors
///
/// When it does not build.
pub fn build_for(target: &str, cargo: &mut Command) -> Result<PathBuf> {
    let dist = workspace::target().join("dist");
    cargo
        .args(["--release", "--locked", "--target", target, "--package", "cloudwit"])
        .env("CARGO_TARGET_DIR", &dist)
        .env("CARGO_TERM_COLOR", "never");
    let mut crates = 0;
    let what = format!("building the static binary for {target} (10 minutes on two cores the first time)");
    progress::run(cargo, &what, |line| {
        let name = line.trim().strip_prefix("Compiling ")?;
        crates += 1;
        Some(format!("crate {crates}, {name}"))
    })?;
    Ok(dist.join(target).join("release/cloudwit"))
}

/// Builds it. Gives the binary, also copied to where the Containerfile takes it from.
fn build() -> Result<PathBuf> {
    let binary = build_for(TARGET, workspace::cargo().arg("build"))?;
    let copy = workspace::target().join("image/cloudwit");
    fs::create_dir_all(workspace::target().join("image")).context("making the folder of the image")?;
    fs::copy(&binary, &copy).with_context(|| format!("copying {} to {}", binary.display(), copy.display()))?;
    Ok(copy)
}

/// A command that runs a copy of the binary in a folder in which there is nothing but that copy.
fn in_empty_root(binary: &Path) -> Result<Command> {
    let root = workspace::target().join("dist/root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
    }
    fs::create_dir_all(&root).with_context(|| format!("making {}", root.display()))?;
    fs::copy(binary, root.join("cloudwit")).context("copying the binary into an empty root")?;
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--root"]).arg(&root).arg("/cloudwit");
    Ok(command)
}

/// Whether an ELF file of 64 bits asks for no interpreter (`PT_INTERP`), which is how dynamic programs name their loader.
pub fn is_static(elf: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let part = elf.get(at..at + bytes)?;
        Some(part.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let headers = || Some((number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?));
    let Some((start, size, count)) = headers().filter(|_| elf.starts_with(b"\x7fELF\x02\x01")) else {
        return false;
    };
    (0..count).all(|at| number(start + at * size, 4).is_some_and(|kind| kind != INTERPRETER as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of an ELF file with program headers of these kinds.
    fn elf(kinds: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[0x20], file[0x36], file[0x38]) = (0x40, 0x38, u8::try_from(kinds.len()).unwrap());
        for kind in kinds {
            file.push(*kind);
            file.extend([0; 0x37]);
        }
        file
    }

    #[test]
    fn a_program_that_names_a_loader_is_not_static() {
        assert!(is_static(&elf(&[6, 1, 1])));
        assert!(!is_static(&elf(&[6, 3, 1])));
        assert!(!is_static(&elf(&[1, 1])[..0x50]), "cut off");
        assert!(!is_static(b"#!/bin/sh\n"));
        let ourselves = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&ourselves), "tests are linked to the system's libraries");
    }
}
