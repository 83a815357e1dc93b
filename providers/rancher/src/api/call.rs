//! A change that is requested: of what, how, with which body.

use serde_json::Value;

use super::Kind;

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// How it is sent.
    pub method: &'static str,
    /// Path and query below the API.
    pub target: String,
    /// None for actions without input.
    pub body: Option<Value>,
}

impl Call {
    /// Makes one.
    pub fn create(kind: Kind, body: Value) -> Self {
        Self {
            method: "POST",
            target: kind.path.to_owned(),
            body: Some(body),
        }
    }

    /// Changes these fields.
    pub fn update(kind: Kind, id: &str, body: Value) -> Self {
        Self {
            method: "PUT",
            target: format!("{}/{id}", kind.path),
            body: Some(body),
        }
    }

    /// Does what `actions` of the resource names.
    pub fn act(kind: Kind, id: &str, action: &str) -> Self {
        Self {
            method: "POST",
            target: format!("{}/{id}?action={action}", kind.path),
            body: None,
        }
    }

    /// Removes it.
    pub fn delete(kind: Kind, id: &str) -> Self {
        Self {
            method: "DELETE",
            target: format!("{}/{id}", kind.path),
            body: None,
        }
    }

    /// All of it, for messages and as a key.
    pub fn text(&self) -> String {
        match &self.body {
            Some(body) => format!("{} {} {body}", self.method, self.target),
            None => format!("{} {}", self.method, self.target),
        }
    }
}
