//! Texts of plain YAML: without quotes, in either kind of them, and over several lines.

use std::borrow::Cow;

use crate::json::Json;
use crate::yaml_plain::{NO_KEY, OPEN, Read, Reader};

const QUOTES: &str = "a text that begins so has to be in quotes";

impl Reader<'_> {
    /// A text in quotes or without; and whether it was without.
    pub(crate) fn scalar(&mut self, in_flow: bool) -> Read<(String, bool)> {
        match self.rest().chars().next() {
            Some('"' | '\'') => return self.quoted().map(|text| (text, false)),
            Some('&' | '*') => {
                return Err("anchors and aliases (& and *) are not known; write the value out, or put it in quotes");
            }
            Some('!') => return Err("tags like !!str have no meaning here; leave them out"),
            Some('%' | '@' | '`' | '|' | '>') => return Err(QUOTES),
            Some(',' | ']' | '}') if !in_flow => return Err(QUOTES),
            Some('-') if !in_flow && matches!(self.rest().get(1..2), None | Some(" ")) => {
                return Err("a list begins in a line of its own");
            }
            Some('?') if matches!(self.rest().get(1..2), None | Some(" ")) => return Err(NO_KEY),
            _ => {}
        }
        let end = plain_end(self.rest(), in_flow).unwrap_or(self.rest().len());
        let text = self.rest().get(..end).unwrap_or_default().trim_end().to_owned();
        self.column += text.len();
        Ok((text, true))
    }

    /// A text in quotes, which ends in the same line.
    pub(crate) fn quoted(&mut self) -> Read<String> {
        let rest = self.rest();
        let quote = rest.chars().next().unwrap_or('"');
        let mut text = String::new();
        let mut letters = rest.char_indices().skip(1).peekable();
        while let Some((at, letter)) = letters.next() {
            if letter == quote {
                if quote == '\'' && letters.next_if(|(_, next)| *next == '\'').is_some() {
                    text.push('\'');
                    continue;
                }
                self.column += at + 1;
                return Ok(text);
            }
            if letter != '\\' || quote == '\'' {
                text.push(letter);
                continue;
            }
            let (_, escape) = letters.next().ok_or(OPEN)?;
            let digits = match escape {
                'x' => 2,
                'u' => 4,
                'U' => 8,
                _ => 0,
            };
            if digits == 0 {
                text.push(escaped(escape).ok_or("there is no such escape behind a backslash; write \\\\ for one")?);
                continue;
            }
            let mut code = 0;
            for _ in 0..digits {
                let digit = letters.next().and_then(|(_, digit)| digit.to_digit(16));
                code = code * 16 + digit.ok_or("hexadecimal digits are expected")?;
            }
            text.push(char::from_u32(code).ok_or("there is no such character")?);
        }
        Err(OPEN)
    }

    /// A text over several lines: `|` keeps their ends, `>` makes blanks of them.
    pub(crate) fn block(&mut self, least: usize) -> Read<Json<'static>> {
        let folded = self.rest().starts_with('>');
        self.column += 1;
        let mut keep_end = None;
        while let Some(mark @ ('+' | '-')) = self.rest().chars().next() {
            keep_end = Some(mark == '+');
            self.column += 1;
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Err("indentation in numbers is not known; indent the first line of the text by blanks alone");
        }
        self.end_of_line()?;
        let mut text = String::new();
        let (mut indent, mut empty, mut began) = (None, 0, false);
        while let Some(line) = self.lines.get(self.line) {
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let rest = line.get(indent.unwrap_or(blanks)..).unwrap_or_default();
            if line.trim_ascii().is_empty() && line.len() <= indent.unwrap_or(usize::MAX) {
                empty += 1;
            } else {
                if blanks < indent.unwrap_or(least) {
                    break;
                }
                indent.get_or_insert(blanks);
                if folded && rest.starts_with([' ', '\t']) {
                    return Err("indentation within a text after > is not known; write | in its place");
                }
                // One end of a line becomes a blank, each further one stays.
                match (began, folded, empty) {
                    (true, true, 0) => text.push(' '),
                    (true, true, ends) => text.extend(std::iter::repeat_n('\n', ends)),
                    (true, false, ends) => text.extend(std::iter::repeat_n('\n', ends + 1)),
                    (false, _, ends) => text.extend(std::iter::repeat_n('\n', ends)),
                }
                text.push_str(rest);
                (empty, began) = (0, true);
            }
            self.next_line();
        }
        match keep_end {
            Some(false) => {}
            Some(true) => text.extend(std::iter::repeat_n('\n', empty + usize::from(began))),
            None if began => text.push('\n'),
            None => {}
        }
        Ok(text_value(text))
    }
}

/// Whether the colon behind a key is here.
pub(crate) fn is_colon(rest: &str) -> bool {
    rest == ":" || rest.starts_with(": ") || rest.starts_with(":\t")
}

/// What lists and maps in brackets are made of.
fn is_bracket(letter: &str) -> bool {
    matches!(letter, "," | "[" | "]" | "{" | "}")
}

/// Where a text without quotes ends: before `: `, a comment or, in brackets, what they are made of. None at the end of the line.
pub(crate) fn plain_end(rest: &str, in_flow: bool) -> Option<usize> {
    let mut before = ' ';
    for (at, letter) in rest.char_indices() {
        let after = rest.get(at..).unwrap_or_default();
        let colon = is_colon(after) || (in_flow && letter == ':' && after.get(1..2).is_some_and(is_bracket));
        let ends = colon
            || (letter == '#' && matches!(before, ' ' | '\t'))
            || (in_flow && after.get(..1).is_some_and(is_bracket));
        if ends {
            return Some(at);
        }
        before = letter;
    }
    None
}

fn escaped(letter: char) -> Option<char> {
    Some(match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' => '\u{1b}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        ' ' | '"' | '/' | '\\' => letter,
        _ => return None,
    })
}

pub(crate) fn text_value(text: String) -> Json<'static> {
    Json::Text(Cow::Owned(text))
}

/// What a text without quotes is (YAML 1.2 core schema, numbers as JSON writes them).
pub(crate) fn plain_value(text: &str) -> Json<'static> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ => match Json::parse(text) {
            Ok(Json::Number(_)) => Json::Number(Cow::Owned(text.into())),
            _ => Json::Text(Cow::Owned(text.into())),
        },
    }
}
