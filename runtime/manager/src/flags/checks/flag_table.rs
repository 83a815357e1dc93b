//! Generates docs/reference/flags.md and compares it.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Arg, CommandFactory};

use crate::flags::args::Args;

/// The flags of upstream with their defaults.
const UPSTREAM: &str = include_str!("../../../../../tests/fixtures/upstream-flags.txt");

const HEAD: &str = "# Flags\n\nWritten from the definitions in `runtime/manager/src` by a test; as `cloudwit --help` shows them. \
Flags of upstream (kubernetes/cloud-provider v0.37.2, all 87) keep their names; the third column is upstream's default, a dash means that \
upstream has no such flag.\nUnderscores in names count as dashes, durations are written as Go writes them, the last of a repeated flag \
counts, lists grow. All mistakes are reported at once, with exit code 1 and nothing changed.\n";

fn upstream() -> BTreeMap<&'static str, &'static str> {
    let lines = UPSTREAM.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

fn default_of(arg: &Arg) -> String {
    let values: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    values.join(",")
}

fn page() -> String {
    let upstream = upstream();
    let mut command = Args::command();
    command.build();
    let mut text = HEAD.to_owned();
    let mut heading = String::new();
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long() else { continue };
        let of_arg = arg.get_help_heading().unwrap_or("Help").to_owned();
        if of_arg != heading {
            text += &format!(
                "\n## {of_arg}\n\n| flag | default | upstream's | what it does |\n| ---- | ------- | ---------- | ------------ |\n"
            );
            heading = of_arg;
        }
        let cell = |value: &str| {
            if value.is_empty() {
                String::new()
            } else {
                format!("`{value}`")
            }
        };
        let theirs = upstream.get(name).map_or("-".into(), |value| cell(value));
        let help = arg
            .get_long_help()
            .or(arg.get_help())
            .map(ToString::to_string)
            .unwrap_or_default();
        let help = help
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('|', "\\|")
            .replace('*', "\\*");
        let ours = default_of(arg);
        text += &format!("| `--{name}` | {} | {theirs} | {help} |\n", cell(&ours));
    }
    text
}

#[test]
fn every_flag_of_upstream_is_known() {
    let mut command = Args::command();
    command.build();
    let upstream = upstream();
    assert_eq!(upstream.len(), 87);
    let known: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
    let missing: Vec<_> = upstream.keys().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Where a default differs, docs/explanation/compatibility.md says why.
#[test]
fn defaults_are_upstreams_but_for_those_that_are_named() {
    let differ = [
        "concurrent-node-lifecycle-syncs",
        "concurrent-node-syncs",
        "concurrent-service-syncs",
        "kube-api-qps",
    ];
    let mut command = Args::command();
    command.build();
    let upstream = upstream();
    let found: Vec<&str> = command
        .get_arguments()
        .filter(|arg| arg.get_id() != "help")
        .filter_map(|arg| Some((arg.get_long()?, default_of(arg))))
        .filter(|(name, ours)| upstream.get(name).is_some_and(|theirs| theirs != ours))
        .map(|(name, _)| name)
        .collect();
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, differ);
}

#[test]
fn the_page_of_flags_is_written_from_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flags.md");
    let page = page();
    if std::env::var_os("CLOUDWIT_UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/flags.md is not what the code says; run CLOUDWIT_UPDATE_DOCS=1 cargo test -p cloudwit flag_table"
    );
}
