//! Lines of real events and spans, as text, as JSON, and folded.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing::{Subscriber, debug, info_span, warn};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

/// Keeps the lines instead of writing them.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Line>>>);

struct Keeps(Lines, Kept);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Keeps {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.0.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        self.0.on_record(id, record, context);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        self.1.0.lock().unwrap().push(Lines::line(event, &context));
    }
}

fn lines(events: impl FnOnce()) -> Vec<Line> {
    let kept = Kept::default();
    let layer = Keeps(Lines::new(Form::Json), kept.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
    let lines = kept.0.lock().unwrap();
    lines.clone()
}

fn one(event: impl FnOnce()) -> Line {
    let mut lines = lines(event);
    lines.remove(0)
}

#[test]
fn texts_are_quoted_and_numbers_are_not_whoever_wrote_them() {
    let line = one(|| {
        let span = info_span!("reconcile", object = "node-1", result = tracing::field::Empty);
        span.record("result", "done");
        let _inside = span.enter();
        let (error, operation) = (std::fmt::Error, Some(1));
        warn!(node = "a\"b", nodes = 3, took_seconds = 0.5, ok = true, %error, ?operation, "failed\nto look");
    });
    let text = text::of(&line, false);
    assert!(
        text.ends_with(
            " WARN reconcile{object=\"node-1\" result=\"done\"}: cloudwit::telemetry::lines::tests: failed\\nto look \
             node=\"a\\\"b\" nodes=3 took_seconds=0.5 ok=true error=\"an error occurred when formatting an argument\" \
             operation=\"Some(1)\""
        ),
        "{text}"
    );
    assert!(text::of(&line, true).contains("\u{1b}[33m WARN\u{1b}[0m "));
}

#[test]
fn json_has_each_span_once_and_numbers_as_numbers() {
    let line = one(|| {
        let _outer = info_span!("reconcile", name = "x").entered();
        let _inner = info_span!("call", provider = "sim").entered();
        warn!(level = "high", took_seconds = 1.5, bad = f64::NAN, "slow");
    });
    let json: serde_json::Value = serde_json::from_str(&json::of(&line)).unwrap();
    assert_eq!(
        json["spans"],
        serde_json::json!([{ "name": "reconcile", "name_": "x" }, { "name": "call", "provider": "sim" }])
    );
    let (level, own) = (&json["level"], &json["level_"]);
    assert_eq!(
        (level, own, &json["took_seconds"]),
        (&"WARN".into(), &"high".into(), &1.5.into())
    );
    assert!(json["bad"].is_null() && json.get("span").is_none(), "{json}");
    let timestamp: jiff::Timestamp = json["timestamp"].as_str().unwrap().parse().unwrap();
    assert_eq!(timestamp.as_microsecond(), line.at.as_microsecond());
}

fn failing(node: &str, reason: &str) {
    warn!(node, reason, "still not initialised");
}

/// What is written of these lines when they come at this moment.
fn written(repeats: &Lines, lines: Vec<Line>, now: Instant) -> Vec<String> {
    let told = lines.into_iter().flat_map(|line| repeats.sort(line, now));
    told.map(|line| text::of(&line, false)).collect()
}

#[test]
fn an_outage_of_many_nodes_is_one_line_and_then_a_count() {
    let (log, start) = (Lines::new(Form::Json), Instant::now());
    let outage = || {
        lines(|| {
            for number in 0..13 {
                failing(
                    &format!("node-{number}"),
                    &format!("unavailable: no answer about node-{number}"),
                );
            }
        })
    };
    let first = written(&log, outage(), start);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].contains("node=\"node-0\"") && !first[0].contains("repeated"));
    assert_eq!(written(&log, outage(), start + Duration::from_secs(59)), [""; 0]);
    let other = || lines(|| debug!("anything"));
    let counted = written(&log, other(), start + Duration::from_secs(60));
    assert_eq!(counted.len(), 2);
    assert!(counted[0].ends_with(" repeated=25"), "{counted:?}");
    assert_eq!(written(&log, outage(), start + Duration::from_secs(100)), [""; 0]);
    assert_eq!(
        written(&log, other(), start + Duration::from_secs(179)).len(),
        1,
        "the pause grows"
    );
    assert_eq!(written(&log, other(), start + Duration::from_secs(180)).len(), 2);
    // It is over, and dropped after the pause.
    assert_eq!(written(&log, other(), start + Duration::from_secs(420)).len(), 1);
    assert_eq!(written(&log, outage(), start + Duration::from_secs(421)).len(), 1);
}

#[test]
fn other_reasons_and_other_providers_are_lines_of_their_own() {
    let log = Lines::new(Form::Json);
    let all = lines(|| {
        failing("a", "unavailable: down");
        failing("a", "denied: wrong key");
        let _call = info_span!("provider_call", provider = "west").entered();
        failing("a", "unavailable: down");
    });
    assert_eq!(written(&log, all, Instant::now()).len(), 3);
}

#[test]
fn a_line_without_a_reason_repeats_only_itself() {
    let log = Lines::new(Form::Json);
    let all = lines(|| {
        for node in ["a", "b", "a"] {
            warn!(node, "machine not found");
        }
    });
    assert_eq!(written(&log, all, Instant::now()).len(), 2);
}

#[test]
fn only_warnings_and_errors_are_counted() {
    let log = Lines::new(Form::Json);
    let all = lines(|| (0..3).for_each(|_| debug!(reason = "x", "step")));
    assert_eq!(written(&log, all, Instant::now()).len(), 3);
}

#[test]
fn causes_without_end_are_written_as_they_come() {
    let (log, now) = (Lines::new(Form::Json), Instant::now());
    let letters = |number: usize| {
        number
            .to_string()
            .bytes()
            .map(|digit| char::from(digit + 49))
            .collect::<String>()
    };
    let all = || lines(|| (0..600).for_each(|number| failing("n", &letters(number))));
    assert_eq!(written(&log, all(), now).len(), 600);
    assert_eq!(written(&log, all(), now).len(), 100, "those that are not remembered");
}
