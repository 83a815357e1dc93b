//! Logs: one structured line for each thing that happened, as text or JSON, on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::logging_args::{LogFormat, LoggingArgs};

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
