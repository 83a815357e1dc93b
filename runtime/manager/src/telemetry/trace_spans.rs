//! Exported spans and attributes: a closed set without texts of clouds or providers.
//!
//! The spans are begun in `cloudwit_controllers::queue::span`, `cloudwit_host::call` and `cloudwit_host::egress::request_span`; the logs show the
//! same ones. Here is what of them leaves the process, their kinds, and which of them are errors. docs/reference/tracing.md is the same table.

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::SpanData;

/// A span by its name.
pub struct Exported {
    /// Its name.
    pub name: &'static str,
    kind: SpanKind,
    /// All attributes it may have.
    pub attributes: &'static [&'static str],
}

/// Every span that is exported.
pub const EXPORTED: [Exported; 3] = [
    Exported {
        name: "reconcile",
        kind: SpanKind::Internal,
        attributes: &["controller", "object", "objects", "result"],
    },
    Exported {
        name: "provider_call",
        kind: SpanKind::Internal,
        attributes: &["provider", "version", "digest", "operation", "id", "result"],
    },
    Exported {
        name: "http_request",
        kind: SpanKind::Client,
        attributes: &[
            "http.request.method",
            "server.address",
            "server.port",
            "http.response.status_code",
            "error.type",
            "waited_ms",
        ],
    },
];

/// Whether this is one of our spans.
pub fn is_exported(target: &str, name: &str) -> bool {
    let ours = target == "cloudwit" || target.starts_with("cloudwit::") || target.starts_with("cloudwit_");
    ours && EXPORTED.iter().any(|exported| exported.name == name)
}

/// Takes away what is not in the table, and says kind and status as OpenTelemetry does.
pub fn shape(span: &mut SpanData) {
    let Some(exported) = EXPORTED.iter().find(|exported| exported.name == span.name) else {
        return;
    };
    span.attributes
        .retain(|attribute| exported.attributes.contains(&attribute.key.as_str()));
    span.events = Default::default();
    span.span_kind = exported.kind.clone();
    span.status = match failure(span) {
        Some(description) => Status::error(description),
        None => Status::Unset,
    };
}

/// Why a span is an error, in a word from a closed set.
fn failure(span: &SpanData) -> Option<String> {
    let of = |name: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
        found.map(|attribute| attribute.value.to_string())
    };
    match span.name.as_ref() {
        "reconcile" => of("result").filter(|result| matches!(result.as_str(), "failed" | "given_up")),
        // "pending" is an answer, and what a dry run leaves out is no failure.
        "provider_call" => of("result").filter(|result| !matches!(result.as_str(), "ok" | "pending" | "dry_run")),
        _ => of("error.type").or_else(|| of("http.response.status_code").filter(|code| code.as_str() >= "400")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::SystemTime;

    use opentelemetry::trace::{SpanContext, SpanId};
    use opentelemetry::{InstrumentationScope, KeyValue};

    use super::*;

    fn span(name: &'static str, attributes: &[(&'static str, &'static str)]) -> SpanData {
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Server,
            name: name.into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: attributes
                .iter()
                .map(|(key, value)| KeyValue::new(*key, *value))
                .collect(),
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    fn shaped(name: &'static str, attributes: &[(&'static str, &'static str)]) -> SpanData {
        let mut span = span(name, attributes);
        shape(&mut span);
        span
    }

    #[test]
    fn an_attribute_that_is_not_in_the_table_does_not_leave() {
        let span = shaped(
            "http_request",
            &[("server.address", "api"), ("url.full", "https://api/?token=1")],
        );
        assert_eq!(span.attributes, [KeyValue::new("server.address", "api")]);
        assert_eq!(span.span_kind, SpanKind::Client);
    }

    #[test]
    fn failures_are_errors_and_pending_is_none() {
        let error = |word: &str| Status::error(word.to_owned());
        assert_eq!(shaped("reconcile", &[("result", "later")]).status, Status::Unset);
        assert_eq!(shaped("reconcile", &[("result", "failed")]).status, error("failed"));
        assert_eq!(shaped("provider_call", &[("result", "pending")]).status, Status::Unset);
        assert_eq!(shaped("provider_call", &[("result", "fault")]).status, error("fault"));
        let code = |code| shaped("http_request", &[("http.response.status_code", code)]).status;
        assert_eq!((code("200"), code("429")), (Status::Unset, error("429")));
        assert_eq!(shaped("http_request", &[("error.type", "tls")]).status, error("tls"));
    }

    #[test]
    fn spans_of_others_stay_here() {
        assert!(is_exported("cloudwit_host::call", "provider_call"));
        assert!(!is_exported("hyper", "http_request"));
        assert!(!is_exported("cloudwit_host::call", "other"));
    }

    /// Rows of the page are ``| `span` | `attribute` | ...``.
    #[test]
    fn the_page_about_tracing_has_the_same_table() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tracing.md");
        let page = std::fs::read_to_string(page).unwrap();
        let word = |cell: &str| cell.trim().strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
        let row = |line: &str| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((word(cells.next()?)?, word(cells.next()?)?))
        };
        let written: BTreeSet<(String, String)> = page.lines().filter_map(row).collect();
        let pairs = EXPORTED.iter().flat_map(|span| {
            let pair = |attribute: &&str| (span.name.to_owned(), (*attribute).to_owned());
            span.attributes.iter().map(pair)
        });
        assert_eq!(written, pairs.collect());
    }
}
