//! The requests that a test has seen, with their forms, queries and JSON taken apart.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// A request that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// Method.
    pub method: String,
    /// Whole URL with its query.
    pub url: String,
    /// Headers as written.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl SentRequest {
    /// The first header of this name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as a form.
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&self.text())
    }

    /// A field of the body as a form.
    pub fn field(&self, name: &str) -> Option<String> {
        self.form()
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// A parameter of the query.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.url.split_once('?')?;
        pairs(query)
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{self}\nis no JSON: {error}"),
        }
    }
}

impl std::fmt::Display for SentRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "  {} {}", self.method, self.url)?;
        if !self.body.is_empty() {
            write!(f, "\n  with {}", self.text())?;
        }
        Ok(())
    }
}

/// Takes a form or query apart.
fn pairs(text: &str) -> Vec<(String, String)> {
    let entries = text.split('&').filter(|entry| !entry.is_empty());
    let pair = |entry: &str| {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        (decoded(name), decoded(value))
    };
    entries.map(pair).collect()
}

/// Percent-decoded; what is no code stays as it is.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}
