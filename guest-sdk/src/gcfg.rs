//! Cloud configs in git-config syntax, as the upstream providers of most clouds read them (`gopkg.in/gcfg.v1`).
//!
//! ```text
//!   [Global]                          {"global": {"auth-url": "https://...", "tls-insecure": "true"},
//!   auth-url = https://...             "virtualcenter": {"10.0.0.1": {"port": "443"}}}
//!   tls-insecure
//!   [VirtualCenter "10.0.0.1"]
//!   port = 443
//! ```
//!
//! Names of sections and variables are case-insensitive, so they become lower case here: name the fields of a `Config` so. (They are ASCII;
//! Unicode's tables would add 20 KB to each component.) What stands in quotes behind a section's name keeps its case. All values are text.
//! A variable that occurs several times is a list where the `Config` has one, else its last value counts.

use std::borrow::Cow;

use crate::config::WHOLE;
use crate::json::Json;
use crate::types::Problem;

/// Reads the text; [`Provider::parse_config`](crate::Provider::parse_config) may pass its own on to this.
///
/// # Errors
/// Line and what is wrong there, without the value: it may be a password.
pub fn parse(text: &str) -> Result<Json<'static>, Problem> {
    let mut reader = Reader {
        rest: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
        root: Json::Object(Vec::new()),
        section: None,
    };
    match reader.read() {
        Ok(()) => Ok(reader.root),
        Err(wrong) => {
            let message = format!("line {}: {wrong}", reader.line);
            Err(Problem::new(WHOLE, message))
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    root: Json<'static>,
    /// Name and, where there is one, what stands in quotes behind it.
    section: Option<(String, Option<String>)>,
}

/// The error says what is wrong in the current line.
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

    /// What stands in quotes behind a section's name; a backslash takes the next character as it is.
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
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Json::Repeated(values))) => values.push(Json::Text(Cow::Owned(value))),
            Some(_) => return Err("this name is a section's already"),
            None => values.push((Cow::Owned(name), Json::Repeated(vec![Json::Text(Cow::Owned(value))]))),
        }
        Ok(())
    }

    /// The rest of the line without comment and outer blanks; a backslash at its end goes on with the next line.
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

type Entries = Vec<(Cow<'static, str>, Json<'static>)>;

/// Where the variables of this section go.
fn place<'t>(root: &'t mut Json<'static>, section: &str, more: Option<&str>) -> Read<&'t mut Entries> {
    let outer = child(root, section)?;
    match more {
        Some(more) => match child(outer, more)? {
            Json::Object(entries) => Ok(entries),
            _ => Err(TAKEN),
        },
        None => match outer {
            Json::Object(entries) => Ok(entries),
            _ => Err(TAKEN),
        },
    }
}

const TAKEN: &str = "this section's name is a variable's already";

fn child<'t>(parent: &'t mut Json<'static>, name: &str) -> Read<&'t mut Json<'static>> {
    let Json::Object(entries) = parent else {
        return Err(TAKEN);
    };
    let index = entries.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        entries.push((Cow::Owned(name.into()), Json::Object(Vec::new())));
        entries.len() - 1
    });
    Ok(&mut entries[index].1)
}

#[cfg(test)]
#[path = "gcfg_tests.rs"]
mod tests;
