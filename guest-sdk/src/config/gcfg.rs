//! Cloud configs in git-config syntax, as upstream providers read them (`gopkg.in/gcfg.v1`).
//!
//! ```text
//!   [Global]                          {"global": {"auth-url": "https://...", "tls-insecure": "true"},
//!   auth-url = https://...             "virtualcenter": {"10.0.0.1": {"port": "443"}}}
//!   tls-insecure
//!   [VirtualCenter "10.0.0.1"]
//!   port = 443
//! ```
//!
//! Names of sections and variables are case-insensitive, so they become lower case here: name the fields of a `Config` so. What is in quotes behind a section's name keeps its case. All values are text.
//! A variable that occurs several times is a list where the `Config` has one, else its last value counts.

use serde_json::{Map, Value};

use crate::config::{Tree, WHOLE};
use crate::types::Problem;

/// Reads the text; [`Provider::parse_config`](crate::Provider::parse_config) may pass its own on to this.
///
/// # Errors
/// Line and what is wrong there, without the value: it may be a password.
pub fn parse(text: &str) -> Result<Tree, Problem> {
    let mut reader = Reader {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
        root: Map::new(),
        section: None,
    };
    match reader.read() {
        Ok(()) => Ok(Tree {
            value: Value::Object(reader.root),
            repeats: true,
        }),
        Err(wrong) => {
            let message = format!("line {}: {wrong}", reader.line);
            Err(Problem::new(WHOLE, message))
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    root: Map<String, Value>,
    /// Name and, where there is one, what is in quotes behind it.
    section: Option<(String, Option<String>)>,
}

/// The error is what is wrong in the current line.
type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn read(&mut self) -> Read<()> {
        loop {
            self.skip_blank();
            match self.peek() {
                None => return Ok(()),
                Some('\n') => self.advance(),
                Some('#' | ';') => self.skip_comment(),
                Some('[') => self.header()?,
                Some(letter) if letter.is_ascii_alphabetic() => self.variable()?,
                Some(_) => return Err("a section like [Global] or a line like name = value is expected"),
            }
        }
    }

    /// `[name]` or `[name "more"]`.
    fn header(&mut self) -> Read<()> {
        self.advance();
        self.skip_blank();
        let name = self.name();
        if name.is_empty() {
            return Err("the section has no name; write it like [Global]");
        }
        self.skip_blank();
        let more = match self.peek() {
            Some('"') => Some(self.quoted_name()?),
            _ => None,
        };
        self.skip_blank();
        if self.peek() != Some(']') {
            return Err("the section's name has to end with ]");
        }
        self.advance();
        // A section without variables exists all the same.
        place(&mut self.root, &name, more.as_deref())?;
        self.section = Some((name, more));
        Ok(())
    }

    /// What is in quotes behind a section's name; a backslash takes the next character as it is.
    fn quoted_name(&mut self) -> Read<String> {
        const OPEN: &str = "the quotes in the section's name are not closed";
        self.advance();
        let mut name = String::new();
        loop {
            if matches!(self.peek(), None | Some('\n')) {
                return Err(OPEN);
            }
            match self.take() {
                Some('"') => return Ok(name),
                Some('\\') => name.push(self.peek().filter(|next| *next != '\n').ok_or(OPEN)?),
                Some(other) => {
                    name.push(other);
                    continue;
                }
                None => return Err(OPEN),
            }
            self.advance();
        }
    }

    /// `name = value`, or `name` alone, which means true.
    fn variable(&mut self) -> Read<()> {
        let name = self.name();
        self.skip_blank();
        let value = match self.peek() {
            Some('=') => {
                self.advance();
                self.value()?
            }
            None | Some('\n' | '#' | ';') => String::from("true"),
            Some(_) => return Err("= is expected behind the name"),
        };
        let Some((section, more)) = &self.section else {
            return Err("this stands before the first section; write a section like [Global] above it");
        };
        let values = place(&mut self.root, section, more.as_deref())?;
        match values.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(values) => values.push(Value::String(value)),
            _ => return Err("this name is a section's already"),
        }
        Ok(())
    }

    /// The rest of the line without comment and outer blanks; a backslash at its end continues with the next line.
    fn value(&mut self) -> Read<String> {
        self.skip_blank();
        let (mut value, mut kept, mut quoted) = (String::new(), 0, false);
        loop {
            match self.peek() {
                None | Some('\n') if quoted => return Err("the quotes of the value are not closed"),
                None | Some('\n') => break,
                Some('#' | ';') if !quoted => break,
                Some('"') => {
                    quoted = !quoted;
                    self.advance();
                    kept = value.len();
                }
                Some('\\') => {
                    self.advance();
                    if self.rest.starts_with("\r\n") {
                        self.advance();
                    }
                    match self.take() {
                        Some('\n') => {}
                        Some('n') => value.push('\n'),
                        Some('t') => value.push('\t'),
                        Some(same @ ('"' | '\\')) => value.push(same),
                        _ => {
                            return Err(
                                "behind a backslash only \\, \", n, t or the end of the line may stand; write \\\\ for one",
                            );
                        }
                    }
                    kept = value.len();
                }
                Some(other) => {
                    self.advance();
                    value.push(other);
                    if quoted || !is_blank(other) {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        Ok(value)
    }

    /// A name in lower case.
    fn name(&mut self) -> String {
        let end = self
            .rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_ascii_lowercase()
    }

    fn skip_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = self.rest.split_at(end).1;
    }

    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self) {
        self.take();
    }

    fn take(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let taken = letters.next()?;
        self.rest = letters.as_str();
        self.line += usize::from(taken == '\n');
        Some(taken)
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r')
}

/// Where the variables of this section go.
fn place<'t>(root: &'t mut Map<String, Value>, section: &str, more: Option<&str>) -> Read<&'t mut Map<String, Value>> {
    let outer = child(root, section)?;
    match more {
        Some(more) => child(outer, more),
        None => Ok(outer),
    }
}

fn child<'t>(parent: &'t mut Map<String, Value>, name: &str) -> Read<&'t mut Map<String, Value>> {
    match parent.entry(name).or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(entries) => Ok(entries),
        _ => Err("this section's name is a variable's already"),
    }
}

#[cfg(test)]
mod tests;
