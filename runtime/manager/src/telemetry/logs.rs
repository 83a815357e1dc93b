//! Logs as text or JSON on standard error, and spans for `trace_export`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracer;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, reload};

use crate::flags::groups::logging::{LogFormat, LoggingArgs};
use crate::telemetry::lines::{Form, Lines};
use crate::telemetry::trace_export::Traces;
use crate::telemetry::trace_spans::is_exported;

/// Directives for our crates at this verbosity; what we import stays quiet unless set by `RUST_LOG`.
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
pub struct Verbosity(Arc<dyn Fn(EnvFilter) -> Result<(), String> + Send + Sync>);

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

/// Starts logging and, where an exporter is given, tracing. Called once.
pub fn init(args: &LoggingArgs, traces: Option<&Traces>) -> Verbosity {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(args.verbosity)));
    let (filter, handle) = reload::Layer::new(filter);
    let form = match args.logging_format {
        LogFormat::Text => Form::Text {
            colour: std::io::stderr().is_terminal() && !is_plain(std::env::var_os("NO_COLOR")),
        },
        LogFormat::Json => Form::Json,
    };
    let lines = Lines::new(form).with_filter(filter);
    let spans = traces.map(|traces| spans(traces).with_filter(exported()));
    tracing_subscriber::registry().with(lines).with(spans).init();
    Verbosity(Arc::new(move |filter| {
        handle.reload(filter).map_err(|error| error.to_string())
    }))
}

/// Whether the variable `NO_COLOR` disables colours: with any value but an empty one.
fn is_plain(no_color: Option<OsString>) -> bool {
    no_color.is_some_and(|value| !value.is_empty())
}

/// What is exported does not depend on what is logged.
fn exported() -> FilterFn {
    let wanted: fn(&Metadata<'_>) -> bool =
        |metadata| metadata.is_span() && is_exported(metadata.target(), metadata.name());
    filter_fn(wanted).with_max_level_hint(LevelFilter::INFO)
}

/// Spans with their own fields alone.
fn spans<S>(traces: &Traces) -> OpenTelemetryLayer<S, SdkTracer>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    tracing_opentelemetry::layer()
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_tracer(traces.provider().tracer("cloudwit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out_when_the_variable_has_a_value() {
        assert!(is_plain(Some("1".into())));
        assert!(!is_plain(Some(OsString::new())) && !is_plain(None));
    }

    #[test]
    fn verbosity_raises_our_own_level_only() {
        assert!(directives(0).contains("cloudwit_host=info"));
        assert!(directives(4).contains("cloudwit_host=debug"));
        assert!(directives(9).contains("cloudwit_host=trace"));
        assert!(directives(9).starts_with("warn,"));
    }
}
