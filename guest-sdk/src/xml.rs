//! XML answers as a tree, by local names: prefixes and namespaces differ between versions of one cloud's servers, the names after the colon do not.
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

use crate::http::Response;
use crate::types::Failure;
use crate::xml_reader;

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
    /// `unavailable`, with line and column, when the document is cut or broken: the next answer may be whole.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        xml_reader::read(text)
            .map_err(|mistake| Failure::Unavailable(format!("the answer is no whole XML: {mistake}")))
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

    // In each of the dozens of places where children are read it would be as much code as all else there.
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

/// The text as it may stand in an element or in an attribute's quotes.
///
/// ```
/// # use cloudwit_guest_sdk::xml::escape;
/// assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // Readers turn it into a line feed where it stands bare.
            '\r' => escaped.push_str("&#13;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "xml_tests.rs"]
mod tests;
