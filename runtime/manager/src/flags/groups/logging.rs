//! Flags of logging.

use clap::{Args, ValueEnum};

use crate::flags::values::go::{boolean, whole};

/// Flags about logging.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingArgs {
    /// How much to log, as klog counts: 0 and 1 inform, 2 to 4 debug, 5 and more trace. `RUST_LOG` overrides it.
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0, value_parser = whole(0..=u8::MAX))]
    pub verbosity: u8,

    /// `text` or `json`.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub logging_format: LogFormat,

    /// Has to be empty: files of Go programs have no meaning here. RUST_LOG sets the level of single modules.
    #[arg(long, value_name = "PATTERN=N", value_delimiter = ',')]
    pub vmodule: Vec<String>,

    /// Has to be false: all log lines go to standard error.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub log_text_split_stream: bool,

    /// Has to be false: all log lines go to standard error.
    #[arg(long, value_name = "BOOL", default_value = "false", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    pub log_json_split_stream: bool,
}

impl LoggingArgs {
    /// What is requested and is not there.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for pattern in crate::flags::values::go::entries(&self.vmodule) {
            mistakes.push(format!(
                "--vmodule={pattern}: there are no such files here; set RUST_LOG, for example RUST_LOG=info,cloudwit_controllers::service=debug"
            ));
        }
        for (flag, on) in [
            ("--log-text-split-stream", self.log_text_split_stream),
            ("--log-json-split-stream", self.log_json_split_stream),
        ] {
            if on {
                mistakes.push(format!(
                    "{flag}=true: all log lines go to standard error; leave it away"
                ));
            }
        }
        mistakes
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line.
    Text,
    /// One JSON object a line.
    Json,
}
