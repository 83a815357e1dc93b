//! JSON as the services of OpenStack speak it: objects that are written field by field, and readers that say what is missing.
//!
//! Written by hand instead of by derived types: of each answer a handful of fields is read, and a component has to stay small.

use cloudwit_guest_sdk::Placeholder;
use cloudwit_guest_sdk::json::Json;

/// A JSON object that is being written.
#[derive(Debug, Clone, Default)]
pub struct Object(String);

impl Object {
    /// `{}`.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text.
    pub fn text(self, key: &str, value: &str) -> Self {
        let value = quoted(value);
        self.raw(key, &value)
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
        self.raw(key, &value.to_string())
    }

    /// `true` or `false`.
    pub fn flag(self, key: &str, value: bool) -> Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// `null`.
    pub fn null(self, key: &str) -> Self {
        self.raw(key, "null")
    }

    /// An object within.
    pub fn object(self, key: &str, value: Object) -> Self {
        let value = value.into_text();
        self.raw(key, &value)
    }

    /// A list of objects.
    pub fn objects(self, key: &str, values: impl IntoIterator<Item = Object>) -> Self {
        let mut list = String::from("[");
        for value in values {
            item(&mut list, &value.into_text());
        }
        list.push(']');
        self.raw(key, &list)
    }

    /// A list of texts.
    pub fn texts<'a>(self, key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = String::from("[");
        for value in values {
            item(&mut list, &quoted(value));
        }
        list.push(']');
        self.raw(key, &list)
    }

    /// A secret that the host fills in on the way out, as it is escaped for JSON.
    pub fn secret(self, key: &str, secret: &Placeholder) -> Self {
        self.text(key, secret.as_str())
    }

    /// The text of the object.
    pub fn into_text(self) -> String {
        format!("{{{}}}", self.0)
    }

    fn raw(mut self, key: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        for part in ["\"", key, "\":", value] {
            self.0.push_str(part);
        }
        self
    }
}

/// One more item of a list.
fn item(list: &mut String, value: &str) {
    if list.len() > 1 {
        list.push(',');
    }
    list.push_str(value);
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\0'..='\u{1f}' => {
                let hex = |digit: u32| char::from_digit(digit, 16).unwrap_or('0');
                out.push_str("\\u00");
                out.extend([hex(letter as u32 >> 4), hex(letter as u32 & 15)]);
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// What is wrong with an answer, in a few words.
pub type Read<T> = Result<T, String>;

/// Reading fields of an answer. A field of another type counts as missing.
pub trait Fields {
    /// The value of this key, unless it is `null`.
    fn field(&self, key: &str) -> Option<&Json<'_>>;

    /// A text that may be missing.
    fn text(&self, key: &str) -> Option<&str> {
        self.field(key)?.as_text()
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
        matches!(self.field(key), Some(Json::Bool(true)))
    }

    /// A whole number.
    fn number(&self, key: &str) -> Option<i64> {
        match self.field(key)? {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The items of a list; none when it is missing.
    fn items(&self, key: &str) -> &[Json<'_>] {
        match self.field(key) {
            Some(Json::List(items)) => items,
            _ => &[],
        }
    }

    /// The texts of a list.
    fn texts(&self, key: &str) -> Vec<String> {
        self.items(key)
            .iter()
            .filter_map(|item| item.as_text().map(String::from))
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
    fn each<T>(&self, key: &str, read: impl Fn(&Json<'_>) -> Read<T>) -> Read<Vec<T>> {
        let items = self.items(key);
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            all.push(read(item)?);
        }
        Ok(all)
    }

    /// An object, or a list, that has to be there.
    fn need_field(&self, key: &str) -> Read<&Json<'_>> {
        self.field(key).ok_or_else(|| missing(key))
    }
}

impl Fields for Json<'_> {
    fn field(&self, key: &str) -> Option<&Json<'_>> {
        self.get(key).filter(|value| !matches!(value, Json::Null))
    }
}

/// The keys and values of an object.
pub fn entries<'j, 'a>(json: &'j Json<'a>) -> &'j [(std::borrow::Cow<'a, str>, Json<'a>)] {
    match json {
        Json::Object(entries) => entries,
        _ => &[],
    }
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
            "{\"name\":\"a \\\"b\\\"\\\\\\u000a{{x}}\",\"n\":-1,\"f\":true,\"z\":null,\"t\":[\"x\",\"y\"],\
             \"o\":[{\"i\":\"1\"},{}],\"in\":{\"password\":\"p\"}}"
        );
        let read = Json::parse(&text).unwrap();
        assert_eq!(read.text("name"), Some("a \"b\"\\\n{{x}}"));
        assert_eq!(
            (read.number("n"), read.flag("f"), read.field("z")),
            (Some(-1), true, None)
        );
        assert_eq!(read.need("gone"), Err("it has no \"gone\"".into()));
        assert_eq!((read.texts("t"), read.ids("o")), (vec!["x".into(), "y".into()], vec![]));
    }
}
