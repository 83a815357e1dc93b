//! The control groups of machines: one in each hierarchy of version 1, in which kubelet makes those of its Pods.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// How the names of ours begin.
const PREFIX: &str = "cloudwit-real-";

/// The name of a machine's control group.
pub fn name(machine: &str) -> String {
    format!("{PREFIX}{machine}")
}

/// Where the hierarchies of these kinds are mounted: `cgroup` is version 1, `cgroup2` version 2, in which runc makes groups too.
fn hierarchies(kinds: &[&str]) -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    Ok(hierarchies_in(&text, kinds))
}

fn hierarchies_in(mountinfo: &str, kinds: &[&str]) -> Vec<PathBuf> {
    let lines = mountinfo.lines().filter(|line| {
        let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next());
        kind.is_some_and(|kind| kinds.contains(&kind))
    });
    lines
        .filter_map(|line| line.split(' ').nth(4).map(PathBuf::from))
        .collect()
}

/// Makes those of a machine.
pub fn create(machine: &str) -> Result<()> {
    for hierarchy in hierarchies(&["cgroup"])? {
        let group = hierarchy.join(name(machine));
        fs::create_dir_all(&group).with_context(|| format!("making {}", group.display()))?;
        // Empty in a new group, and no process can join one in which they are.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(parent) = fs::read(hierarchy.join(file)) {
                fs::write(group.join(file), parent)
                    .with_context(|| format!("writing {file} of {}", group.display()))?;
            }
        }
    }
    Ok(())
}

/// Removes those of one machine, or of all. Says which are still in use, since their processes have not ended yet.
pub fn remove(machine: Option<&str>) -> Result<Vec<PathBuf>> {
    let mut left = Vec::new();
    for hierarchy in hierarchies(&["cgroup", "cgroup2"])? {
        let entries = fs::read_dir(&hierarchy).with_context(|| format!("reading {}", hierarchy.display()))?;
        for group in entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()) {
            let found = group.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours = match machine {
                Some(machine) => found == name(machine),
                None => found.starts_with(PREFIX),
            };
            if ours && !remove_below(&group) {
                left.push(group);
            }
        }
    }
    Ok(left)
}

/// Removes a group and those below it. Says whether they are gone.
fn remove_below(group: &Path) -> bool {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(|entry| entry.ok());
    for below in entries.map(|entry| entry.path()).filter(|path| path.is_dir()) {
        remove_below(&below);
    }
    match fs::remove_dir(group) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_told_by_their_version() {
        let text = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                    41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                    31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n";
        let (one, two) = (
            PathBuf::from("/sys/fs/cgroup/cpu"),
            PathBuf::from("/sys/fs/cgroup/unified"),
        );
        assert_eq!(hierarchies_in(text, &["cgroup"]), std::slice::from_ref(&one));
        assert_eq!(hierarchies_in(text, &["cgroup", "cgroup2"]), [one, two]);
    }
}
