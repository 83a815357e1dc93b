//! Checks of flags beyond the syntax of single values, and notes on flags without effect.

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use crate::flags::args::Args;

/// The heading of the flags that are only accepted.
const NO_EFFECT: &str = "Accepted as upstream's, without effect";

/// Every mistake that needs no file and no network to be seen, those of the command line's shape first.
pub fn mistakes(args: &Args) -> Vec<String> {
    let mut mistakes = args.mistakes.clone();
    mistakes.extend(args.version.text().err());
    mistakes.extend(args.secure_serving.mistakes());
    mistakes.extend(args.authorization.mistakes());
    mistakes.extend(args.logging.mistakes());
    mistakes.extend(args.tracing.mistakes());
    mistakes.extend(args.features.mistakes());
    mistakes.extend(args.ssh_keys.mistakes());
    mistakes.extend(args.webhooks.mistakes(&args.secure_serving));
    mistakes
}

/// One line for each flag that was given and changes nothing, with the reason from its help.
pub fn without_effect(matches: &ArgMatches) -> Vec<String> {
    Args::command()
        .get_arguments()
        .filter(|arg| arg.get_help_heading() == Some(NO_EFFECT))
        .filter(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
        .filter_map(|arg| Some(format!("--{} changes nothing. {}", arg.get_long()?, arg.get_help()?)))
        .collect()
}

#[cfg(test)]
mod flag_table;
