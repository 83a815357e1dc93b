//! The machines that the static binary is built for.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::commands::image;
use crate::servers::python::Environment;
use crate::{tools, workspace};

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Machine {
    /// 64-bit x86, which every release has: this binary runs where the release is made.
    #[value(skip)]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

/// All of them.
pub const ALL: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// What builds for another machine than this one: cargo-zigbuild and Zig, which has the C library of every target with it.
const ZIG: &str = "xtask/zig.txt";

impl Machine {
    /// As Rust, the kernel and the names of our files call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As images call it.
    pub fn in_images(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The target of its static binary.
    pub fn target(self) -> &'static str {
        match self {
            Self::X86_64 => image::TARGET,
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// `e_machine` in the head of its programs.
    fn in_programs(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::Aarch64 => 183,
        }
    }

    /// Checks that its binary can be built, and fetches what is missing.
    ///
    /// # Errors
    ///
    /// When something cannot be had; says how to get it, or what to leave out.
    pub fn require(self) -> Result<()> {
        match self {
            Self::X86_64 => image::require_musl(),
            Self::Aarch64 => {
                let found = tools::require_target(self.target(), "the static binary is built for").and_then(|()| zig());
                found.map(drop).with_context(|| {
                    "the binary for aarch64 cannot be built here; to make a release without it: cargo xtask release --without aarch64"
                })
            }
        }
    }

    /// Its static binary, built if it is not there yet.
    ///
    /// # Errors
    ///
    /// When it does not build, or is no static program for this machine.
    pub fn binary(self) -> Result<PathBuf> {
        let binary = match self {
            Self::X86_64 => image::binary()?,
            Self::Aarch64 => self.cross_built()?,
        };
        let program = fs::read(&binary).with_context(|| format!("reading {}", binary.display()))?;
        if !self.runs(&program) || !image::is_static(&program) {
            bail!("{} is no static program for {}", binary.display(), self.name());
        }
        Ok(binary)
    }

    fn cross_built(self) -> Result<PathBuf> {
        let zig = zig()?;
        let mut cargo = workspace::program(zig.program("cargo-zigbuild"));
        // It looks for the module of Python that has Zig in it.
        let mut path = OsString::from(zig.folder().join("bin"));
        if let Some(others) = std::env::var_os("PATH") {
            path.push(":");
            path.push(others);
        }
        image::build_for(self.target(), cargo.arg("zigbuild").env("PATH", path))
    }

    /// Whether a program is for this machine.
    fn runs(self, elf: &[u8]) -> bool {
        elf.starts_with(b"\x7fELF\x02\x01") && elf.get(0x12..0x14) == Some(&self.in_programs().to_le_bytes()[..])
    }
}

fn zig() -> Result<Environment> {
    Environment::get("zig", ZIG)
}

/// The version of the compiler.
///
/// # Errors
///
/// When there is none.
pub fn compiler() -> Result<String> {
    let said = tools::output(Command::new("rustc").arg("--version").current_dir(workspace::root()))?;
    let version = said.split_whitespace().nth(1);
    version
        .map(str::to_owned)
        .with_context(|| format!("rustc says {said:?} where its version was expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_for_the_machine_in_its_head() {
        let mut program = vec![0; 0x40];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[0x12] = 183;
        assert!(Machine::Aarch64.runs(&program) && !Machine::X86_64.runs(&program));
        assert!(!Machine::Aarch64.runs(&program[..0x13]), "cut off");
        let ourselves = fs::read(std::env::current_exe().unwrap()).unwrap();
        let here = ALL.iter().find(|machine| machine.name() == std::env::consts::ARCH);
        assert!(here.is_none_or(|machine| machine.runs(&ourselves)));
    }

    #[test]
    fn what_builds_for_other_machines_is_pinned_by_digest() {
        let pins = fs::read_to_string(workspace::root().join(ZIG)).unwrap();
        let pins: Vec<String> = pins.replace("\\\n", " ").lines().map(str::to_owned).collect();
        assert_eq!(pins.len(), 2, "{pins:?}");
        assert!(
            pins.iter()
                .all(|pin| pin.contains("==") && pin.contains("--hash=sha256:")),
            "{pins:?}"
        );
    }
}
