//! What has to be installed besides Rust. A missing tool gives one line: what is missing and how to get it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// The target that provider components are built for.
pub const WASM_TARGET: &str = "wasm32-wasip2";

/// Compiles C for static binaries.
pub const MUSL_COMPILER: &str = "musl-gcc";

/// Finds a program in `PATH`.
pub fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Checks that Go is there, for the API server of the tests.
pub fn require_go() -> Result<()> {
    if find("go").is_none() {
        bail!(
            "Go is missing, which the API server of the tests is built with: install Go 1.26 or newer from \
             https://go.dev/dl, or set KUBEBUILDER_ASSETS to a folder that holds etcd and kube-apiserver"
        );
    }
    Ok(())
}

/// Checks that Go is there, for `what`.
pub fn require_go_for(what: &str) -> Result<()> {
    if find("go").is_none() {
        bail!("Go is missing, which builds {what}: install Go 1.26 or newer from https://go.dev/dl");
    }
    Ok(())
}

/// Checks that guests can be built, and adds the target through rustup if it is not there.
pub fn require_wasm_target() -> Result<()> {
    require_target(WASM_TARGET, "providers are built for")
}

/// Adds a target through rustup if it is not there. `what` goes on after "which".
///
/// # Errors
///
/// When it is missing and cannot be added; says how to get it.
pub fn require_target(target: &str, what: &str) -> Result<()> {
    // In the repository, so that rustup takes the toolchain that rust-toolchain.toml names.
    let here = workspace::root();
    let print = ["--print", "target-libdir", "--target", target];
    let library = output(Command::new(rustc()).args(print).current_dir(&here))?;
    if PathBuf::from(library.trim()).is_dir() {
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!(
            "the Rust target {target} is missing, which {what}, and so is rustup that could add it: \
             install rustup from https://rustup.rs, or the package of your distribution with that target"
        );
    }
    let added = Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(&here)
        .status()
        .context("starting rustup")?;
    if !added.success() {
        bail!("the Rust target {target} is missing and rustup could not add it: run `rustup target add {target}`");
    }
    Ok(())
}

/// Checks that a static binary can be built, and adds the target through rustup if it is not there.
pub fn require_musl(target: &str) -> Result<()> {
    if find(MUSL_COMPILER).is_none() {
        bail!(
            "{MUSL_COMPILER} is missing, which compiles the C and assembler parts of the static binary: \
             apt-get install musl-tools (Debian, Ubuntu), dnf install musl-gcc (Fedora), pacman -S musl (Arch)"
        );
    }
    require_target(target, "the static binary is built for")
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Removes what else in that folder has a name that begins so. Each version of a tool takes room, and the newest is the one that matters.
pub fn remove_others(tools_dir: &Path, begin: &str, newest: &Path) {
    let Ok(entries) = fs::read_dir(tools_dir) else { return };
    for path in entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with(begin) || path == newest {
            continue;
        }
        // One that stays only takes room.
        let _ = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
    }
}

/// What a command prints. Fails with its standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {name}"))?;
    if !done.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    String::from_utf8(done.stdout).with_context(|| format!("reading what {name} printed"))
}
