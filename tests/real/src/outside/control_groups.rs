//! Control groups of a cluster: one in each hierarchy, below the group of whoever started it, so that its limits hold for the cluster too.
//!
//! ```text
//!   OWN/cloudwit-real-PID        memory limited
//!     hub                        control plane, cloud, Cloudwit
//!     machine-1                  the root of the machine's cgroup namespace: containerd, kubelet, Pods
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// How the name of a cluster's group begins; its starter's process id follows.
pub const PREFIX: &str = "cloudwit-real-";

/// Memory of a cluster in bytes: three times what two machines use. A leak in it must not take the memory of everything else.
const MEMORY: u64 = 8 << 30;

/// A hierarchy, and where it is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The mount point.
    pub mount: PathBuf,
    /// Its controllers, separated by commas; `name=systemd` for one without, empty for version 2.
    pub controllers: String,
    /// The folder of our own group.
    own: PathBuf,
}

/// All hierarchies that are mounted here.
///
/// # Errors
///
/// When the kernel does not list them.
pub fn hierarchies() -> Result<Vec<Hierarchy>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    let groups = fs::read_to_string("/proc/self/cgroup").context("reading our control groups")?;
    Ok(hierarchies_in(&mounts, &groups))
}

fn hierarchies_in(mountinfo: &str, groups: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let (kind, options) = (after.split(' ').next(), after.rsplit(' ').next());
        let options: Vec<&str> = options.unwrap_or_default().split(',').collect();
        let mut fields = before.split(' ').skip(3);
        let (Some(root), Some(mount)) = (fields.next(), fields.next()) else {
            continue;
        };
        // `NUMBER:CONTROLLERS:PATH`, no controllers in version 2.
        let group = groups.lines().find_map(|group| {
            let (controllers, path) = group.split_once(':')?.1.split_once(':')?;
            let same = match kind {
                Some("cgroup") => !controllers.is_empty() && controllers.split(',').all(|one| options.contains(&one)),
                Some("cgroup2") => controllers.is_empty(),
                _ => false,
            };
            same.then_some((controllers, path))
        });
        let Some((controllers, path)) = group else { continue };
        // What is mounted may itself be a group below the hierarchy's root.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        found.push(Hierarchy {
            mount: mount.into(),
            controllers: controllers.to_owned(),
            own: Path::new(mount).join(below),
        });
    }
    found
}

/// A group, with its folder in each hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(pub Vec<PathBuf>);

impl Group {
    /// The one that we are in.
    ///
    /// # Errors
    ///
    /// When the kernel does not say.
    pub fn own() -> Result<Self> {
        Ok(Self(hierarchies()?.into_iter().map(|one| one.own).collect()))
    }

    /// The one of this name in it.
    pub fn child(&self, name: &str) -> Self {
        Self(self.0.iter().map(|folder| folder.join(name)).collect())
    }

    /// The one that it is in.
    pub fn parent(&self) -> Self {
        let parents = self.0.iter().filter_map(|folder| folder.parent());
        Self(parents.map(Path::to_owned).collect())
    }

    /// Checks that it is the group of a cluster, before processes in it are ended or groups removed.
    ///
    /// # Errors
    ///
    /// When a folder has another name.
    pub fn clusters(self) -> Result<Self> {
        let named = |folder: &PathBuf| {
            let name = folder.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with(PREFIX)
        };
        match self.0.iter().find(|folder| !named(folder)) {
            Some(other) => bail!("{} is not the control group of a cluster", other.display()),
            None => Ok(self),
        }
    }

    /// Makes it.
    ///
    /// # Errors
    ///
    /// When a folder cannot be made.
    pub fn create(&self) -> Result<()> {
        for folder in &self.0 {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
            // Empty in a new group of version 1, and no process can join one in which they are.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let parent = folder.parent().map(|parent| parent.join(file));
                if let Some(Ok(value)) = parent.map(fs::read) {
                    fs::write(folder.join(file), value)
                        .with_context(|| format!("writing {file} of {}", folder.display()))?;
                }
            }
        }
        Ok(())
    }

    /// Limits its memory, where there is the controller.
    ///
    /// # Errors
    ///
    /// When the limit cannot be written.
    pub fn limit(&self) -> Result<()> {
        let files = self.0.iter().map(|folder| folder.join("memory.limit_in_bytes"));
        for file in files.filter(|file| file.exists()) {
            fs::write(&file, MEMORY.to_string()).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }

    /// A command that joins this group and becomes `program`.
    ///
    /// # Errors
    ///
    /// When our own program is not found.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(std::env::current_exe().context("looking for our own program")?);
        command.arg("join");
        for folder in &self.0 {
            command.arg("--group").arg(folder);
        }
        command.args(["--", program]);
        Ok(command)
    }

    /// The processes in it and below, by the numbers of our own process namespace.
    pub fn processes(&self) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        for folder in &self.0 {
            for below in below(folder) {
                found.append(&mut Self(vec![below]).processes());
            }
            let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            // Those of other namespaces are listed as 0.
            let listed = listed.lines().filter_map(|line| line.parse::<i32>().ok());
            found.extend(listed.filter(|pid| *pid > 1));
        }
        found
    }

    /// Removes it and those below. Gives the folders that are still in use, since their processes have not ended yet.
    pub fn remove(&self) -> Vec<PathBuf> {
        let left = self.0.iter().filter(|folder| !remove(folder));
        left.cloned().collect()
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok());
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Removes a folder and those below it. Says whether they are gone.
fn remove(folder: &Path) -> bool {
    for one in below(folder) {
        remove(&one);
    }
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// What [`Group::command`] starts.
#[derive(Debug, clap::Args)]
pub struct JoinOptions {
    /// A folder of the group, one for each hierarchy.
    #[arg(long)]
    group: Vec<PathBuf>,
    /// What to become.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Names our process id, as the namespace sees it in which the cluster was started.
pub const OUTSIDE_PID: &str = "CLOUDWIT_REAL_PID";

/// Joins a group and becomes another program; returns only when that fails.
///
/// # Errors
///
/// When a group cannot be joined, or the program not started.
pub fn join(options: &JoinOptions) -> Result<()> {
    for folder in &options.group {
        let file = folder.join("cgroup.procs");
        // 0 is whoever writes.
        fs::write(&file, "0").with_context(|| format!("writing {}", file.display()))?;
    }
    let Some((program, arguments)) = options.command.split_first() else {
        bail!("no program is named");
    };
    let pid = std::process::id().to_string();
    let error = Command::new(program).args(arguments).env(OUTSIDE_PID, pid).exec();
    Err(error).with_context(|| format!("starting {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_group_is_found_in_each_hierarchy() {
        let mounts = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n";
        let groups = "4:memory:/docker/1/job\n3:cpu,cpuacct:/\n1:name=systemd:/user\n0::/\n";
        let found: Vec<(String, String)> = hierarchies_in(mounts, groups)
            .into_iter()
            .map(|one| (one.controllers, one.own.display().to_string()))
            .collect();
        let expected = [
            ("cpu,cpuacct", "/sys/fs/cgroup/cpu/"),
            ("memory", "/sys/fs/cgroup/memory/job"),
            ("name=systemd", "/sys/fs/cgroup/systemd/user"),
            ("", "/sys/fs/cgroup/unified/"),
        ];
        assert_eq!(found, expected.map(|(one, two)| (one.to_owned(), two.to_owned())));
    }

    #[test]
    fn a_child_has_its_parent() {
        let group = Group(vec!["/a".into(), "/b/c".into()]);
        let child = group.child("x");
        assert_eq!(child, Group(vec!["/a/x".into(), "/b/c/x".into()]));
        assert_eq!(child.parent(), group);
    }

    #[test]
    fn another_group_is_not_taken_for_a_clusters() {
        assert!(Group(vec!["/a/cloudwit-real-1".into()]).clusters().is_ok());
        let error = Group(vec!["/a/cloudwit-real-1".into(), "/".into()]).clusters();
        assert!(error.unwrap_err().to_string().contains("/ is not"));
    }

    #[test]
    fn what_is_gone_already_counts_as_removed() {
        assert!(Group(vec!["/no-such-folder/at-all".into()]).remove().is_empty());
    }
}
