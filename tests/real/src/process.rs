//! Commands that end soon, and the children of a process.

use std::fs;
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

/// The first child of a process, once it has one.
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
    fn a_command_that_fails_says_which_and_why() {
        let error = call("ls /no-such-folder").unwrap_err().to_string();
        assert!(
            error.contains("`ls /no-such-folder`") && error.contains("No such"),
            "{error}"
        );
    }
}
