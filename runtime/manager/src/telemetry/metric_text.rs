//! Text formats of metrics: Prometheus with Go's numbers, and OpenMetrics.
//!
//! The registry writes OpenMetrics with Rust's numbers. A query on `le="1"` finds nothing where `le="1.0"` is served, so numbers become Go's
//! here, in one place; so do the types and help texts of upstream's metrics.

use crate::telemetry::metric_help::{COUNTERS_WITHOUT_TOTAL, HELP};

/// A number as Go's `strconv.FormatFloat(value, 'g', -1, 64)` writes it: the shortest digits, with an exponent from 1e+06 on and below 0.0001.
pub fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// OpenMetrics, from what the registry wrote: bounds of buckets as Go programs write them there.
pub fn open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with('#') {
            out += line;
        } else {
            let (head, rest) = split_sample(line);
            let float = |bound| {
                let text = go_float(bound);
                if text.contains(['.', 'e', 'I', 'N']) {
                    text
                } else {
                    text + ".0"
                }
            };
            out += &with_bound(head, float);
            out += rest;
        }
        out.push('\n');
    }
    out
}

/// The text format of Prometheus, from what the registry wrote. It differs in the names of counters in comments, in some types, in exemplars,
/// and in the end mark.
pub fn prometheus(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        match line.strip_prefix("# ") {
            Some(comment) => describe(comment, &lines[at..], &mut out),
            None => {
                let (head, rest) = split_sample(line);
                // An exemplar follows the value.
                let value = rest.split_whitespace().next().unwrap_or_default();
                let value = value.parse().map_or_else(|_| value.to_owned(), go_float);
                out += &format!("{} {value}\n", with_bound(head, go_float));
            }
        }
    }
    out
}

/// Writes a comment; those that only OpenMetrics has are left out.
fn describe(comment: &str, lines: &[&str], out: &mut String) {
    let words: Vec<&str> = comment.splitn(3, ' ').collect();
    let [kind @ ("HELP" | "TYPE"), name, rest] = words.as_slice() else {
        return; // EOF and UNIT
    };
    let declared = if *kind == "TYPE" { *rest } else { type_of(lines, name) };
    let (suffix, declared) = match declared {
        "counter" => ("_total", "counter"),
        "info" => ("_info", "gauge"),
        "stateset" => ("", "gauge"),
        "unknown" if COUNTERS_WITHOUT_TOTAL.contains(name) => ("", "counter"),
        "unknown" => ("", "untyped"),
        other => ("", other),
    };
    let name = format!("{name}{suffix}");
    let upstreams = HELP.iter().find(|(known, _)| *known == name).map(|(_, help)| *help);
    let rest = if *kind == "TYPE" {
        declared
    } else {
        upstreams.unwrap_or(rest)
    };
    *out += &format!("# {kind} {name} {rest}\n");
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

/// A line of a sample before its value, and from the space before the value on. Values of labels may hold spaces.
fn split_sample(line: &str) -> (&str, &str) {
    let (mut quoted, mut escaped) = (false, false);
    let end = line.bytes().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        byte == b' ' && !quoted
    });
    line.split_at(end.unwrap_or(line.len()))
}

/// The head of a sample with the bound of its bucket written anew.
fn with_bound(head: &str, write: impl Fn(f64) -> String) -> String {
    let found = ["{le=\"", ",le=\""]
        .iter()
        .find_map(|start| Some((head.find(start)? + start.len(), start)));
    let bound = found.and_then(|(from, _)| {
        let length = head[from..].find('"')?;
        Some((from, from + length, head[from..from + length].parse::<f64>().ok()?))
    });
    match bound {
        // A label's value could hold the same characters, but only histograms of ours have bounds, and their labels hold no quotes.
        Some((from, to, bound)) => format!("{}{}{}", &head[..from], write(bound), &head[to..]),
        None => head.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made with Go's `strconv.FormatFloat(value, 'g', -1, 64)`.
    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-1.0, "-1"),
            (1e-7, "1e-07"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (0.00012, "0.00012"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (999_999.0, "999999"),
            (1e6, "1e+06"),
            (1_048_576.0, "1.048576e+06"),
            (16_777_216.0, "1.6777216e+07"),
            (1e22, "1e+22"),
            (1_234_567.5, "1.2345675e+06"),
            (1_763_800_000.12, "1.76380000012e+09"),
            (18_446_744_073_709_551_615.0, "1.8446744073709552e+19"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(go_float(value), text);
        }
    }

    #[test]
    fn samples_and_comments_are_those_of_the_text_format() {
        let text = "# HELP a Help of a.\n# TYPE a counter\na_total 1\n# HELP b Help # of b.\n# TYPE b gauge\nb 1048576\n\
                    # HELP authentication_attempts x.\n# TYPE authentication_attempts unknown\nauthentication_attempts{result=\"success\"} 2\n\
                    # TYPE h histogram\n# UNIT h seconds\nh_bucket{code=\"a \\\" # b\",le=\"1.0\"} 1 # {trace=\"x\"} 0.5\nh_bucket{le=\"1e-7\"} 0\n\
                    h_bucket{le=\"+Inf\"} 1\nh_sum 1.0\n# TYPE i info\ni_info{a=\"b\"} 1\n# TYPE u unknown\nu 1\n# EOF\n";
        assert_eq!(
            prometheus(text),
            "# HELP a_total Help of a.\n# TYPE a_total counter\na_total 1\n# HELP b Help # of b.\n# TYPE b gauge\nb 1.048576e+06\n\
             # HELP authentication_attempts [ALPHA] Counter of authenticated attempts.\n# TYPE authentication_attempts counter\n\
             authentication_attempts{result=\"success\"} 2\n\
             # TYPE h histogram\nh_bucket{code=\"a \\\" # b\",le=\"1\"} 1\nh_bucket{le=\"1e-07\"} 0\n\
             h_bucket{le=\"+Inf\"} 1\nh_sum 1\n# TYPE i_info gauge\ni_info{a=\"b\"} 1\n# TYPE u untyped\nu 1\n"
        );
        assert!(open_metrics(text).contains("h_bucket{code=\"a \\\" # b\",le=\"1.0\"} 1 # {trace=\"x\"} 0.5\n"));
        assert!(open_metrics(text).contains("le=\"1e-07\"") && open_metrics(text).ends_with("# EOF\n"));
    }

    proptest! {
        #[test]
        fn a_number_keeps_its_value(value in any::<f64>()) {
            let read: f64 = go_float(value).parse().unwrap();
            prop_assert!(read == value || value.is_nan());
        }

        #[test]
        fn any_line_is_written(line in "\\PC{0,200}") {
            prometheus(&line);
            open_metrics(&line);
        }
    }
}
