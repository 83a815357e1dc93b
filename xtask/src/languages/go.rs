//! Go: cargo builds wit-bindgen and wasm-tools, once for each version.
//!
//! What the bindings need at run time is a Go module that is also part of the crate of wit-bindgen's generator. It is taken from there, where cargo
//! has checked it: the same files on each machine, also where the module cannot be had.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;

use crate::go::module;
use crate::run::progress;
use crate::{tools, workspace};

/// The versions that the template's README names.
const WIT_BINDGEN: &str = "0.62.0";
const WASM_TOOLS: &str = "1.263.0";

/// The module that the bindings import.
const RUNTIME: &str = "go.bytecodealliance.org/pkg";

/// What makes components of Go programs.
#[derive(Debug, Clone)]
pub struct Tools {
    folder: PathBuf,
}

/// Safe to call from several processes at once: the others wait for the first.
pub fn tools() -> Result<Tools> {
    tools::require_go_for("providers in Go")?;
    let tools_dir = workspace::target().join("tools");
    fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
    let lock = File::create(tools_dir.join("go-components.lock")).context("making the lock of the tools for Go")?;
    lock.lock()
        .context("waiting for another process that builds the tools for Go")?;
    let folder = tools_dir.join(format!("go-components-{WIT_BINDGEN}-{WASM_TOOLS}"));
    if !folder.is_dir() {
        tools::remove_others(&tools_dir, "go-components-", &folder);
        let unfinished = tools_dir.join("go-components-unfinished");
        install(&unfinished, "wit-bindgen-cli", WIT_BINDGEN, "go")?;
        install(&unfinished, "wasm-tools", WASM_TOOLS, "component")?;
        copy(&runtime()?, &unfinished.join("runtime"))?;
        fs::write(unfinished.join("adapter.wasm"), WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
        // Cargo's own folder, in which nothing is needed any more.
        fs::remove_dir_all(unfinished.join("build")).context("removing what cargo built the tools for Go in")?;
        fs::rename(&unfinished, &folder).context("moving the tools for Go to their place")?;
    }
    Ok(Tools { folder })
}

fn install(folder: &Path, name: &str, version: &str, feature: &str) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo
        .args(["install", "--locked", "--no-default-features", "--features", feature])
        .args(["--version", version, name, "--root"])
        .arg(folder)
        .arg("--target-dir")
        .arg(folder.join("build"));
    let mut crates = 0;
    progress::run(&mut cargo, &format!("building {name} {version}"), |line| {
        crates += 1;
        Some(format!("line {crates} of cargo, {}", line.trim()))
    })?;
    Ok(())
}

/// The Go module in the crate that cargo has just unpacked.
fn runtime() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.context("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    for registry in fs::read_dir(&sources).with_context(|| format!("reading {}", sources.display()))? {
        let folder = registry?.path().join(format!("wit-bindgen-go-{WIT_BINDGEN}/src/pkg"));
        if folder.is_dir() {
            return Ok(folder);
        }
    }
    bail!("there is no wit-bindgen-go-{WIT_BINDGEN} below {}", sources.display())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}

/// `make`.
pub fn build(folder: &Path, world: &str) -> Result<()> {
    make(folder, &["--always-make"], world).map(drop)
}

/// `make test`.
pub fn test(folder: &Path) -> Result<String> {
    make(folder, &["test"], "cloud-provider-instances")
}

fn make(folder: &Path, arguments: &[&str], world: &str) -> Result<String> {
    let tools = tools()?;
    let runtime = format!("{RUNTIME}={}", tools.folder.join("runtime").display());
    tools::output(module::go(folder).args(["mod", "edit", "-replace", &runtime]))?;
    let mut path = OsString::from(tools.folder.join("bin"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut make = Command::new("make");
    make.args(arguments)
        .arg(format!("WORLD={world}"))
        .arg(format!("ADAPTER={}", tools.folder.join("adapter.wasm").display()))
        .env("PATH", path)
        .current_dir(folder);
    tools::output(&mut make)
}
