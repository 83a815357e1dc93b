//! Forms and queries: `name=value&name=value`, percent-encoded as RFC 3986 says.
//!
//! What differs between clouds is only how lists are named, so names are the author's own: `InstanceId.1` (EC2), `Names.member.1`
//! (Elastic Load Balancing), `ids` (most others). Order is kept, since some signatures depend on it.

use crate::Secret;
use crate::http::Request;
use crate::url::encode_into;

/// The content type of [`Request::form`].
pub const CONTENT_TYPE: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// A form that is being written.
///
/// ```
/// use cloudwit_guest_sdk::form::Form;
///
/// let form = Form::new()
///     .field("Action", "DescribeInstances")
///     .list("InstanceId", ["i-1", "i-2"])
///     .list("Tags.member", ["a b"]);
/// assert_eq!(form.encode(), "Action=DescribeInstances&InstanceId.1=i-1&InstanceId.2=i-2&Tags.member.1=a%20b");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form(String);

impl Form {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    pub fn field(mut self, name: impl AsRef<str>, value: impl ToString) -> Self {
        self.push(name.as_ref(), &value.to_string());
        self
    }

    /// Adds a field if there is a value.
    pub fn field_opt(self, name: impl AsRef<str>, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds a list as `name.1`, `name.2` and so on, as AWS wants it.
    pub fn list<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        for (index, value) in values.into_iter().enumerate() {
            self.push(&[name, ".", &(index + 1).to_string()].concat(), value.as_ref());
        }
        self
    }

    /// Adds a field whose value is a secret that the host fills in, percent-encoded.
    pub fn secret(mut self, name: &str, secret: Secret) -> Self {
        self.push(name, "");
        // The host looks for the placeholder as it is; percent-encoded it would not be found.
        self.0.push_str(secret.form().placeholder());
        self
    }

    /// Adds a field.
    pub fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode_into(&mut self.0, name);
        self.0.push('=');
        encode_into(&mut self.0, value);
    }

    /// The text to send.
    pub fn encode(&self) -> String {
        self.0.clone()
    }
}

impl Request {
    /// A form as body.
    pub fn form(self, form: &Form) -> Self {
        self.body(CONTENT_TYPE, form.encode())
    }
}
