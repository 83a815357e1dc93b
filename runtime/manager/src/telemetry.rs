//! Logs: one structured line for each thing that happened, as text or JSON, on standard error.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// Flags about logging.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub struct LoggingArgs {
    /// How much to log, as klog counts: 0 and 1 inform, 2 to 4 debug, 5 and more trace. `RUST_LOG` overrides it.
    #[arg(short = 'v', long = "v", value_name = "N", default_value_t = 0)]
    pub verbosity: u8,

    /// `text` for people, `json` for machines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub logging_format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line.
    Text,
    /// One JSON object a line.
    Json,
}

/// Directives for our crates at this verbosity; what we import stays quiet unless asked for by `RUST_LOG`.
fn directives(verbosity: u8) -> String {
    let level = match verbosity {
        0..=1 => "info",
        2..=4 => "debug",
        _ => "trace",
    };
    // kube's client logs each refused connection as an error, which its caller reports anyway.
    format!(
        "warn,kube_client::client::builder=off,cloudwit={level},cloudwit_host={level},cloudwit_controllers={level},provider={level}"
    )
}

/// Starts logging. Called once.
pub fn init(args: &LoggingArgs) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(args.verbosity)));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match args.logging_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_raises_our_own_level_only() {
        assert!(directives(0).contains("cloudwit_host=info"));
        assert!(directives(4).contains("cloudwit_host=debug"));
        assert!(directives(9).contains("cloudwit_host=trace"));
        assert!(directives(9).starts_with("warn,"));
    }
}
