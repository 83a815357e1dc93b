//! Properties of the readers of JSON, XML, YAML and git-config, each beside a reader by others.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::Value;

use crate::json::Json;
use crate::xml::{Element, escape};
use crate::{gcfg, yaml, yaml_plain};

/// Enough to find what is there, and within a second.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Any JSON value, some levels deep.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|entries| entries.into_iter().collect()),
        ]
    })
}

/// The tree as serde_json has it.
fn as_value(json: &Json<'_>) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(text) => serde_json::from_str(text).expect("a number is one for serde_json too"),
        Json::Text(text) => Value::String(text.to_string()),
        Json::List(items) | Json::Repeated(items) => items.iter().map(as_value).collect(),
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.to_string(), as_value(value)))
            .collect(),
    }
}

/// Text that is almost JSON.
fn almost_json() -> impl Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"a\":",
        "\\",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\udc00x",
        "0",
        "-",
        "-0",
        "01",
        "1.",
        "1.5",
        "1e5",
        "1E+5",
        "e",
        ".5",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "\t",
        "\u{1}",
        "é",
        "/*",
        "NaN",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
}

/// Text that is almost YAML.
fn almost_yaml() -> impl Strategy<Value = String> {
    let pieces = [
        "a: ",
        "b:",
        "- ",
        "-",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "x",
        "'",
        "\"",
        "'it''s'",
        "\"a\\n\"",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "# c",
        "|",
        ">-",
        "null",
        "~",
        "true",
        "1.5",
        "0x1f",
        "0o7",
        "1_0",
        "*a",
        "&a ",
        "!t ",
        "---",
        "...",
        "? ",
        "%",
        "@",
        "`",
        "\t",
        "key with blanks: ",
        "\"q\": ",
        "<<: ",
        ":",
        "é",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..14).prop_map(|pieces| pieces.concat())
}

/// An element with all that is in it, as a tree that can be written.
#[derive(Debug, Clone)]
struct Tree {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Tree>,
}

fn tree() -> impl Strategy<Value = Tree> {
    let plain = (
        "[A-Za-z_][A-Za-z0-9_.-]{0,6}",
        prop::collection::btree_map("[a-z]{1,4}", "[ -~é]{0,8}", 0..3),
        "[ -~é]{0,10}",
    );
    let leaf = plain.prop_map(|(name, attributes, text)| Tree {
        name,
        attributes: attributes.into_iter().collect(),
        text,
        children: Vec::new(),
    });
    leaf.prop_recursive(4, 20, 4, |inner| {
        let plain = ("[A-Za-z_][A-Za-z0-9_.-]{0,6}", prop::collection::vec(inner, 0..4));
        plain.prop_map(|(name, children)| Tree {
            name,
            attributes: Vec::new(),
            text: String::new(),
            children,
        })
    })
}

impl Tree {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "<{}", self.name);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}=\"{}\"", escape(value));
        }
        let _ = write!(out, ">{}", escape(&self.text));
        for child in &self.children {
            child.write(out);
        }
        let _ = write!(out, "</{}>", self.name);
    }

    fn equals(&self, read: &Element) -> bool {
        self.name == read.name
            && self.text == read.text
            && self
                .attributes
                .iter()
                .all(|(name, value)| read.attribute(name) == Some(value))
            && self.children.len() == read.children.len()
            && self
                .children
                .iter()
                .zip(&read.children)
                .all(|(wanted, read)| wanted.equals(read))
    }
}

/// Text that is almost XML.
fn almost_xml() -> impl Strategy<Value = String> {
    let pieces = [
        "<a>",
        "</a>",
        "<b ",
        "/>",
        "<",
        ">",
        "x='1'",
        "x=\"1\" ",
        "y=1",
        "&amp;",
        "&#65;",
        "&#x41;",
        "&#0;",
        "&bad;",
        "&",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?xml?>",
        "<!DOCTYPE a>",
        "t",
        " ",
        "\n",
        "<n:a>",
        "</n:a>",
        "é",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..12).prop_map(|pieces| pieces.concat())
}

/// Whether a reader by others takes the document.
fn others_take(xml: &str) -> Result<(), String> {
    let mut reader = quick_xml::Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn json_reads_what_serde_json_writes(value in value()) {
        let text = value.to_string();
        prop_assert_eq!(as_value(&Json::parse(&text).unwrap()), serde_json::from_str::<Value>(&text).unwrap());
    }

    #[test]
    fn json_takes_exactly_what_serde_json_takes(text in prop_oneof![almost_json(), any::<String>()]) {
        match (Json::parse(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(as_value(&ours), theirs),
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{text:?}: {ours:?}, serde_json {theirs:?}"),
        }
    }

    #[test]
    fn yaml_readers_read_json(value in value()) {
        let text = value.to_string();
        let read = yaml::parse(&text).map(|json| as_value(&json));
        if let Ok(read) = read {
            prop_assert_eq!(&read, &serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn small_yaml_reader_agrees_with_the_large_one(text in almost_yaml()) {
        if let (Ok(small), Ok(large)) = (yaml_plain::parse(&text), yaml::parse(&text)) {
            prop_assert_eq!(small, large, "{:?}", text);
        }
    }

    #[test]
    fn large_yaml_reader_agrees_with_serde_saphyr(text in almost_yaml()) {
        let theirs = serde_saphyr::from_str::<Value>(&text);
        if let (Ok(ours), Ok(theirs)) = (yaml::parse(&text), theirs) {
            prop_assert!(same_but_for_plain_scalars(&as_value(&ours), &theirs), "{text:?}: {ours:?}, serde-saphyr {theirs:?}");
        }
    }

    #[test]
    fn yaml_readers_end_on_any_text(text in any::<String>()) {
        let _ = (yaml::parse(&text), yaml_plain::parse(&text));
    }

    #[test]
    fn xml_reads_what_was_written(tree in tree()) {
        let mut text = String::new();
        tree.write(&mut text);
        let read = Element::parse(&text);
        prop_assert!(read.as_ref().is_ok_and(|read| tree.equals(read)), "{text}: {read:?}");
    }

    #[test]
    fn xml_takes_nothing_that_quick_xml_refuses(text in prop_oneof![almost_xml(), any::<String>()]) {
        if let Ok(read) = Element::parse(&text) {
            let others = others_take(&text);
            prop_assert!(others.is_ok(), "{text:?} is {read:?}; quick-xml: {others:?}");
        }
    }

    #[test]
    fn gcfg_reads_what_was_written(
        section in "[A-Za-z][A-Za-z0-9-]{0,8}",
        more in prop::option::of("[ !#-\\[\\]-~é]{0,8}"),
        entries in prop::collection::btree_map("[a-z][a-z0-9-]{0,8}", "[^\\x00\\r]{0,12}", 1..4),
    ) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        let head = more.as_ref().map_or_else(|| format!("[{section}]"), |more| format!("[{section} \"{}\"]", more.replace('\\', "\\\\")));
        let lines = entries.iter().map(|(name, value)| format!("{name} = \"{}\"\n", quoted(value)));
        let text = format!("{head}\n{}", lines.collect::<String>());
        let read = gcfg::parse(&text).unwrap();
        let read = read.get(&section.to_ascii_lowercase()).unwrap();
        let read = more.as_ref().map_or(Some(read), |more| read.get(more)).unwrap();
        for (name, value) in &entries {
            let expected = Json::Repeated(vec![Json::Text(value.clone().into())]);
            prop_assert_eq!(read.get(name), Some(&expected), "{}", text);
        }
    }

    #[test]
    fn gcfg_error_never_shows_a_value(text in any::<String>(), secret in "[a-zA-Z0-9]{12,20}") {
        for broken in [format!("[a]\nb = \"{secret}\n"), format!("[a]\nb = {secret}\\x\n"), format!("[a]\n{text}\nb = \"{secret}")] {
            if let Err(problem) = gcfg::parse(&broken) {
                prop_assert!(!problem.message.contains(&secret), "{}", problem.message);
            }
        }
    }
}

/// Whether the values are the same, where a plain scalar (`0x1f`, `1_0`, `~`) may be text to one and a number or nothing to the other.
fn same_but_for_plain_scalars(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| same_but_for_plain_scalars(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| {
                    other
                        .get(key)
                        .is_some_and(|other| same_but_for_plain_scalars(one, other))
                })
        }
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        _ => true,
    }
}
