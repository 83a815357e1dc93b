//! A call as data: plans make them, tests compare them.

use serde_json::Value;

use crate::config::Product;

/// A call that is not sent yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Whose it is.
    pub product: Product,
    /// Method.
    pub method: &'static str,
    /// Path, of characters that need no encoding ([`is_id`](super::is_id)).
    pub path: String,
    /// Names and values, not encoded yet.
    pub query: Vec<(String, String)>,
    /// JSON.
    pub body: Option<Value>,
}

impl Call {
    /// A call without query and body.
    pub fn new(product: Product, method: &'static str, path: impl Into<String>) -> Self {
        Self {
            product,
            method,
            path: path.into(),
            query: Vec::new(),
            body: None,
        }
    }

    /// One that reads.
    pub fn get(product: Product, path: impl Into<String>) -> Self {
        Self::new(product, "GET", path)
    }

    /// Adds a parameter.
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// The body.
    pub fn json(self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    /// All of it for messages: `PUT /v1/eip/192.0.2.1?bind {...}`.
    pub fn text(&self) -> String {
        let mut text = format!("{} {}", self.method, self.path);
        for (at, (name, value)) in self.query.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(name);
            if !value.is_empty() {
                text.push('=');
                text.push_str(value);
            }
        }
        match &self.body {
            Some(body) => format!("{text} {body}"),
            None => text,
        }
    }
}
