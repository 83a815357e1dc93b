//! `/metrics` in the format the reader asks for: OpenMetrics, or the older text format of Prometheus.
//!
//! The registry writes OpenMetrics. A scraper that does not name it in `Accept` gets the older one, which differs in the names of
//! counters in `# TYPE` lines, in some types, in exemplars, and in the end mark.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::registry::Registry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of the older format.
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub fn answer(registry: &Registry, headers: &HeaderMap) -> Response {
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, registry).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let accept = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    if accept
        .into_iter()
        .any(|value| value.contains("application/openmetrics-text"))
    {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response()
    } else {
        ([(header::CONTENT_TYPE, TEXT)], older(&text)).into_response()
    }
}

/// The same in the older format.
fn older(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("# ") else {
            // An exemplar follows the value after " # ".
            out += line.split(" # ").next().unwrap_or(line);
            out.push('\n');
            continue;
        };
        let words: Vec<&str> = comment.splitn(3, ' ').collect();
        let [kind @ ("HELP" | "TYPE"), name, rest] = words.as_slice() else {
            continue; // EOF and UNIT
        };
        let declared = if *kind == "TYPE" {
            *rest
        } else {
            type_of(&lines[at..], name)
        };
        let (suffix, declared) = match declared {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            "stateset" => ("", "gauge"),
            "unknown" => ("", "untyped"),
            other => ("", other),
        };
        let rest = if *kind == "TYPE" { declared } else { rest };
        out += &format!("# {kind} {name}{suffix} {rest}\n");
    }
    out
}

/// The type that is declared for this name in the next lines; help comes before it.
fn type_of<'a>(lines: &[&'a str], name: &str) -> &'a str {
    let declaration = format!("# TYPE {name} ");
    lines
        .iter()
        .take(3)
        .find_map(|line| line.strip_prefix(&declaration))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    #[test]
    fn the_older_format_names_counters_as_their_samples() {
        let mut registry = Registry::default();
        let counter = Counter::<u64>::default();
        registry.register("a", "Help of a", counter.clone());
        registry.register("b", "Help # of b", Gauge::<i64>::default());
        counter.inc();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert_eq!(
            older(&text),
            "# HELP a_total Help of a.\n# TYPE a_total counter\na_total 1\n# HELP b Help # of b.\n# TYPE b gauge\nb 0\n"
        );
    }

    #[test]
    fn what_only_openmetrics_has_is_left_out() {
        let text = "# TYPE h histogram\n# UNIT h seconds\nh_bucket{le=\"1\"} 1 # {trace=\"x\"} 0.5\n# TYPE i info\ni_info{a=\"b\"} 1\n# EOF\n";
        assert_eq!(
            older(text),
            "# TYPE h histogram\nh_bucket{le=\"1\"} 1\n# TYPE i_info gauge\ni_info{a=\"b\"} 1\n"
        );
    }

    #[test]
    fn the_reader_chooses() {
        let of = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            answer(&Registry::default(), &headers).headers()[header::CONTENT_TYPE]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            of("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3"),
            OPEN_METRICS
        );
        assert_eq!(of("text/plain;version=0.0.4"), TEXT);
        assert_eq!(of("*/*"), TEXT);
    }
}
