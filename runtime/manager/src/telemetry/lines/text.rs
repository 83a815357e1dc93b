//! Lines for people: `TIME LEVEL span{field="text"}: module: message field="text" number=3`.
//!
//! Every text is in quotes and every number is not, whoever wrote it; a line is never more than one.

use std::fmt::Write as _;

use tracing::Level;

use crate::telemetry::lines::Line;
use crate::telemetry::lines::fields::{Fields, Value};

pub(super) fn of(line: &Line, colour: bool) -> String {
    let mut text = line.at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ ").to_string();
    let level = line.metadata.level();
    // Writing to a String cannot fail, here and below.
    let _ = match colour {
        true => write!(text, "\u{1b}[{}m{level:>5}\u{1b}[0m ", code(level)),
        false => write!(text, "{level:>5} "),
    };
    for span in &line.spans {
        text.push_str(span.name);
        if !span.fields.is_empty() {
            text.push('{');
            fields(&mut text, &span.fields);
            text.push('}');
        }
        text.push(':');
    }
    if !line.spans.is_empty() {
        text.push(' ');
    }
    let _ = write!(text, "{}: ", line.metadata.target());
    escaped(&mut text, &line.message, false);
    if !line.fields.is_empty() {
        text.push(' ');
        fields(&mut text, &line.fields);
    }
    text
}

fn code(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

fn fields(text: &mut String, fields: &Fields) {
    for (at, (name, value)) in fields.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        let _ = write!(text, "{name}=");
        match value {
            Value::Text(value) => {
                text.push('"');
                escaped(text, value, true);
                text.push('"');
            }
            other => drop(write!(text, "{other}")),
        }
    }
}

/// Without line breaks and other control characters, so that no foreign text begins a line or moves a terminal's cursor.
fn escaped(text: &mut String, value: &str, in_quotes: bool) {
    for letter in value.chars() {
        match letter {
            '"' | '\\' if in_quotes => text.extend(['\\', letter]),
            letter if letter.is_control() => text.extend(letter.escape_default()),
            letter => text.push(letter),
        }
    }
}
