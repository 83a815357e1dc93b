//! Flags of tracing.

use std::path::PathBuf;

use crate::flags::values::go::whole;
use reqwest::Url;

/// Where OTLP over HTTP is received when an address has no path (OpenTelemetry's specification of the exporter).
const PATH: &str = "/v1/traces";

/// All traces.
const MILLION: u32 = 1_000_000;

/// Flags about tracing.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Tracing")]
pub struct TracingArgs {
    /// Sends spans of reconciles, provider calls and HTTP requests of providers to this OpenTelemetry collector: OTLP over HTTP with
    /// protobuf, such as http://127.0.0.1:4318. Without it there is no tracing. Credentials go into the environment variable
    /// OTEL_EXPORTER_OTLP_HEADERS.
    #[arg(long, value_name = "URL")]
    pub tracing_endpoint: Option<String>,

    /// How many of a million traces are sent.
    #[arg(long, value_name = "N", default_value_t = MILLION, value_parser = whole(0..=u32::MAX))]
    pub tracing_sampling_rate_per_million: u32,

    /// Authorities that the collector is trusted by, as PEM, instead of the public ones.
    #[arg(long, value_name = "FILE")]
    pub tracing_ca_file: Option<PathBuf>,
}

impl TracingArgs {
    /// What is wrong with them, files aside.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes: Vec<String> = self.endpoint().err().into_iter().collect();
        let rate = self.tracing_sampling_rate_per_million;
        if rate > MILLION {
            mistakes.push(format!(
                "--tracing-sampling-rate-per-million={rate}: more than all traces cannot be sent; give 0 to {MILLION}"
            ));
        }
        mistakes
    }

    /// Where spans go, with its path; none when tracing is off. The error does not repeat an address that may hold a password.
    pub fn endpoint(&self) -> Result<Option<Url>, String> {
        let Some(text) = self.tracing_endpoint.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let wrong = |what: &str| {
            Err(format!(
                "--tracing-endpoint: {what}; give a URL such as http://127.0.0.1:4318"
            ))
        };
        let Ok(mut url) = Url::parse(text) else {
            return wrong("it is not a valid URL");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("only http and https are spoken (OTLP over HTTP, usually port 4318, not gRPC)");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(
                "it contains credentials, which belong into the environment variable OTEL_EXPORTER_OTLP_HEADERS",
            );
        }
        if url.path() == "/" {
            url.set_path(PATH);
        }
        Ok(Some(url))
    }

    /// The share of traces that are sent, 0 to 1.
    pub fn ratio(&self) -> f64 {
        f64::from(self.tracing_sampling_rate_per_million.min(MILLION)) / f64::from(MILLION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(endpoint: &str) -> TracingArgs {
        TracingArgs {
            tracing_endpoint: Some(endpoint.into()),
            tracing_sampling_rate_per_million: MILLION,
            tracing_ca_file: None,
        }
    }

    #[test]
    fn an_address_without_a_path_gets_the_usual_one() {
        let of = |text| args(text).endpoint().unwrap().map(|url| url.to_string());
        assert_eq!(of("http://c:4318").as_deref(), Some("http://c:4318/v1/traces"));
        assert_eq!(of("https://c/otlp/x").as_deref(), Some("https://c/otlp/x"));
        assert_eq!(of(""), None);
    }

    #[test]
    fn wrong_address_is_reported_without_its_password() {
        for (wrong, part) in [
            ("grpc://c:4317", "not gRPC"),
            ("http://u:canary-7391@c", "credentials"),
            ("canary-7391", "not a valid URL"),
        ] {
            let mistakes = args(wrong).mistakes();
            assert!(mistakes[0].contains(part), "{mistakes:?}");
            assert!(!mistakes[0].contains("canary"), "{mistakes:?}");
        }
    }

    #[test]
    fn a_rate_is_a_part_of_a_million() {
        let rate = |tracing_sampling_rate_per_million| TracingArgs {
            tracing_sampling_rate_per_million,
            ..args("http://c")
        };
        assert_eq!(rate(250_000).ratio(), 0.25);
        assert_eq!(rate(0).mistakes(), Vec::<String>::new());
        assert!(rate(MILLION + 1).mistakes()[0].contains("1000001"));
    }
}
