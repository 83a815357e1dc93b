//! `cloudwit completion` and `cloudwit man`: shell completion and manual pages.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::flags::args::Args;

/// The name under which it is installed.
const PROGRAM: &str = "cloudwit";

/// Arguments of `completion`.
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// For which shell.
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Where the pages of all commands are written, a file each. Without it the main page is printed.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints the script that completes commands and flags.
pub fn completion(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), PROGRAM, &mut script);
    print(&script).context("printing the script")?;
    Ok(ExitCode::SUCCESS)
}

/// Whoever reads may stop before the end, as `head` does.
fn print(text: &[u8]) -> std::io::Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints or writes the manual.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let command = Args::command().name(PROGRAM);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).context("making the page")?;
        print(&page).context("printing the page")?;
        return Ok(ExitCode::SUCCESS);
    };
    if !dir.is_dir() {
        bail!("{} is not a folder; make it first", dir.display());
    }
    clap_mangen::generate_to(command, dir).with_context(|| format!("writing the pages to {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_has_a_script_with_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), PROGRAM, &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["explain", "conformance", "cluster-cidr"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn manual_has_a_page_for_each_command() {
        let dir = tempfile::tempdir().unwrap();
        let args = ManArgs {
            dir: Some(dir.path().to_owned()),
        };
        man(&args).unwrap();
        for (page, word) in [
            ("cloudwit.1", "leader"),
            ("cloudwit-explain.1", "waits"),
            ("cloudwit-provider-conformance.1", "promises"),
        ] {
            let text = std::fs::read_to_string(dir.path().join(page)).unwrap();
            assert!(text.contains(word), "{page}");
        }
        let missing = ManArgs {
            dir: Some(dir.path().join("none")),
        };
        assert!(man(&missing).unwrap_err().to_string().contains("make it first"));
    }
}
