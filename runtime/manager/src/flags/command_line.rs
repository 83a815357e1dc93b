//! Parser of the command line: upstream's syntax, all mistakes at once.
//!
//! Each flag is brought into the form `--name=value` and tried alone, so that one mistake hides no other; what is left is parsed
//! together. No flag depends on another while it is parsed: that is for `checks` and `config::settings`, which report their findings
//! in the same list.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::flags::args::Args;

/// A command line that was read.
#[derive(Debug)]
pub struct Parsed {
    /// The flags, with the mistakes of those that could not be read.
    pub args: Args,
    /// Where the values come from.
    pub matches: ArgMatches,
}

/// Flags that `-h` shows: what most people set. `--help` has all.
const COMMON: [&str; 24] = [
    "cloud-provider",
    "provider-dir",
    "cloud-config",
    "provider-settings",
    "config",
    "cache-dir",
    "kubeconfig",
    "leader-elect",
    "leader-elect-resource-name",
    "cluster-name",
    "cluster-cidr",
    "controllers",
    "configure-cloud-routes",
    "dry-run",
    "csi-socket-dir",
    "node-deletion",
    "node-deletion-grace-period",
    "secure-port",
    "admin-address",
    "webhooks",
    "v",
    "logging-format",
    "tracing-endpoint",
    "version",
];

/// The command with all its flags.
fn command() -> Command {
    Args::command().mut_args(|arg| {
        let is_common = arg.get_long().is_some_and(|name| COMMON.contains(&name));
        arg.hide_short_help(!is_common)
    })
}

/// Reads a command line, the program's name first. The error is help to print, or what is wrong with a subcommand.
pub fn parse(line: impl IntoIterator<Item = String>) -> Result<Parsed, clap::Error> {
    let line: Vec<String> = line.into_iter().collect();
    let command = command();
    let is_command = |word: &String| word == "help" || command.find_subcommand(word).is_some();
    if line.get(1).is_some_and(is_command) {
        return finish(command, line, Vec::new());
    }
    let program = line.first().cloned().unwrap_or_default();
    let (flags, mut mistakes) = one_by_one(&command, line.get(1..).unwrap_or_default());
    let mut good = vec![program.clone()];
    for flag in flags {
        match command.clone().try_get_matches_from([&program, &flag]) {
            Ok(_) => good.push(flag),
            Err(help) if matches!(help.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => return Err(help),
            Err(error) => mistakes.push(mistake(&flag, &error)),
        }
    }
    finish(command, good, mistakes)
}

fn finish(command: Command, line: Vec<String>, mistakes: Vec<String>) -> Result<Parsed, clap::Error> {
    let matches = command.try_get_matches_from(line)?;
    let mut args = Args::from_arg_matches(&matches)?;
    args.mistakes = mistakes;
    Ok(Parsed { args, matches })
}

/// Each flag as one word with its value, names with dashes for underscores; and what is no flag, as a mistake.
fn one_by_one(command: &Command, words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut flags, mut others) = (Vec::new(), Vec::new());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            others.extend(words.by_ref());
        } else if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let name = name.replace('_', "-");
            let value = match value {
                None if takes_next_word(command, &name) => words.next().cloned(),
                value => value,
            };
            flags.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
        } else if let Some(level) = word.strip_prefix("-v") {
            let level = level.strip_prefix('=').unwrap_or(level);
            let level = if level.is_empty() {
                words.next().map_or("", String::as_str)
            } else {
                level
            };
            flags.push(format!("--v={level}"));
        } else if word.starts_with('-') && word.len() > 1 {
            flags.push(word.clone());
        } else {
            others.push(word);
        }
    }
    let mistakes = match others.as_slice() {
        [] => Vec::new(),
        others => vec![format!(
            "cloudwit does not take any arguments, got {others:?}; write flags as --name=value (the commands are {})",
            command
                .get_subcommands()
                .map(Command::get_name)
                .collect::<Vec<_>>()
                .join(", ")
        )],
    };
    (flags, mistakes)
}

/// Whether the value may follow as a word of its own; a switch takes it after `=` only.
fn takes_next_word(command: &Command, name: &str) -> bool {
    let takes = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_require_equals_set();
    command
        .get_arguments()
        .any(|arg| arg.get_long() == Some(name) && takes(arg))
}

/// One sentence naming the flag, the value and the fix.
fn mistake(flag: &str, error: &clap::Error) -> String {
    let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
    match error.kind() {
        ErrorKind::UnknownArgument => match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(near)) => format!("{name}: there is no such flag; did you mean {near}?"),
            _ => format!("{name}: there is no such flag; cloudwit --help lists all"),
        },
        ErrorKind::InvalidValue if value.is_empty() => format!("{name}: needs a value, as in {name}=VALUE"),
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(valid)) => format!("{flag}: {value:?} is none of {}", valid.join(", ")),
            _ => format!("{flag}: this value cannot be used"),
        },
        // Each type of ours says what it takes.
        kind => match error.source() {
            Some(source) => format!("{flag}: {source}"),
            None => format!("{flag}: {kind}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Args {
        let line = ["cloudwit"].iter().chain(words).map(|word| (*word).to_owned());
        parse(line).unwrap().args
    }

    #[test]
    fn short_help_has_the_common_flags_alone() {
        let all: Vec<String> = Args::command()
            .get_arguments()
            .filter_map(|arg| arg.get_long().map(str::to_owned))
            .collect();
        for name in COMMON {
            assert!(all.iter().any(|known| known == name), "--{name}");
        }
        let short = command().term_width(100).render_help().to_string();
        assert!(short.lines().count() < 150, "{short}");
        assert!(
            short.contains("--provider-dir") && !short.contains("--tls-cipher-suites"),
            "{short}"
        );
        assert!(command().render_long_help().to_string().contains("--tls-cipher-suites"));
    }

    #[test]
    fn names_may_be_written_with_underscores() {
        let args = of(&[
            "--cloud_provider=a_b",
            "--cluster_name",
            "c_d",
            "--configure_cloud_routes=F",
        ]);
        assert!(args.mistakes.is_empty(), "{:?}", args.mistakes);
        assert_eq!(args.provider.cloud_provider, "a_b");
        assert_eq!(args.cluster.cluster_name, "c_d");
        assert!(!args.controllers.configure_cloud_routes);
    }

    #[test]
    fn verbosity_has_all_of_its_forms() {
        for words in [&["-v=4"][..], &["-v4"], &["-v", "4"], &["--v=4"], &["--v", "4"]] {
            assert_eq!(of(words).logging.verbosity, 4, "{words:?}");
        }
    }

    #[test]
    fn the_last_of_a_repeated_flag_counts_and_lists_grow() {
        let args = of(&[
            "--cluster-name=a",
            "--cluster-name=b",
            "--controllers=cloud-node",
            "--controllers=-service",
        ]);
        assert_eq!(args.cluster.cluster_name, "b");
        assert_eq!(args.controllers.controllers, ["cloud-node", "-service"]);
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        let args = of(&[
            "--cloud-providr=sim",
            "--secure-port=70000",
            "--node-monitor-period=soon",
            "--node-deletion=never",
            "--leader-elect=perhaps",
            "--admin-address=0.0.0.0:80",
            "--cluster-name",
            "start",
            "now",
        ]);
        let all = args.mistakes.join("\n");
        for part in [
            "--cloud-providr: there is no such flag; did you mean --cloud-provider?",
            "--secure-port=70000: \"70000\" cannot be used; give a whole number from 0 to 65535",
            "--node-monitor-period=soon: \"soon\" is not a valid duration",
            "--node-deletion=never: \"never\" is none of off, taint, delete",
            "--admin-address=0.0.0.0:80: it is not on loopback",
            "does not take any arguments, got [\"now\"]",
        ] {
            assert!(all.contains(part), "{part:?} is missing in:\n{all}");
        }
        assert_eq!(args.cluster.cluster_name, "start", "a value may be a word of its own");
        assert_eq!(args.mistakes.len(), 7, "{all}");
    }

    /// Every flag that does not take any text: a value that is none of it is named, with what would be one.
    #[test]
    fn each_flag_documents_its_value() {
        let free = |name: &str| of(&[&format!("--{name}=?")]).mistakes.is_empty();
        let command = Args::command();
        let flags = command.get_arguments().filter(|arg| arg.get_action().takes_values());
        let strict: Vec<&str> = flags
            .filter_map(clap::Arg::get_long)
            .filter(|name| !free(name))
            .collect();
        assert!(strict.len() > 40, "{strict:?}");
        for name in strict {
            let mistakes = of(&[&format!("--{name}=?")]).mistakes;
            let said = &mistakes[0];
            assert!(said.starts_with(&format!("--{name}=?: ")), "{said}");
            let fixes = ["give ", "write ", "is none of ", "it has to be "];
            assert!(fixes.iter().any(|fix| said.contains(fix)), "{said}");
            assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        }
        for (flag, fix) in [
            (
                "--secure-port=x",
                "\"x\" cannot be used; give a whole number from 0 to 65535",
            ),
            ("--secure-port=-1", "give a whole number from 0 to 65535"),
            ("--concurrent-service-syncs=0", "give a whole number from 1 to 65535"),
            ("--tls-curve-preferences=29,x", "give a whole number"),
            (
                "--kube-api-qps=many",
                "\"many\" is not a valid number; write for example 20 or 0.5",
            ),
            (
                "--bind-address=here",
                "\"here\" is not an IP address; write for example",
            ),
            (
                "--master=https://[",
                "\"https://[\" is not a valid URL; write for example https://",
            ),
            (
                "--leader-elect=perhaps",
                "\"perhaps\" is neither true nor false; write =true or =false",
            ),
            (
                "--leader-elect-lease-duration=-5s",
                "\"-5s\" is not a valid duration; write for example",
            ),
        ] {
            let mistakes = of(&[flag]).mistakes;
            assert!(mistakes[0].contains(fix), "{mistakes:?}");
        }
    }

    #[test]
    fn flag_without_its_value_is_reported() {
        assert_eq!(of(&["--cluster-cidr"]).mistakes.len(), 1);
        assert!(of(&["-x"]).mistakes[0].starts_with("-x: there is no such flag"));
    }
}
