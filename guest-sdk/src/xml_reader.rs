//! The text of a document, piece by piece, to the tree of `xml.rs`. Nothing here recurses, so no document makes the stack overflow.

use crate::xml::Element;

/// Elements in each other. The deepest answers that are known have about 20.
const MAX_DEPTH: usize = 100;

/// Elements in a document: 5,000 machines in one answer have a tenth of it.
const MAX_ELEMENTS: usize = 5_000_000;

/// Reads a whole document.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn read(text: &str) -> Result<Element, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        rest: text,
        open: Vec::new(),
        elements: 0,
    };
    reader.document().map_err(|mistake| reader.place(text, mistake))
}

struct Reader<'a> {
    rest: &'a str,
    /// Elements that are not closed yet, with their names as written.
    open: Vec<(&'a str, Element)>,
    elements: usize,
}

/// The error says what is wrong at the reader's place.
type Read<T> = Result<T, &'static str>;

const CUT: &str = "it ends in the middle";

impl<'a> Reader<'a> {
    fn document(&mut self) -> Read<Element> {
        let mut root = None;
        loop {
            self.text(root.is_some())?;
            if self.rest.is_empty() {
                return root.filter(|_| self.open.is_empty()).ok_or(CUT);
            }
            if let Some(done) = self.markup()? {
                match self.open.last_mut() {
                    Some((_, parent)) => parent.children.push(done),
                    None if root.is_some() => return Err("a second outermost element"),
                    None => root = Some(done),
                }
            }
        }
    }

    /// Text up to the next markup.
    fn text(&mut self, after_root: bool) -> Read<()> {
        let end = self.rest.find('<').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        match self.open.last_mut() {
            Some((_, element)) => unescape(text, &mut element.text)?,
            None if text.trim_ascii().is_empty() => {}
            None if after_root => return Err("text behind the outermost element"),
            None => return Err("text instead of an element"),
        }
        self.rest = rest;
        Ok(())
    }

    /// Whatever begins with `<`; an element that is complete with it.
    fn markup(&mut self) -> Read<Option<Element>> {
        if self.rest.starts_with("<!--") {
            self.skip("<!--", "-->").map(|_| None)
        } else if self.rest.starts_with("<?") {
            self.skip("<?", "?>").map(|_| None)
        } else if self.rest.starts_with("<![CDATA[") {
            let text = self.skip("<![CDATA[", "]]>")?;
            let (_, element) = self.open.last_mut().ok_or("text instead of an element")?;
            element.text.push_str(text);
            Ok(None)
        } else if self.rest.starts_with("</") {
            self.end_tag().map(Some)
        } else if self.rest.starts_with("<!") {
            // Cut within a comment or CDATA it is no document type.
            let cut = ["<!--", "<![CDATA["].iter().any(|mark| mark.starts_with(self.rest));
            Err(if cut {
                CUT
            } else {
                "a document type, which no API sends: is this a web page?"
            })
        } else {
            self.start_tag()
        }
    }

    /// What stands between the marks, which are passed over too.
    fn skip(&mut self, start: &str, end: &str) -> Read<&'a str> {
        let inner = self.rest.get(start.len()..).unwrap_or_default();
        let (inner, rest) = inner.split_once(end).ok_or(CUT)?;
        self.rest = rest;
        Ok(inner)
    }

    fn end_tag(&mut self) -> Read<Element> {
        let name = self.skip("</", ">")?;
        let (open, mut element) = self.open.pop().ok_or("an end without a beginning")?;
        if name.trim_ascii_end() != open {
            self.open.push((open, element));
            return Err("the end of another element than the open one");
        }
        if !element.children.is_empty() && element.text.trim_ascii().is_empty() {
            // Indentation, which is half of some documents.
            element.text = String::new();
        }
        Ok(element)
    }

    fn start_tag(&mut self) -> Read<Option<Element>> {
        self.pass("<");
        let written = self.name()?;
        let mut element = Element {
            name: local(written).into(),
            ..Element::default()
        };
        self.elements += 1;
        if self.elements > MAX_ELEMENTS || self.open.len() >= MAX_DEPTH {
            return Err("more or deeper elements than any answer has");
        }
        let mut plain = 0;
        loop {
            let blank = self.blank();
            if self.pass("/>") {
                return Ok(Some(element));
            }
            if self.pass(">") {
                self.open.push((written, element));
                return Ok(None);
            }
            if self.rest.is_empty() || self.rest == "/" {
                return Err(CUT);
            }
            if !blank {
                return Err("a character that no name has");
            }
            let (name, value) = self.attribute()?;
            if name != "xmlns" && !name.starts_with("xmlns:") {
                // SOAP has `type` beside `xsi:type`: the one without a prefix is found first.
                let at = if name.contains(':') {
                    element.attributes.len()
                } else {
                    plain
                };
                plain += usize::from(!name.contains(':'));
                element.attributes.insert(at, (local(name).into(), value));
            }
        }
    }

    fn attribute(&mut self) -> Read<(&'a str, String)> {
        let name = self.name()?;
        self.blank();
        if !self.pass("=") {
            return Err(if self.rest.is_empty() {
                CUT
            } else {
                "an attribute without a value"
            });
        }
        self.blank();
        let quote = match self.rest.chars().next() {
            None => return Err(CUT),
            Some(quote @ ('"' | '\'')) => quote,
            Some(_) => return Err("an attribute's value without quotes"),
        };
        let (text, rest) = self.rest.get(1..).and_then(|rest| rest.split_once(quote)).ok_or(CUT)?;
        if text.contains('<') {
            return Err("< in an attribute's value");
        }
        let mut value = String::with_capacity(text.len());
        unescape(text, &mut value)?;
        self.rest = rest;
        Ok((name, value))
    }

    /// A name as written, with its prefix.
    fn name(&mut self) -> Read<&'a str> {
        let no_name = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '_' | ':' | '-' | '.');
        let end = self.rest.find(no_name).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if rest.is_empty() {
            return Err(CUT);
        }
        let first = local(name).chars().next();
        if first.is_none_or(|c| c.is_ascii_digit() || matches!(c, '-' | '.')) {
            return Err("no name where one has to be");
        }
        self.rest = rest;
        Ok(name)
    }

    /// Passes over blanks; whether there were any.
    fn blank(&mut self) -> bool {
        let rest = self.rest.trim_ascii_start();
        let any = rest.len() < self.rest.len();
        self.rest = rest;
        any
    }

    fn pass(&mut self, mark: &str) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// `line 3, column 7, in List/item: what is wrong`.
    fn place(&self, text: &str, mistake: &str) -> String {
        let before = text.get(..text.len() - self.rest.len()).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let mut place = format!("line {line}, column {column}");
        for (index, (_, element)) in self.open.iter().enumerate() {
            place.push_str(if index == 0 { ", in " } else { "/" });
            place.push_str(&element.name);
        }
        place.push_str(": ");
        place.push_str(mistake);
        place
    }
}

/// The name behind the prefix.
fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

/// Adds text with its entities replaced.
fn unescape(text: &str, out: &mut String) -> Read<()> {
    const WRONG: &str = "an entity that is not known";
    let mut parts = text.split('&');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once(';').ok_or(WRONG)?;
        let c = match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => character(name).ok_or(WRONG)?,
        };
        out.push(c);
        out.push_str(rest);
    }
    Ok(())
}

/// `#60` or `#x3C`.
fn character(name: &str) -> Option<char> {
    let digits = name.strip_prefix('#')?;
    let (digits, radix) = digits.strip_prefix('x').map_or((digits, 10), |digits| (digits, 16));
    let number = u32::from_str_radix(digits, radix)
        .ok()
        .filter(|_| !digits.starts_with('+'))?;
    // XML 1.0, production 2 (Char): of the control characters only these.
    char::from_u32(number)
        .filter(|c| !matches!(c, '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}') || matches!(c, '\t' | '\n' | '\r'))
}
