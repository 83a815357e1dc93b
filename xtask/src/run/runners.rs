//! Runs the test binaries of the workspace, some at a time.
//!
//! `cargo test` runs one after the other. Most tests of the suite wait for another process most of the time, so one at a time leaves half of the
//! processors idle.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::lanes;
use crate::run::steps::outputs::Outputs;
use crate::{tools, workspace};

/// These take longest and begin first; else the last one would run alone at the end.
const LONGEST: [&str; 10] = [
    "openstack_balancers",
    "openstack",
    "aws",
    "days",
    "swap",
    "gce",
    "leadership",
    "user_pain",
    "aws_balancers",
    "azure",
];

/// These look at the whole machine before and after, so they run when the others have ended.
const ALONE: [&str; 1] = ["ends"];

/// A test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Runner {
    /// The crate's or the file's name.
    name: String,
    /// The package's name.
    package: String,
    /// The package's folder, in which cargo runs it.
    folder: PathBuf,
    program: PathBuf,
}

/// Builds what is not built yet and runs all of them with these arguments and variables, shows the output of each when it has ended, and keeps
/// their summary lines in `outputs`. True when none failed.
///
/// # Errors
///
/// When the build fails or a binary cannot be started.
pub fn run(arguments: &[&str], variables: &[(String, String)], outputs: &mut Outputs) -> Result<bool> {
    let mut build = workspace::cargo();
    build.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let mut runners = runners(&tools::output(&mut build)?)?;
    runners.sort_by_key(|runner| {
        LONGEST
            .iter()
            .position(|name| *name == runner.name)
            .unwrap_or(LONGEST.len())
    });
    let (alone, together) = runners
        .into_iter()
        .partition(|runner| ALONE.contains(&runner.name.as_str()));
    let passed = run_in_lanes(lanes::AT_ONCE, together, arguments, variables, outputs)?;
    Ok(run_in_lanes(1, alone, arguments, variables, outputs)? && passed)
}

fn run_in_lanes(
    lanes: usize,
    runners: Vec<Runner>,
    arguments: &[&str],
    variables: &[(String, String)],
    outputs: &mut Outputs,
) -> Result<bool> {
    let ended = Mutex::new((outputs, true));
    lanes::run(lanes, runners, |runner| {
        let (text, passed) = lanes::captured(&runner.name, runner.command(arguments, variables))?;
        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended
            .0
            .show(&format!("     Running {} ({})", runner.name, runner.program.display()));
        text.lines().for_each(|line| ended.0.show(line));
        ended.1 &= passed;
        Ok(())
    })?;
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner).1)
}

impl Runner {
    fn command(&self, arguments: &[&str], variables: &[(String, String)]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package);
        command
    }
}

/// The test binaries among cargo's messages, one JSON object a line.
fn runners(messages: &str) -> Result<Vec<Runner>> {
    let messages = messages.lines().filter(|line| line.starts_with('{'));
    let messages = messages.map(|line| serde_json::from_str::<Value>(line).context("reading what cargo says"));
    let mut found = Vec::new();
    for message in messages {
        let message = message?;
        let (Some(program), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str())
        else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        let id = message["package_id"].as_str().unwrap_or_default();
        found.push(Runner {
            name: message["target"]["name"].as_str().unwrap_or_default().to_owned(),
            package: package(id, folder),
            folder: folder.to_owned(),
            program: program.into(),
        });
    }
    Ok(found)
}

/// The name in an id such as `path+file:///w/tests/suite#cloudwit-suite@0.1.0`, which leaves it out where the folder has the same.
fn package(id: &str, folder: &Path) -> String {
    let named = id.rsplit_once('#').and_then(|(_, end)| end.split_once('@'));
    let folder = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    named.map_or_else(folder, |(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_in_cargo_messages() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/xtask#0.1.0","manifest_path":"/w/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-1"}
{"reason":"compiler-artifact","package_id":"path+file:///w/tests/suite#cloudwit-suite@0.1.0","manifest_path":"/w/tests/suite/Cargo.toml","target":{"name":"aws"},"profile":{"test":true},"executable":"/t/aws-1"}
{"reason":"compiler-artifact","manifest_path":"/w/xtask/Cargo.toml","target":{"name":"xtask"},"profile":{"test":false},"executable":"/t/xtask"}
{"reason":"build-finished","success":true}"#;
        let found = runners(messages).unwrap();
        let names: Vec<(&str, &str)> = found.iter().map(|found| (&*found.name, &*found.package)).collect();
        assert_eq!(names, [("xtask", "xtask"), ("aws", "cloudwit-suite")]);
        assert_eq!(found[1].folder, Path::new("/w/tests/suite"));
    }

    #[test]
    fn runner_sees_its_folder_package_and_variables() {
        let runner = Runner {
            name: "sh".into(),
            package: "p".into(),
            folder: "/usr".into(),
            program: "/bin/sh".into(),
        };
        let variables = [("GREETING".to_owned(), "hello".to_owned())];
        let script = "echo $GREETING $CARGO_PKG_NAME $CARGO_MANIFEST_DIR; pwd";
        let (text, passed) = lanes::captured("sh", runner.command(&["-c", script], &variables)).unwrap();
        assert_eq!((text.as_str(), passed), ("hello p /usr\n/usr\n", true));
    }
}
