//! Builds `tests/controlplane`, the API server of the tests and of the benchmark.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::go::module::{GO_MOD, GoModule, QUICK, RELEASE};
use crate::tools;

/// How it is built.
pub const MODULE: GoModule = GoModule {
    name: "controlplane",
    folder: "tests/controlplane",
    package: ".",
    what: "the API server, which is etcd and kube-apiserver",
    mod_file: GO_MOD,
    compiler_flags: &QUICK,
    linker_flags,
};

/// As the benchmark runs it: optimised as released programs are, since much of the time there is its own.
pub const MEASURED: GoModule = GoModule {
    name: "measured-controlplane",
    compiler_flags: &RELEASE,
    ..MODULE
};

/// The same with Kubernetes 1.29, the oldest version that is supported.
pub const OLDEST: GoModule = GoModule {
    name: "oldest-controlplane",
    what: "the API server of Kubernetes 1.29",
    mod_file: "versions/1.29.mod",
    compiler_flags: &["-trimpath", "-gcflags=all=-dwarf=false -l", "-tags=kubernetes_1_29"],
    ..MODULE
};

/// A version of Kubernetes whose API server can be built here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kubernetes {
    /// The oldest that is supported.
    #[value(name = "1.29")]
    Oldest,
    /// The one that all tests run on.
    #[value(name = "1.37")]
    Current,
}

impl Kubernetes {
    /// Its API server, built if it is not there yet.
    ///
    /// # Errors
    ///
    /// As [`binary`].
    pub fn binary(self) -> Result<PathBuf> {
        tools::require_go()?;
        match self {
            Self::Oldest => OLDEST.binary(),
            Self::Current => MODULE.binary(),
        }
    }
}

/// Names the program, for a process that `cargo xtask bench` or `cargo xtask test` starts.
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
    fn each_version_is_built_from_a_module_file_that_has_it() {
        use clap::ValueEnum;

        for (version, module) in [(Kubernetes::Oldest, OLDEST), (Kubernetes::Current, MODULE)] {
            let file = crate::workspace::root().join(module.folder).join(module.mod_file);
            let text = std::fs::read_to_string(file).unwrap();
            let name = version.to_possible_value().unwrap();
            let begin = format!("v{}.", name.get_name());
            let found = kubernetes_version(&text).unwrap();
            assert!(found.starts_with(&begin), "{found} where {begin} was expected");
        }
        let chart = std::fs::read_to_string(crate::workspace::root().join("deploy/chart/Chart.yaml")).unwrap();
        assert!(
            chart.contains("kubeVersion: \">=1.29.0-0\""),
            "the oldest is the one that the chart requires"
        );
    }

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
