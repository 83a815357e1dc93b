//! JSON of the services of OpenStack: objects that are written field by field, and readers that name what is missing.

use cloudwit_guest_sdk::Placeholder;
use serde_json::{Map, Value};

/// A JSON object that is being written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(Map<String, Value>);

impl Object {
    /// `{}`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text.
    pub fn text(self, key: &str, value: &str) -> Self {
        self.with(key, value)
    }

    /// A text, if there is one.
    pub fn text_opt(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// A whole number.
    pub fn number(self, key: &str, value: i64) -> Self {
        self.with(key, value)
    }

    /// `true` or `false`.
    pub fn flag(self, key: &str, value: bool) -> Self {
        self.with(key, value)
    }

    /// `null`.
    pub fn null(self, key: &str) -> Self {
        self.with(key, Value::Null)
    }

    /// An object within.
    pub fn object(self, key: &str, value: Object) -> Self {
        self.with(key, value.0)
    }

    /// A list of objects.
    pub fn objects(self, key: &str, values: impl IntoIterator<Item = Object>) -> Self {
        let values: Vec<Value> = values.into_iter().map(|object| object.0.into()).collect();
        self.with(key, values)
    }

    /// A list of texts.
    pub fn texts<'a>(self, key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<&str> = values.into_iter().collect();
        self.with(key, values)
    }

    /// A secret that the host fills in on the way out, as it is escaped for JSON.
    pub fn secret(self, key: &str, secret: &Placeholder) -> Self {
        self.text(key, secret.as_str())
    }

    /// The text of the object.
    pub fn into_text(self) -> String {
        Value::Object(self.0).to_string()
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }
}

/// Reads an answer.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse(text: &str) -> Read<Value> {
    serde_json::from_str(text).map_err(|wrong| wrong.to_string())
}

/// What is wrong with an answer, in a few words.
pub type Read<T> = Result<T, String>;

/// Reading fields of an answer. A field of another type counts as missing.
pub trait Fields {
    /// The value of this key, unless it is `null`.
    fn field(&self, key: &str) -> Option<&Value>;

    /// A text that may be missing.
    fn text(&self, key: &str) -> Option<&str> {
        self.field(key)?.as_str()
    }

    /// A text that has to be there.
    fn need(&self, key: &str) -> Read<String> {
        self.text(key).map(String::from).ok_or_else(|| missing(key))
    }

    /// A text that is empty when it is missing.
    fn text_or_empty(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().into()
    }

    /// Whether it is `true`.
    fn flag(&self, key: &str) -> bool {
        matches!(self.field(key), Some(Value::Bool(true)))
    }

    /// A whole number.
    fn number(&self, key: &str) -> Option<i64> {
        self.field(key)?.as_i64()
    }

    /// The items of a list; none when it is missing.
    fn items(&self, key: &str) -> &[Value] {
        match self.field(key) {
            Some(Value::Array(items)) => items,
            _ => &[],
        }
    }

    /// The texts of a list.
    fn texts(&self, key: &str) -> Vec<String> {
        self.items(key)
            .iter()
            .filter_map(|item| item.as_str().map(String::from))
            .collect()
    }

    /// The ids of a list of objects: `[{"id": "..."}]`.
    fn ids(&self, key: &str) -> Vec<String> {
        self.items(key)
            .iter()
            .filter_map(|item| item.text("id").map(String::from))
            .collect()
    }

    /// What is read of each item of a list.
    fn each<T>(&self, key: &str, read: impl Fn(&Value) -> Read<T>) -> Read<Vec<T>> {
        self.items(key).iter().map(read).collect()
    }

    /// An object, or a list, that has to be there.
    fn need_field(&self, key: &str) -> Read<&Value> {
        self.field(key).ok_or_else(|| missing(key))
    }
}

impl Fields for Value {
    fn field(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

/// The keys and values of an object.
pub fn entries(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    json.as_object().into_iter().flatten()
}

fn missing(key: &str) -> String {
    format!("it has no \"{key}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_was_meant() {
        let object = Object::new()
            .text("name", "a \"b\"\\\n{{x}}")
            .number("n", -1)
            .flag("f", true)
            .null("z")
            .text_opt("left", None)
            .texts("t", ["x", "y"])
            .objects("o", [Object::new().text("i", "1"), Object::new()])
            .object("in", Object::new().text("password", "p"));
        let text = object.into_text();
        assert_eq!(
            text,
            "{\"f\":true,\"in\":{\"password\":\"p\"},\"n\":-1,\"name\":\"a \\\"b\\\"\\\\\\n{{x}}\",\
             \"o\":[{\"i\":\"1\"},{}],\"t\":[\"x\",\"y\"],\"z\":null}"
        );
        let read = serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(read.text("name"), Some("a \"b\"\\\n{{x}}"));
        assert_eq!(
            (read.number("n"), read.flag("f"), read.field("z")),
            (Some(-1), true, None)
        );
        assert_eq!(read.need("gone"), Err("it has no \"gone\"".into()));
        assert_eq!((read.texts("t"), read.ids("o")), (vec!["x".into(), "y".into()], vec![]));
    }
}
