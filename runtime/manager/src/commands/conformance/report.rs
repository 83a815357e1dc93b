//! What was found: for people, and for programs that read JUnit.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use maud::html;

/// The results so far.
#[derive(Debug, Default)]
pub struct Report {
    results: Vec<Tried>,
    /// Most memory of a call, in bytes.
    pub memory: u64,
}

#[derive(Debug)]
struct Tried {
    /// The part of the contract.
    part: &'static str,
    promise: String,
    /// All that does not hold; empty when the promise is kept.
    broken: Vec<String>,
    took: Duration,
}

/// A promise that is being tried.
#[derive(Debug)]
pub struct Promise {
    part: &'static str,
    promise: String,
    broken: Vec<String>,
    began: Instant,
}

impl Promise {
    /// Begins to try it.
    pub fn of(part: &'static str, promise: impl Into<String>) -> Self {
        Self {
            part,
            promise: promise.into(),
            broken: Vec::new(),
            began: Instant::now(),
        }
    }

    /// Says what does not hold, unless it does.
    pub fn holds(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(broken());
        }
    }

    /// The answer; the error is reported as broken.
    pub fn answered<T>(&mut self, answer: Result<T, impl std::fmt::Display>) -> Option<T> {
        answer.map_err(|error| self.broken.push(error.to_string())).ok()
    }
}

impl Report {
    /// Adds a promise that was tried.
    pub fn add(&mut self, promise: Promise) {
        let Promise {
            part,
            promise,
            broken,
            began,
        } = promise;
        self.results.push(Tried {
            part,
            promise,
            broken,
            took: began.elapsed(),
        });
    }

    /// How many are broken.
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|tried| !tried.broken.is_empty()).count()
    }

    /// A line each.
    pub fn text(&self) -> String {
        let (mut text, mut part) = (String::new(), "");
        for tried in &self.results {
            if tried.part != part {
                part = tried.part;
                let _ = writeln!(text, "{part}");
            }
            let word = if tried.broken.is_empty() { "ok    " } else { "BROKEN" };
            let _ = writeln!(text, "  {word} {}", tried.promise);
            for broken in &tried.broken {
                let _ = writeln!(text, "           {broken}");
            }
        }
        let (all, failed) = (self.results.len(), self.failed());
        let memory = self.memory >> 10;
        let _ = writeln!(
            text,
            "{} of {all} promises kept; at most {memory} KiB of memory",
            all - failed
        );
        text
    }

    /// JUnit XML.
    pub fn junit(&self, provider: &str) -> String {
        let seconds = |took: Duration| format!("{:.3}", took.as_secs_f64());
        let suite = html! {
            testsuite name={"cloudwit conformance of " (provider)} tests=(self.results.len()) failures=(self.failed()) {
                @for tried in &self.results {
                    testcase classname=(tried.part) name=(tried.promise) time=(seconds(tried.took)) {
                        @if !tried.broken.is_empty() {
                            failure message=(tried.broken.join("; ")) {}
                        }
                    }
                }
            }
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", suite.into_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_promise_is_reported_to_people_and_programs() {
        let mut report = Report::default();
        report.add(Promise::of("instances", "order"));
        let mut promise = Promise::of("instances", "evidence");
        promise.holds(false, || "a < b & \"c\"".into());
        report.add(promise);
        assert!(
            report
                .text()
                .contains("instances\n  ok     order\n  BROKEN evidence\n           a < b")
        );
        assert!(
            report
                .text()
                .ends_with("1 of 2 promises kept; at most 0 KiB of memory\n")
        );
        let junit = report.junit("sim");
        assert!(junit.contains(r#"tests="2" failures="1""#), "{junit}");
        assert!(
            junit.contains(r#"<failure message="a &lt; b &amp; &quot;c&quot;"></failure>"#),
            "{junit}"
        );
    }
}
