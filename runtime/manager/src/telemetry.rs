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

/// Changes the verbosity while the process runs; clones do it for the same log.
#[derive(Clone)]
pub struct Verbosity(std::sync::Arc<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>);

impl std::fmt::Debug for Verbosity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Verbosity").finish()
    }
}

impl Verbosity {
    /// As `-v` would have set it; wins over `RUST_LOG`, since it is the later wish.
    pub fn set(&self, verbosity: u8) -> Result<(), String> {
        (self.0)(EnvFilter::new(directives(verbosity)))
    }
}

/// Starts logging. Called once.
pub fn init(args: &LoggingArgs) -> Verbosity {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(args.verbosity)));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match args.logging_format {
        LogFormat::Text => {
            let builder = builder.with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Verbosity(std::sync::Arc::new(move |filter| {
                handle.reload(filter).map_err(|error| error.to_string())
            }))
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Verbosity(std::sync::Arc::new(move |filter| {
                handle.reload(filter).map_err(|error| error.to_string())
            }))
        }
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
