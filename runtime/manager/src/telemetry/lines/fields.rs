//! Fields of a span or an event: numbers and booleans stay what they are, everything else is text.

use std::fmt;

use tracing::field::{Field, Visit};

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bool(value) => value.fmt(f),
            Self::Signed(number) => number.fmt(f),
            Self::Unsigned(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

/// Fields in their order, each name once.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Sets a field; the last value counts.
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(own, _)| *own == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// The event's text, which is one of its fields.
    pub(super) fn take_message(&mut self) -> String {
        let at = self.0.iter().position(|(name, _)| *name == "message");
        at.map_or_else(String::new, |at| self.0.remove(at).1.to_string())
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // To the millionth: further digits of a duration say nothing, and readers of JSON lose them.
        self.set(field.name(), Value::Float((value * 1e6).round() / 1e6));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::Unsigned(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::Text(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), Value::Text(format!("{value:?}")));
    }
}
