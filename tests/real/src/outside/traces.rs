//! What a cluster could leave behind on the machine, listed before and after it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::outside::control_groups::{PREFIX, hierarchies};
use crate::process::with_parts;

/// Settings that change by themselves.
const VOLATILE: [&str; 2] = ["kernel/ns_last_pid", "kernel/random/"];

/// Folders that kubelet, containerd, CNI plugins or kube-controller-manager make where nothing hides them.
const FOLDERS: [&str; 8] = [
    "/etc/cni",
    "/opt/cni",
    "/run/containerd",
    "/run/flannel",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
];

/// How many differences are named.
const NAMED: usize = 12;

/// What there is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// One line each, such as `link eth0`.
    things: BTreeSet<String>,
    /// Values of settings in `/proc/sys`.
    settings: BTreeMap<String, String>,
}

impl Traces {
    /// Looks at the machine.
    ///
    /// # Errors
    ///
    /// When something cannot be read.
    pub fn take(parts: &Path) -> Result<Self> {
        let mut traces = Self::default();
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
        for line in mounts.lines() {
            let place = line.split(' ').nth(4).unwrap_or_default();
            let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next());
            traces.add("mount", &format!("{place} ({})", kind.unwrap_or_default()));
        }
        for link in names(Path::new("/sys/class/net")) {
            traces.add("link", &link);
        }
        for device in names(Path::new("/sys/block")) {
            if let Ok(file) = fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")) {
                traces.add("loop device", &format!("{device} of {}", file.trim()));
            }
        }
        for hierarchy in hierarchies()? {
            traces.groups(&hierarchy.mount);
        }
        for pid in names(Path::new("/proc")) {
            let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            if groups.contains(PREFIX) {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                traces.add("process", &format!("{pid} {}", name.trim()));
            }
        }
        for folder in FOLDERS.into_iter().filter(|folder| Path::new(folder).exists()) {
            traces.add("folder", folder);
        }
        let rules = with_parts(Command::new(parts.join("usr/sbin/nft")), parts)
            .args(["list", "ruleset"])
            .output()
            .context("starting nft")?;
        if !rules.status.success() {
            bail!("nft failed: {}", String::from_utf8_lossy(&rules.stderr).trim());
        }
        for line in String::from_utf8_lossy(&rules.stdout).lines() {
            traces.add("nft", line.trim());
        }
        let root = Path::new("/proc/sys");
        traces.settings(root, root);
        Ok(traces)
    }

    /// All of it, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let settings = self
            .settings
            .iter()
            .map(|(name, value)| format!("setting {name} = {value}"));
        self.things.iter().cloned().chain(settings)
    }

    /// Checks that all is as it was, and gives a summary.
    ///
    /// # Errors
    ///
    /// When it is not; names what came, went or changed.
    pub fn same_as(&self, before: &Self) -> Result<String> {
        let came = self
            .things
            .difference(&before.things)
            .map(|thing| format!("new: {thing}"));
        let went = before
            .things
            .difference(&self.things)
            .map(|thing| format!("gone: {thing}"));
        // Settings that came with a part of the kernel, which was loaded meanwhile, are no change.
        let changed = before.settings.iter().filter_map(|(name, old)| {
            let new = self.settings.get(name)?;
            (new != old).then(|| format!("setting {name}: {new}, was {old}"))
        });
        let all: Vec<String> = came.chain(went).chain(changed).collect();
        if !all.is_empty() {
            let named = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
            bail!("the machine is not as it was; {} differences: {named}", all.len());
        }
        let count = |kind: &str| self.things.iter().filter(|thing| thing.starts_with(kind)).count();
        Ok(format!(
            "{} mounts, {} links, {} nftables rules, {} control groups and {} processes of a cluster, {} settings of the kernel",
            count("mount "),
            count("link "),
            count("nft "),
            count("group "),
            count("process "),
            self.settings.len()
        ))
    }

    fn add(&mut self, kind: &str, what: &str) {
        self.things.insert(format!("{kind} {what}"));
    }

    /// Groups of clusters in this folder and below.
    fn groups(&mut self, folder: &Path) {
        for name in names(folder) {
            let path = folder.join(name);
            if !path.is_dir() {
                continue;
            }
            if path.to_string_lossy().contains(PREFIX) {
                self.add("group", &path.to_string_lossy());
            }
            self.groups(&path);
        }
    }

    fn settings(&mut self, root: &Path, folder: &Path) {
        for name in names(folder) {
            let path = folder.join(name);
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if found.is_dir() {
                self.settings(root, &path);
            } else if found.permissions().mode() & 0o222 != 0
                && !VOLATILE.iter().any(|volatile| name.starts_with(volatile))
                && let Ok(value) = fs::read_to_string(&path)
            {
                self.settings.insert(name, value.trim().to_owned());
            }
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok());
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(things: &[&str], settings: &[(&str, &str)]) -> Traces {
        Traces {
            things: things.iter().map(|thing| (*thing).to_owned()).collect(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn what_came_went_or_changed_is_named() {
        let before = traces(&["link lo", "mount /a (tmpfs)"], &[("kernel/panic", "0")]);
        let after = traces(&["link lo", "link br0"], &[("kernel/panic", "10"), ("net/new", "1")]);
        let error = after.same_as(&before).unwrap_err().to_string();
        assert_eq!(
            error,
            "the machine is not as it was; 3 differences: new: link br0; gone: mount /a (tmpfs); setting kernel/panic: 10, was 0"
        );
    }

    #[test]
    fn a_setting_that_came_with_a_module_is_no_change() {
        let before = traces(&["link lo"], &[]);
        let after = traces(&["link lo"], &[("net/new", "1")]);
        let summary = after.same_as(&before).unwrap();
        assert!(summary.starts_with("0 mounts, 1 links"), "{summary}");
    }
}
