//! XML answers as a tree, by local names.
//!
//! Prefixes and namespaces differ between versions of one cloud's servers, the names after the colon do not.
//!
//! ```
//! use cloudwit_guest_sdk::xml::Element;
//!
//! let answer = Element::parse("<r:List xmlns:r='urn:x'><item n='1'><id>i-1</id></item><item><id>a &lt; b</id></item></r:List>")?;
//! let ids: Vec<_> = answer.children("item").filter_map(|item| item.text("id")).collect();
//! assert_eq!((answer.name.as_str(), ids), ("List", vec!["i-1", "a < b"]));
//! assert_eq!(answer.child("item").and_then(|item| item.attribute("n")), Some("1"));
//! # Ok::<(), cloudwit_guest_sdk::Failure>(())
//! ```
//!
//! Read are elements, attributes, text, CDATA, and the entities that need no declaration; comments and instructions are skipped. A
//! document type is refused: no API answers with one (HTML pages of proxies do), and entities of one's own are how XML readers are attacked.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::http::Response;
use crate::types::Failure;

/// An element and all that is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name without prefix.
    pub name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// Reads a document: its outermost element.
    ///
    /// # Errors
    /// `unavailable`, with the line, when the document is cut or broken: the next answer may be whole.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut builder = Builder::default();
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let read = loop {
            match reader.read_event() {
                Ok(Event::Eof) => break builder.finish(),
                Ok(event) => {
                    if let Err(wrong) = builder.take(event) {
                        break Err(wrong);
                    }
                }
                Err(wrong) => break Err(wrong.to_string()),
            }
        };
        read.map_err(|wrong| {
            let before = usize::try_from(reader.buffer_position())
                .ok()
                .and_then(|at| text.get(..at));
            let line = before.unwrap_or(text).matches('\n').count() + 1;
            Failure::unavailable(format!("the answer is no whole XML: line {line}: {wrong}"))
        })
    }

    /// The value of the attribute of this name, which is without prefix too. Where there are several, the one that was written without a prefix.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The first child of this name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children(name).next()
    }

    /// The element that this way of names leads to, by the first child of each name.
    pub fn at(&self, names: &[&str]) -> Option<&Self> {
        names.iter().try_fold(self, |element, name| element.child(name))
    }

    /// The children of this name, in their order.
    pub fn children<'a, 'n>(&'a self, name: &'n str) -> Children<'a, 'n> {
        Children {
            rest: self.children.iter(),
            name,
        }
    }

    /// All elements that this way of names leads to, in their order: `all(&["reservationSet", "item", "instancesSet", "item"])`.
    pub fn all(&self, names: &[&str]) -> std::vec::IntoIter<&Self> {
        let mut found = vec![self];
        for name in names {
            found = found.into_iter().flat_map(|element| element.children(name)).collect();
        }
        found.into_iter()
    }

    /// All children.
    pub fn elements(&self) -> std::slice::Iter<'_, Self> {
        self.children.iter()
    }

    /// The text of the first child of this name; empty when that is an empty element, none when there is no such child.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.child(name).map(Self::own_text)
    }

    /// The text directly in this element, without blanks around it: they are mostly indentation.
    pub fn own_text(&self) -> &str {
        self.text.trim_ascii()
    }
}

/// The children of one name.
#[derive(Debug, Clone)]
pub struct Children<'a, 'n> {
    rest: std::slice::Iter<'a, Element>,
    name: &'n str,
}

impl<'a> Iterator for Children<'a, '_> {
    type Item = &'a Element;

    fn next(&mut self) -> Option<&'a Element> {
        self.rest.by_ref().find(|child| child.name == self.name)
    }
}

impl Response {
    /// The body as XML.
    ///
    /// # Errors
    /// `unavailable`, naming the request and the place, when it is cut or broken.
    pub fn xml(&self) -> Result<Element, Failure> {
        let text = std::str::from_utf8(&self.body);
        text.map_err(|_| Failure::unavailable("the answer is no UTF-8"))
            .and_then(Element::parse)
            .map_err(|failure| failure.context(&self.request))
    }
}

/// Elements in each other. The deepest answers that are known have about 20.
const MAX_DEPTH: usize = 100;

/// Makes the tree of what the reader finds.
#[derive(Default)]
struct Builder {
    /// Elements that are not closed yet.
    open: Vec<Element>,
    root: Option<Element>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(start) => self.start(&start),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) if !self.open.is_empty() => self.text(&text.xml10_content()),
            Event::CData(_) => Err("text outside of the outermost element".into()),
            Event::GeneralRef(name) => match name.resolve_char_ref().map_err(|wrong| wrong.to_string())? {
                Some(letter) => self.text(letter.encode_utf8(&mut [0; 4])),
                None => {
                    let text = resolve_predefined_entity(&name).ok_or("an entity that is not known")?;
                    self.text(text)
                }
            },
            Event::DocType(_) => Err("a document type, which no API sends: is this a web page?".into()),
            _ => Ok(()),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err("deeper elements than any answer has".into());
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err("a second outermost element".into());
        }
        let mut element = Element {
            name: start.local_name().as_ref().into(),
            ..Element::default()
        };
        let mut prefixed = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|wrong| wrong.to_string())?;
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|wrong| wrong.to_string())?;
            let name = attribute.key.local_name().as_ref().to_owned();
            // SOAP has `type` beside `xsi:type`: the one without a prefix is found first.
            let list = match attribute.key.prefix() {
                Some(_) => &mut prefixed,
                None => &mut element.attributes,
            };
            list.push((name, value.into_owned()));
        }
        element.attributes.append(&mut prefixed);
        self.open.push(element);
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let mut element = self.open.pop().ok_or("an end without a beginning")?;
        if !element.children.is_empty() && element.text.trim_ascii().is_empty() {
            // Indentation, which is half of some documents.
            element.text = String::new();
        }
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim_ascii().is_empty() => {}
            None => return Err("text outside of the outermost element".into()),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Element, String> {
        match self.root.take() {
            Some(root) if self.open.is_empty() => Ok(root),
            _ => Err("it ends in the middle".into()),
        }
    }
}

/// The text as it may stand in an element or in an attribute's quotes.
///
/// ```
/// # use cloudwit_guest_sdk::xml::escape;
/// assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    // Readers make line feeds of bare carriage returns, and blanks of both within attributes.
    let escaped = quick_xml::escape::escape(text);
    escaped
        .replace('\r', "&#13;")
        .replace('\n', "&#10;")
        .replace('\t', "&#9;")
}

#[cfg(test)]
mod tests;
