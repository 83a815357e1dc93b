//! What the documents promise exists: links lead somewhere, and the commands they show are commands.

use std::fs;
use std::path::Path;

use clap::Parser;
use cloudwit_suite::documents::{broken_links, commands};
use cloudwit_suite::{files_below, root};

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let documents = files_below(&root(), ".md");
    assert!(documents.contains(&root().join("README.md")), "{documents:?}");
    for file in documents {
        let text = fs::read_to_string(&file).unwrap();
        broken.extend(
            broken_links(&file, &text)
                .into_iter()
                .map(|link| format!("{} -> {link}", file.display())),
        );
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_command_of_the_readme_is_understood() {
    let shown = commands(&fs::read_to_string(root().join("README.md")).unwrap());
    for wanted in ["cargo xtask sandbox", "cargo xtask test"] {
        assert!(
            shown.iter().any(|command| command == wanted),
            "the README does not show `{wanted}`: {shown:?}"
        );
    }
    let unknown: Vec<_> = shown.iter().filter_map(|command| check(command).err()).collect();
    assert!(
        unknown.is_empty(),
        "commands of the README that do not exist:\n{}",
        unknown.join("\n")
    );
}

/// Whether a command that we own has this subcommand and these flags; commands of others are taken as they are.
fn check(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "xtask", arguments @ ..] => xtask::cli::Cli::try_parse_from([&["xtask"], arguments].concat())
            .map(|_| ())
            .map_err(|error| format!("{command}: {error}")),
        [program, arguments @ ..] if Path::new(program).ends_with("cloudwit") => check_flags(command, arguments),
        _ => Ok(()),
    }
}

/// The flags of the binary are fields of its arguments.
fn check_flags(command: &str, arguments: &[&str]) -> Result<(), String> {
    let declared: String = ["args.rs", "telemetry.rs"]
        .map(|file| {
            fs::read_to_string(root().join("runtime/manager/src").join(file))
                .expect("the manager declares its flags there")
        })
        .concat();
    for flag in arguments.iter().filter_map(|argument| argument.strip_prefix("--")) {
        let name = flag.split('=').next().unwrap_or_default().replace('-', "_");
        if !declared.contains(&format!("pub {name}:")) {
            return Err(format!("{command}: cloudwit has no flag --{flag}"));
        }
    }
    Ok(())
}
