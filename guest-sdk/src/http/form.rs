//! Forms and queries: `name=value&name=value`, percent-encoded by RFC 3986.
//!
//! What differs between clouds is only how lists are named, so names are the author's own: `InstanceId.1` (EC2), `Names.member.1`
//! (Elastic Load Balancing), `ids` (most others). Order is kept, since some signatures depend on it.

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

    /// Adds a field. A secret comes as a placeholder in [`Encoding::Form`](crate::keys::Encoding::Form), which is not changed by this.
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

    /// Adds a list as `name.1`, `name.2` and so on, as AWS needs it.
    pub fn list<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        for (index, value) in values.into_iter().enumerate() {
            self.push_numbered(name, index + 1, value.as_ref());
        }
        self
    }

    fn push_numbered(&mut self, name: &str, number: usize, value: &str) {
        self.push(&format!("{name}.{number}"), value);
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

    /// Adds all fields of another one, as they are there.
    pub fn extend(mut self, other: &Self) -> Self {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(&other.0);
        self
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Encoding;
    use crate::testing::FakeHost;

    /// RFC 3986, 2.3: these and only these are not escaped.
    #[test]
    fn every_byte_but_the_unreserved_ones_is_encoded_in_upper_case() {
        let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
        assert_eq!(
            Form::new().field(unreserved, unreserved).encode(),
            format!("{unreserved}={unreserved}")
        );
        for byte in (0u8..128).map(char::from).filter(|c| !unreserved.contains(*c)) {
            let code = format!("%{:02X}", u32::from(byte));
            assert_eq!(Form::new().field("a", byte).encode(), format!("a={code}"));
            assert_eq!(Form::new().field(byte.to_string(), "a").encode(), format!("{code}=a"));
        }
        // RFC 3986, 2.5: U+30A2, and U+00C0.
        assert_eq!(Form::new().field("a", "\u{30a2}\u{c0}").encode(), "a=%E3%82%A2%C3%80");
    }

    #[test]
    fn fields_keep_their_order_and_lists_are_numbered_from_one() {
        let none: Option<&str> = None;
        let form = Form::new()
            .field("z", 1)
            .field("a", true)
            .field_opt("no", none)
            .field_opt("yes", Some(""))
            .list("Names.member", Vec::<String>::new())
            .list("Filter.1.Value", &["x".to_owned(), "y z".to_owned()]);
        assert_eq!(
            form.encode(),
            "z=1&a=true&yes=&Filter.1.Value.1=x&Filter.1.Value.2=y%20z"
        );
        assert_eq!(Form::new().encode(), "");
    }

    #[test]
    fn a_secret_stays_a_placeholder_that_the_host_finds() {
        let host = FakeHost::new();
        host.secret("pw", "a&b");
        let password = host.context().keys().placeholder_as("pw", Encoding::Form).unwrap();
        let form = Form::new().field("user", "{{x}}").field("password", &password);
        assert_eq!(form.encode(), format!("user=%7B%7Bx%7D%7D&password={password}"));
    }

    #[test]
    fn a_form_is_sent_as_such() {
        let host = FakeHost::new();
        host.expect("POST", "https://cloud.test/")
            .with_header("content-type", "application/x-www-form-urlencoded; charset=utf-8")
            .with_text("a=b%20c")
            .answers_with(204, &[], "");
        let form = Form::new().field("a", "b c");
        host.context()
            .http()
            .post("https://cloud.test/")
            .form(&form)
            .send()
            .unwrap();
    }
}
