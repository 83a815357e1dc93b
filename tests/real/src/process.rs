//! Commands that end soon, the children of a process, and the namespaces that we are in.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command to its end. Words are separated by blanks, so none may hold one.
pub fn call(line: &str) -> Result<()> {
    let mut words = line.split(' ');
    let program = words.next().unwrap_or_default();
    let done = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {program}"))?;
    if !done.status.success() {
        bail!("`{line}` failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(())
}

/// A command that finds the unpacked parts of a Node and their libraries.
pub fn with_parts(mut command: Command, parts: &Path) -> Command {
    let parts = parts.display();
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{parts}/usr/bin:{parts}/usr/sbin:{parts}/sbin:{path}"))
        .env(
            "LD_LIBRARY_PATH",
            format!("{parts}/usr/lib/x86_64-linux-gnu:{parts}/lib/x86_64-linux-gnu"),
        );
    command
}

/// The processes whose command line, with a zero byte after each word, has this part. By the numbers of our own process namespace.
pub fn with_command_line(part: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(part)
        })
        .collect()
}

/// Those of them that have this variable, `NAME=VALUE`, in their environment.
pub fn with_variable(part: &str, variable: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let all = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    with_command_line(part).into_iter().filter(has).collect()
}

/// The first child of a process, once it has one. Both by the numbers of our own process namespace.
pub fn child_of(parent: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name in parentheses, which may hold blanks, come the state and the parent.
            let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
            after_name.split_whitespace().nth(1) == Some(&parent.to_string())
        })
}

/// Checks that we are the first process of a process namespace of our own, and makes our mounts private: whatever we mount, unmount, plug in or end
/// from here on is ours.
///
/// # Errors
///
/// When this is not so, or mounts are still shared with others.
pub fn own_namespaces() -> Result<()> {
    if std::process::id() != 1 {
        bail!("not the first process of a namespace; `cloudwit-real run` starts it there");
    }
    call("mount --make-rprivate /")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("reading the mounts")?;
    if let Some(shared) = mounts.lines().find(|line| is_shared(line)) {
        bail!("a mount is shared with other namespaces: {shared}");
    }
    Ok(())
}

/// Optional fields stand between the sixth field and the dash.
fn is_shared(line: &str) -> bool {
    let fields = line.split(' ').skip(6).take_while(|field| *field != "-");
    fields.clone().any(|field| field.starts_with("shared:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_of_a_process_is_found() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert_eq!(child_of(child.id()), None);
        let shell = Command::new("sh").args(["-c", "sleep 100 & echo; wait"]).spawn();
        let mut shell = shell.unwrap();
        let found = std::iter::repeat_with(|| child_of(shell.id()))
            .take(100_000)
            .flatten()
            .next();
        call(&format!("kill {}", found.expect("the shell has a child"))).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn processes_are_found_by_their_command_line() {
        let mut child = Command::new("sleep").arg("98765").spawn().unwrap();
        let found = std::iter::repeat_with(|| with_command_line("sleep\x0098765\0"))
            .take(100_000)
            .find(|found| !found.is_empty());
        assert_eq!(found, Some(vec![child.id()]));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn command_that_fails_reports_which_and_why() {
        let error = call("ls /no-such-folder").unwrap_err().to_string();
        assert!(
            error.contains("`ls /no-such-folder`") && error.contains("No such"),
            "{error}"
        );
    }

    #[test]
    fn the_machines_own_namespace_is_refused() {
        let error = own_namespaces().unwrap_err().to_string();
        assert!(error.contains("cloudwit-real run"), "{error}");
    }

    #[test]
    fn shared_and_private_mounts_are_distinguished() {
        assert!(is_shared("22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw"));
        assert!(!is_shared("22 27 0:21 / /proc rw,relatime master:1 - proc proc rw"));
        assert!(!is_shared("22 27 0:21 / /proc rw,relatime - proc shared:5 rw"));
    }
}
