//! Log lines: one for each event, as text or JSON, with fields of its spans; repeats are counted.
//!
//! ```text
//!   event -> fields (values keep their kinds) -> Line -> repeats (logged once, then by count) -> text | json -> standard error
//! ```

mod fields;
mod json;
mod repeats;
mod text;

use std::io::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use jiff::Timestamp;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::telemetry::lines::fields::Fields;
use crate::telemetry::lines::repeats::{Repeats, Told};

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people; levels in colour or not.
    Text {
        /// Whether a terminal shows it.
        colour: bool,
    },
    /// One object a line.
    Json,
}

/// One span around a line.
#[derive(Debug, Clone)]
struct Around {
    name: &'static str,
    fields: Fields,
}

/// One line.
#[derive(Debug, Clone)]
struct Line {
    at: Timestamp,
    metadata: &'static Metadata<'static>,
    /// The outermost first.
    spans: Vec<Around>,
    message: String,
    fields: Fields,
}

/// Writes lines to standard error.
#[derive(Debug)]
pub struct Lines {
    form: Form,
    repeats: Mutex<Repeats>,
}

impl Lines {
    /// In this form.
    pub fn new(form: Form) -> Self {
        Self {
            form,
            repeats: Mutex::default(),
        }
    }

    fn write(&self, line: &Line) {
        let mut written = match self.form {
            Form::Text { colour } => text::of(line, colour),
            Form::Json => json::of(line),
        };
        written.push('\n');
        // There is no output left.
        let _ = std::io::stderr().lock().write_all(written.as_bytes());
    }
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            record.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        for told in self.sort(Self::line(event, &context), Instant::now()) {
            self.write(&told);
        }
    }
}

impl Lines {
    fn line<S>(event: &Event<'_>, context: &Context<'_, S>) -> Line
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root());
        let around = |span: SpanRef<'_, S>| Around {
            name: span.name(),
            fields: span.extensions().get::<Fields>().cloned().unwrap_or_default(),
        };
        Line {
            at: Timestamp::now(),
            metadata: event.metadata(),
            spans: scope.map(around).collect(),
            message: fields.take_message(),
            fields,
        }
    }

    /// The lines that are written now: counts of what has repeated, and this one unless it repeats another.
    fn sort(&self, line: Line, now: Instant) -> Vec<Line> {
        let mut repeats = self.repeats.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut told = repeats.due(now);
        if *line.metadata.level() > Level::WARN {
            told.push(line);
            return told;
        }
        match repeats.told(line, now) {
            Told::New(line) => told.push(*line),
            Told::Repeated => {}
        }
        told
    }
}

#[cfg(test)]
mod tests;
