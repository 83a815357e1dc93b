//! Builds `tests/controlplane`, the API server of the tests and of the benchmark.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::go_module::{GoModule, QUICK, RELEASE};
use crate::tools;

/// How it is built.
pub const MODULE: GoModule = GoModule {
    name: "controlplane",
    folder: "tests/controlplane",
    package: ".",
    what: "the API server, which is etcd and kube-apiserver",
    compiler_flags: &QUICK,
    linker_flags,
};

/// As the benchmark runs it: optimised as released programs are, since much of the time there is its own.
pub const MEASURED: GoModule = GoModule {
    name: "measured-controlplane",
    compiler_flags: &RELEASE,
    ..MODULE
};

/// Names the program, for a process that `cargo xtask bench` starts.
pub const PREBUILT: &str = "CLOUDWIT_CONTROLPLANE";

/// The program, built if it is not there yet. Safe to call from several processes at once: the others wait for the first.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn binary() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PREBUILT) {
        return Ok(program.into());
    }
    tools::require_go()?;
    MODULE.binary()
}

/// The program that is measured with, built if it is not there yet.
///
/// # Errors
///
/// As [`binary`].
pub fn measured() -> Result<PathBuf> {
    tools::require_go()?;
    MEASURED.binary()
}

/// Strips the binary and tells it its version, which release builds of Kubernetes get in the same way.
fn linker_flags(go_mod: &str) -> Result<String> {
    let version = kubernetes_version(go_mod).context("no k8s.io/kubernetes is required")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_server_version_is_read_from_its_module_file() {
        let flags = linker_flags("require (\n\tk8s.io/kubernetes v1.2.3\n)").unwrap();
        let version = "k8s.io/component-base/version.git";
        assert_eq!(
            flags,
            format!("-ldflags=-s -w -X {version}Version=v1.2.3 -X {version}Major=1 -X {version}Minor=2")
        );
        assert!(linker_flags("require (\n\tk8s.io/api v0.2.3\n)").is_err());
    }
}
