//! JSON: a small tree of a text, and how types are read from it.
//!
//! Own code instead of serde_json because a provider is a few dozen kilobytes: reading through a tree keeps what serde generates for each
//! type small, and it knows the path of a mistake (`items[3].state: ...`), for the configuration and the cloud's answers alike.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use crate::Problems;
use crate::json_mistakes::Unknown;
use crate::json_reader;
use crate::types::Pair;

/// Arrays and objects deeper than this are refused, as they would exhaust the stack.
const MAX_DEPTH: usize = 100;

/// A JSON value. Texts without escapes are borrowed from where they were read.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(Cow<'a, str>),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// A variable of a git-config text (`gcfg.rs`) with its values: the last one, or all where a list is wanted.
    Repeated(Vec<Json<'a>>),
    /// Keys and values in their order; the last of equal keys counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads a text that is one JSON value.
    ///
    /// # Errors
    /// What was expected, and in which line and column.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0).and_then(|value| {
            parser.skip_space();
            if parser.at == text.len() {
                Ok(value)
            } else {
                Err("the end")
            }
        });
        value.map_err(|expected| parser.complain(expected))
    }

    /// The value of this key, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => entries
                .iter()
                .rev()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text, when this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Repeated(values) => values.last().and_then(Self::as_text),
            _ => None,
        }
    }
}

/// Reads a type from JSON text. Unknown keys are ignored: clouds add them.
///
/// # Errors
/// In one line: where and what is wrong.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let tree = parse_bytes(bytes)?;
    let mut problems = Problems::default();
    json_reader::read(&tree, Unknown::Ignored, &mut problems).ok_or_else(|| first(&problems))
}

fn parse_bytes(bytes: &[u8]) -> Result<Json<'_>, String> {
    Json::parse(std::str::from_utf8(bytes).map_err(|_| String::from("UTF-8 text is expected"))?)
}

fn first(problems: &Problems) -> String {
    problems
        .iter()
        .next()
        .map(|first| format!("{}: {}", first.at, first.message))
        .unwrap_or_default()
}

/// Reads the keys and values of an object as [`Pair`]s: `#[serde(deserialize_with = "cloudwit_guest_sdk::json::pairs")]`.
///
/// # Errors
/// When it is no object of texts.
pub fn pairs<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Pair>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<Pair>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of texts")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Vec<Pair>, A::Error> {
            let mut pairs = Vec::new();
            while let Some(key) = map.next_key()? {
                pairs.push(Pair {
                    key,
                    value: map.next_value()?,
                });
            }
            Ok(pairs)
        }
    }
    deserializer.deserialize_map(Visitor)
}

/// Where the parser is.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// The error is what was expected.
type Parsed<T> = Result<T, &'static str>;

impl<'a> Parser<'a> {
    fn complain(&self, expected: &str) -> String {
        let before = self.text.as_bytes().get(..self.at).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = self.at
            - before
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |newline| newline + 1)
            + 1;
        format!("{expected} is expected at line {line}, column {column}")
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes this byte, after white space, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self, depth: usize) -> Parsed<Json<'a>> {
        if depth > MAX_DEPTH {
            return Err("a text that is not so deep");
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err("a value"),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Parsed<Json<'a>> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err("a value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Parsed<Json<'a>> {
        let mut entries = Vec::new();
        self.at += 1;
        if self.take(b'}') {
            return Ok(Json::Object(entries));
        }
        loop {
            self.skip_space();
            let key = if self.peek() == Some(b'"') {
                self.text()?
            } else {
                return Err("a key in quotes");
            };
            if !self.take(b':') {
                return Err("a colon");
            }
            entries.push((key, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Json::Object(entries));
            }
            if !self.take(b',') {
                return Err("a comma or }");
            }
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<Json<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err("a comma or ]");
            }
        }
    }

    /// Takes digits; how many there were.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Parsed<Json<'a>> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || (leading_zero && digits > 1) {
            return Err("a number");
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err("a digit");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err("a digit");
            }
        }
        Ok(Json::Number(Cow::Borrowed(
            self.text.get(start..self.at).unwrap_or_default(),
        )))
    }

    /// A text, from its opening quote. Borrowed when it has no escapes.
    fn text(&mut self) -> Parsed<Cow<'a, str>> {
        self.at += 1;
        let mut unescaped = String::new();
        let mut start = self.at;
        loop {
            match self.peek() {
                None => return Err("the end of the text in quotes"),
                Some(0..=0x1f) => return Err("an escape for the control character"),
                Some(b'"') => {
                    // Quotes and backslashes are one byte, so these are whole characters.
                    let rest = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    if unescaped.is_empty() {
                        return Ok(Cow::Borrowed(rest));
                    }
                    unescaped.push_str(rest);
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => {
                    unescaped.push_str(self.text.get(start..self.at).unwrap_or_default());
                    self.at += 1;
                    let character = self.escape()?;
                    unescaped.push(character);
                    start = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// What an escape stands for, from after its backslash.
    fn escape(&mut self) -> Parsed<char> {
        let escape = self.peek().ok_or("an escape")?;
        self.at += 1;
        Ok(match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.hex()?;
                // A pair of surrogates stands for one character.
                if (0xd800..0xdc00).contains(&code) && self.rest().starts_with(b"\\u") {
                    self.at += 2;
                    let low = self.hex()?;
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    }
                }
                char::from_u32(code).ok_or("a character")?
            }
            _ => return Err("an escape"),
        })
    }

    fn hex(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or("four hexadecimal digits")?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
