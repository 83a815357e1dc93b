//! Builds `tests/controlplane`, the API server of the tests, once for each version of its sources.
//!
//! The first build on a machine compiles 2,000 Go packages (about five minutes on two cores), later ones come from Go's build cache in seconds. The
//! binary is kept under `target/tools`, named after a hash of everything that goes into it, so that a test costs no build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::{progress, tools, workspace};

/// Not inlined and without debug information: 250 s instead of 350 s for the first build, and it serves requests a little slower.
pub const COMPILER_FLAGS: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false -l"];

/// The program, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
pub fn binary() -> Result<PathBuf> {
    tools::require_go()?;
    let tools_dir = workspace::target().join("tools");
    fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
    let lock =
        File::create(tools_dir.join("controlplane.lock")).context("making the lock of the API server's build")?;
    lock.lock()
        .context("waiting for another process that builds the API server")?;
    let sources = workspace::root().join("tests/controlplane");
    let file = tools_dir.join(format!("controlplane-{}", fingerprint(&sources)?));
    if !file.is_file() {
        build(&sources, &file)?;
        tools::remove_others(&tools_dir, "controlplane-", &file);
    }
    Ok(file)
}

/// A hash of all that goes into the binary: sources, versions of all modules, version of Go, flags.
fn fingerprint(sources: &Path) -> Result<String> {
    let mut names: Vec<PathBuf> = fs::read_dir(sources)
        .with_context(|| format!("reading {}", sources.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    names.retain(|name| {
        name.extension()
            .is_some_and(|kind| ["go", "mod", "sum"].iter().any(|known| kind == *known))
    });
    names.sort();
    let mut hash = Sha256::new();
    for name in names {
        let content = fs::read(&name).with_context(|| format!("reading {}", name.display()))?;
        hash.update(name.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(content.len().to_le_bytes());
        hash.update(content);
    }
    hash.update(tools::output(go(sources).arg("version"))?);
    hash.update(COMPILER_FLAGS.concat());
    hash.update(linker_flags(sources)?);
    Ok(hash
        .finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn build(sources: &Path, file: &Path) -> Result<()> {
    let mut fetched = 0;
    let packages = progress::run(
        go(sources).args(["list", "-deps", "."]),
        "fetching the sources of the API server",
        |line| {
            let module = line.strip_prefix("go: downloading ")?;
            fetched += 1;
            Some(format!("module {fetched}, {module}"))
        },
    )?;
    let what = "building the API server (etcd and kube-apiserver; about 5 minutes the first time)";
    let mut built = 0;
    // Renamed when complete, so that an interrupted build leaves nothing that looks finished.
    let unfinished = file.with_extension("unfinished");
    let cores = std::thread::available_parallelism().map_or(2, usize::from).to_string();
    let mut command = go(sources);
    command
        .args(["build", "-v", "-p", &cores])
        .args(COMPILER_FLAGS)
        .arg(linker_flags(sources)?)
        .arg("-o")
        .arg(&unfinished)
        .arg(".");
    progress::run(&mut command, what, |package| {
        built += 1;
        Some(format!("package {built} of at most {}, {package}", packages.len()))
    })?;
    fs::rename(&unfinished, file).with_context(|| format!("moving the API server to {}", file.display()))
}

/// Strips the binary and tells it its version, which release builds of Kubernetes get in the same way.
fn linker_flags(sources: &Path) -> Result<String> {
    let file = sources.join("go.mod");
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let version =
        kubernetes_version(&text).with_context(|| format!("{} requires no k8s.io/kubernetes", file.display()))?;
    let mut flags = "-ldflags=-s -w".to_owned();
    let numbers = version.trim_start_matches('v').split('.');
    let values = [("gitVersion", version)]
        .into_iter()
        .chain(["gitMajor", "gitMinor"].into_iter().zip(numbers));
    for (name, value) in values {
        flags += &format!(" -X k8s.io/component-base/version.{name}={value}");
    }
    Ok(flags)
}

/// The version of Kubernetes that a `go.mod` requires.
fn kubernetes_version(go_mod: &str) -> Option<&str> {
    go_mod
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
}

/// Go in that folder, with the environment of the build.
pub fn go(sources: &Path) -> Command {
    in_environment(Command::new("go"), sources)
}

/// The same for what is built while something else is waited for.
pub fn nice_go(sources: &Path) -> Command {
    let mut nice = Command::new("nice");
    nice.arg("go");
    in_environment(nice, sources)
}

fn in_environment(mut command: Command, sources: &Path) -> Command {
    // Collecting garbage less often shortens the build. No C compiler is needed, and a static binary starts everywhere.
    command.current_dir(sources).env("GOGC", "400").env("CGO_ENABLED", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_server_learns_the_version_that_its_module_file_requires() {
        let flags = linker_flags(&workspace::root().join("tests/controlplane")).unwrap();
        let version = "k8s.io/component-base/version.git";
        assert!(flags.contains(&format!("-X {version}Version=v1.")), "{flags}");
        assert!(flags.contains(&format!("-X {version}Major=1 ")), "{flags}");
        assert!(flags.contains(&format!("-X {version}Minor=")), "{flags}");
        assert_eq!(
            kubernetes_version("require (\n\tk8s.io/kubernetes v1.2.3\n)"),
            Some("v1.2.3")
        );
    }
}
