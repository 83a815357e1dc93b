//! The machine and the versions that figures were taken with: without them a figure says nothing.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::scene::binary::Build;

/// What a reader needs to know about the machine. Empty words where the system does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// As the processor names itself.
    pub cpu: String,
    /// How many of them this program may use.
    pub cores: usize,
    /// All of its memory, in bytes.
    pub memory: u64,
    /// `Linux 6.18.0`.
    pub kernel: String,
    /// `rustc 1.95.0 (...)`.
    pub rust: String,
    /// `go version go1.26.8 linux/amd64`.
    pub go: String,
    /// Which build of Cloudwit is measured, in words.
    #[serde(default)]
    pub build: String,
}

impl Machine {
    /// This one, with this build of Cloudwit.
    pub fn this(build: Build) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: kibibytes(&field(&read("/proc/meminfo"), "MemTotal")) * 1024,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            rust: said("rustc", &["--version"]),
            go: said("go", &["version"]),
            build: build.words().to_owned(),
        }
    }

    /// In a line.
    pub fn sentence(&self) -> String {
        let Self {
            cpu,
            cores,
            memory,
            kernel,
            rust,
            go,
            build,
        } = self;
        let gibibytes = *memory as f64 / f64::from(1 << 30);
        format!("{cpu}, {cores} cores, {gibibytes:.0} GiB, {kernel}; {rust}; {go}; {build}")
    }
}

/// The first value of a `name : value` line, as `/proc` writes them.
fn field(text: &str, name: &str) -> String {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = lines
        .filter(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned());
    values.next().unwrap_or_default()
}

/// Of `24622796 kB`; 0 for anything else.
fn kibibytes(text: &str) -> u64 {
    text.strip_suffix("kB")
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_default()
}

/// What a program prints; nothing when it is not there.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// The commit that is measured, short, with a mark when files differ from it. The report does not count: it is written by the benchmark.
pub fn commit() -> String {
    let root = xtask::workspace::root().display().to_string();
    let git = |arguments: &[&str]| said("git", &[&["-C", root.as_str()], arguments].concat());
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ":(exclude)docs/reference/benchmarks",
    ]);
    if changed.is_empty() {
        commit
    } else {
        format!("{commit}+")
    }
}

/// Today's date in UTC.
pub fn today() -> String {
    said("date", &["-u", "+%F"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_are_found_by_their_whole_name() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU @ 2 GHz\nmodel\t\t: 85\nmodel name\t: other\n";
        assert_eq!(field(text, "model name"), "Fast CPU @ 2 GHz");
        assert_eq!(field(text, "model"), "85");
        assert_eq!(field(text, "none"), "");
        assert_eq!(kibibytes(&field("MemTotal:       2048 kB\n", "MemTotal")), 2048);
        assert_eq!(kibibytes("many"), 0);
    }

    #[test]
    fn the_sentence_has_all_of_it() {
        let machine = Machine {
            cpu: "Fast".into(),
            cores: 2,
            memory: 24 << 30,
            kernel: "Linux 6".into(),
            rust: "rustc 1".into(),
            go: "go 1".into(),
            build: "static".into(),
        };
        assert_eq!(
            machine.sentence(),
            "Fast, 2 cores, 24 GiB, Linux 6; rustc 1; go 1; static"
        );
    }
}
