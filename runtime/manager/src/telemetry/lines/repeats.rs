//! Warnings and errors of one cause: logged once, then by count. Pure; the clock is passed in.
//!
//! A cause is a place in the code, the provider, and the shape of what is said there ([`shape`](crate::telemetry::shape)); whose
//! object it is does not matter where a reason is given: an outage that holds up a hundred Nodes is one line, and then one for each pause.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::telemetry::lines::Line;
use crate::telemetry::lines::fields::{Fields, Value};
use crate::telemetry::shape::shape;

/// The first count comes after this time, each later one after twice the time before.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Causes that are kept. With more, lines are written as they come.
const MOST: usize = 500;

/// Fields that say why.
const REASONS: [&str; 5] = ["error", "reason", "why", "failure", "warning"];

/// Fields that say about what.
const NAMES: [&str; 5] = ["object", "node", "service", "name", "volume"];

/// What becomes of a line.
#[derive(Debug)]
pub(super) enum Told {
    /// It is written.
    New(Box<Line>),
    /// It is counted.
    Repeated,
}

/// Causes that were logged.
#[derive(Debug, Default)]
pub(super) struct Repeats(HashMap<u64, Repeat>);

#[derive(Debug)]
struct Repeat {
    /// When the next count is due.
    due: Instant,
    pause: Duration,
    /// Lines since the last that was written, and the latest of them.
    count: u64,
    latest: Option<Line>,
}

impl Repeats {
    /// A warning or an error. Repeats of one that was logged are suppressed.
    pub(super) fn told(&mut self, line: Line, now: Instant) -> Told {
        let key = key(&line);
        if let Some(repeat) = self.0.get_mut(&key) {
            repeat.count += 1;
            repeat.latest = Some(line);
            return Told::Repeated;
        }
        if self.0.len() < MOST {
            let repeat = Repeat {
                due: now + FIRST_PAUSE,
                pause: FIRST_PAUSE,
                count: 0,
                latest: None,
            };
            self.0.insert(key, repeat);
        }
        Told::New(Box::new(line))
    }

    /// The counts that are due: the latest line of each cause, with how many there were. A cause without repeats is dropped.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Line> {
        let mut counts = Vec::new();
        self.0.retain(|_, repeat| {
            if repeat.due > now {
                return true;
            }
            let Some(mut line) = repeat.latest.take() else {
                return false;
            };
            line.fields.set("repeated", Value::Unsigned(repeat.count));
            counts.push(line);
            repeat.count = 0;
            repeat.pause = LONGEST_PAUSE.min(repeat.pause * 2);
            repeat.due = now + repeat.pause;
            true
        });
        counts.sort_by_key(|line| line.at);
        counts
    }
}

/// What distinguishes causes.
fn key(line: &Line) -> u64 {
    let own = |name: &str| line.fields.get(name).map(Value::to_string);
    let around = |name: &str| {
        line.spans
            .iter()
            .rev()
            .find_map(|span| span.fields.get(name))
            .map(Value::to_string)
    };
    let name = NAMES
        .iter()
        .find_map(|name| own(name).or_else(|| around(name)))
        .unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    line.metadata.callsite().hash(&mut hasher);
    shape(&line.message, &name).hash(&mut hasher);
    own("provider").or_else(|| around("provider")).hash(&mut hasher);
    let reasons: Vec<String> = REASONS.iter().filter_map(|reason| own(reason)).collect();
    match reasons.is_empty() && line.metadata.target() != "guest" {
        // Only the very same line repeats it.
        true => {
            hash(&line.fields, &mut hasher);
            line.spans.iter().for_each(|span| hash(&span.fields, &mut hasher));
        }
        false => reasons.iter().for_each(|reason| shape(reason, &name).hash(&mut hasher)),
    }
    hasher.finish()
}

fn hash(fields: &Fields, hasher: &mut DefaultHasher) {
    for (name, value) in fields.iter() {
        (name, value.to_string()).hash(hasher);
    }
}
