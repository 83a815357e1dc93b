//! YAML as configurations have it: maps, lists, texts in all their quotes. In some seven kilobytes of a component, where all of YAML (`yaml.rs`)
//! takes over a hundred. Here are lists and maps; `yaml_scalar.rs` has what stands in them.
//!
//! What is read means what it means in YAML 1.2, and JSON is read too. What is not known is refused in words and never taken for something else: anchors,
//! aliases, tags, merge keys, keys that are no texts, several documents, and texts that go on in the next line without `|`, `>` or a list's bracket.

use std::borrow::Cow;

use crate::config::WHOLE;
use crate::json::Json;
use crate::types::Problem;
use crate::yaml_scalar::{is_colon, plain_end, plain_value, text_value};

/// Lists and maps deeper than this are refused, as they would exhaust the stack.
const MAX_DEPTH: usize = 50;

/// Reads the text; [`Provider::parse_config`](crate::Provider::parse_config) may pass its own on to this.
///
/// # Errors
/// Line, column and what is wrong there, without the value: it may be a password.
pub fn parse(text: &str) -> Result<Json<'static>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.contains('\u{feff}') {
        let message = "this is no usable YAML: there is a byte order mark inside of it";
        return Err(Problem::new(WHOLE, message.to_owned()));
    }
    let mut reader = Reader {
        lines: text.lines().collect(),
        line: 0,
        column: 0,
    };
    reader.document().map_err(|wrong| {
        let (line, column) = ((reader.line + 1).to_string(), (reader.column + 1).to_string());
        let message = [
            "this is no usable YAML: line ",
            &line,
            ", column ",
            &column,
            ": ",
            wrong,
        ];
        Problem::new(WHOLE, message.concat())
    })
}

/// Where the reader is: at the beginning of something, or of what is to be skipped before it.
pub(crate) struct Reader<'a> {
    pub(crate) lines: Vec<&'a str>,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// The error says what is wrong at the reader's place.
pub(crate) type Read<T> = Result<T, &'static str>;

type Entries = Vec<(Cow<'static, str>, Json<'static>)>;

const TAB: &str = "tabs cannot indent; use blanks";
const MORE: &str = "this goes on from the line before; write such a text in one line, or with | or > before it";
const DEEP: &str = "lists and maps are nested too deep";
const TWICE: &str = "this key is there twice";
pub(crate) const NO_KEY: &str = "a key has to be a text";
pub(crate) const OPEN: &str = "this quote or bracket is not closed";

impl Reader<'_> {
    fn document(&mut self) -> Read<Json<'static>> {
        if let Some(line) = self.lines.iter().position(|line| line.contains('\r')) {
            self.line = line;
            return Err("a carriage return within a line; end lines with line feeds");
        }
        if self.settle()?.is_some() && self.rest() == "---" {
            self.next_line();
        }
        let value = self.node(0, 0)?;
        match self.settle()? {
            None => Ok(value),
            Some(0) if self.rest() == "..." => {
                self.next_line();
                match self.settle()? {
                    None => Ok(value),
                    Some(_) => Err("one document is enough; take out what follows ..."),
                }
            }
            Some(0) if self.at_mark() => Err("one document is enough; take out what follows ---"),
            Some(_) => Err("this belongs to nothing above it; is it indented right?"),
        }
    }

    /// What is left of the line.
    pub(crate) fn rest(&self) -> &str {
        let line = self.lines.get(self.line).copied().unwrap_or_default();
        line.get(self.column..).unwrap_or_default()
    }

    pub(crate) fn next_line(&mut self) {
        self.line += 1;
        self.column = 0;
    }

    fn skip_blanks(&mut self) {
        self.column += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Goes to the next thing that means something; its column, or none at the end.
    fn settle(&mut self) -> Read<Option<usize>> {
        while self.line < self.lines.len() {
            let from_start = self.column == 0;
            self.skip_blanks();
            if self.rest().is_empty() || self.rest().starts_with('#') {
                self.next_line();
                continue;
            }
            let before = self.lines.get(self.line).and_then(|line| line.get(..self.column));
            if from_start && before.is_some_and(|before| before.contains('\t')) {
                return Err(TAB);
            }
            return Ok(Some(self.column));
        }
        Ok(None)
    }

    /// The end of the line, but for blanks and a comment.
    pub(crate) fn end_of_line(&mut self) -> Read<()> {
        let start = self.column;
        self.skip_blanks();
        let comment = self.rest().starts_with('#') && self.column > start;
        if !self.rest().is_empty() && !comment {
            return Err("something follows the value; put the whole of it in quotes");
        }
        self.next_line();
        Ok(())
    }

    /// What begins at this column or to the right of it; nothing is null.
    fn node(&mut self, least: usize, depth: usize) -> Read<Json<'static>> {
        if depth > MAX_DEPTH {
            return Err(DEEP);
        }
        match self.settle()? {
            Some(column) if column >= least && !self.at_mark() => {}
            _ => return Ok(Json::Null),
        }
        let column = self.column;
        if is_item(self.rest()) {
            return self.list(column, depth);
        }
        if self.at_key()? {
            return self.map(column, depth);
        }
        let value = self.value(least, depth)?;
        Ok(value)
    }

    /// A list whose dashes are in this column.
    fn list(&mut self, column: usize, depth: usize) -> Read<Json<'static>> {
        let mut items = Vec::new();
        while self.settle()? == Some(column) && is_item(self.rest()) {
            self.column += 1;
            items.push(self.node(column + 1, depth + 1)?);
        }
        self.nothing_deeper(column)?;
        Ok(Json::List(items))
    }

    /// A map whose keys are in this column.
    fn map(&mut self, column: usize, depth: usize) -> Read<Json<'static>> {
        let mut entries: Entries = Vec::new();
        while self.settle()? == Some(column) && !is_item(self.rest()) && !self.at_mark() {
            if !self.at_key()? {
                return Err("a key with a colon behind it is expected");
            }
            let key = self.key(false)?;
            if entries.iter().any(|(known, _)| *known == key) {
                self.column = column;
                return Err(TWICE);
            }
            self.skip_blanks();
            let empty = self.rest().is_empty() || self.rest().starts_with('#');
            let value = if !empty {
                self.value(column + 1, depth + 1)?
            } else {
                self.next_line();
                // The dashes of a list may stand right below its key.
                let list_below = self.settle()? == Some(column) && is_item(self.rest());
                if list_below {
                    self.list(column, depth + 1)?
                } else {
                    self.node(column + 1, depth + 1)?
                }
            };
            entries.push((Cow::Owned(key), value));
        }
        self.nothing_deeper(column)?;
        Ok(Json::Object(entries))
    }

    fn nothing_deeper(&mut self, column: usize) -> Read<()> {
        match self.settle()? {
            Some(next) if next > column => Err(MORE),
            _ => Ok(()),
        }
    }

    /// Whether a document ends here.
    fn at_mark(&self) -> bool {
        let (mark, after) = self.rest().split_at_checked(3).unwrap_or_default();
        self.column == 0 && matches!(mark, "---" | "...") && (after.is_empty() || after.starts_with([' ', '\t']))
    }

    /// Whether a key is here: a text with a colon behind it.
    fn at_key(&mut self) -> Read<bool> {
        let (line, column) = (self.line, self.column);
        let first = self.rest().chars().next();
        let found = match first {
            Some('"' | '\'') => {
                self.quoted()?;
                self.skip_blanks();
                is_colon(self.rest())
            }
            Some('[' | '{' | '|' | '>') => false,
            _ => plain_end(self.rest(), false).is_some_and(|end| is_colon(self.rest().get(end..).unwrap_or_default())),
        };
        (self.line, self.column) = (line, column);
        if found && self.rest().starts_with("<<") {
            return Err("merge keys are not known; write the keys out");
        }
        Ok(found)
    }

    /// A key with its colon.
    fn key(&mut self, in_flow: bool) -> Read<String> {
        let (key, plain) = self.scalar(in_flow)?;
        if plain && key.is_empty() {
            return Err(NO_KEY);
        }
        if self.at_colon() {
            Ok(key)
        } else {
            Err("a colon is expected behind the key")
        }
    }

    fn at_colon(&mut self) -> bool {
        self.skip_blanks();
        let there = self.rest().starts_with(':');
        self.column += usize::from(there);
        there
    }

    /// A value that begins in this line. What it has in further lines is at `least` or to the right of it.
    fn value(&mut self, least: usize, depth: usize) -> Read<Json<'static>> {
        match self.rest().chars().next() {
            Some('|' | '>') => self.block(least),
            Some('[' | '{') => {
                let value = self.flow(depth)?;
                self.end_of_line()?;
                Ok(value)
            }
            _ => {
                let (text, plain) = self.scalar(false)?;
                if is_colon(self.rest()) {
                    return Err("there is a second colon; put the value in quotes");
                }
                self.end_of_line()?;
                if least > 0 {
                    self.nothing_deeper(least - 1)?;
                }
                Ok(if plain { plain_value(&text) } else { text_value(text) })
            }
        }
    }

    /// A list or map in brackets, over as many lines as it likes.
    fn flow(&mut self, depth: usize) -> Read<Json<'static>> {
        if depth > MAX_DEPTH {
            return Err(DEEP);
        }
        let is_map = self.rest().starts_with('{');
        let close = if is_map { '}' } else { ']' };
        self.column += 1;
        let (mut items, mut entries): (Vec<Json<'static>>, Entries) = (Vec::new(), Vec::new());
        loop {
            self.settle_in_flow()?;
            if self.rest().starts_with(close) {
                self.column += 1;
                break;
            }
            if is_map {
                let key = self
                    .key(true)
                    .map_err(|wrong| if self.rest().is_empty() { OPEN } else { wrong })?;
                if entries.iter().any(|(known, _)| *known == key) {
                    return Err(TWICE);
                }
                self.settle_in_flow()?;
                let value = self.flow_value(depth)?;
                entries.push((Cow::Owned(key), value));
            } else {
                items.push(self.flow_value(depth)?);
            }
            self.settle_in_flow()?;
            if self.rest().starts_with(',') {
                self.column += 1;
            } else if !self.rest().starts_with(close) {
                return Err("a comma or the closing bracket is expected");
            }
        }
        Ok(if is_map {
            Json::Object(entries)
        } else {
            Json::List(items)
        })
    }

    fn flow_value(&mut self, depth: usize) -> Read<Json<'static>> {
        match self.rest().chars().next() {
            Some('[' | '{') => return self.flow(depth + 1),
            Some(',' | ']' | '}') => return Ok(Json::Null),
            _ => {}
        }
        let (text, plain) = self.scalar(true)?;
        self.skip_blanks();
        if self.rest().starts_with(':') {
            return Err("a colon is not expected here; put the text in quotes");
        }
        Ok(if plain { plain_value(&text) } else { text_value(text) })
    }

    fn settle_in_flow(&mut self) -> Read<()> {
        self.settle()?.map(drop).ok_or(OPEN)
    }
}

/// Whether a dash of a list is here.
fn is_item(rest: &str) -> bool {
    rest == "-" || rest.starts_with("- ")
}

#[cfg(test)]
#[path = "yaml_plain_tests.rs"]
mod tests;
