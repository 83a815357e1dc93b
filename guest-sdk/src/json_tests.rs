//! The parser against serde_json.

use super::*;

/// The same with serde_json, to compare with.
fn by_serde(value: &Json<'_>) -> serde_json::Value {
    match value {
        Json::Null => serde_json::Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(text) => serde_json::from_str(text).unwrap(),
        Json::Text(text) => text.as_ref().into(),
        Json::List(items) | Json::Repeated(items) => items.iter().map(by_serde).collect::<Vec<_>>().into(),
        Json::Object(entries) => serde_json::Value::Object(
            entries
                .iter()
                .map(|(key, value)| (key.to_string(), by_serde(value)))
                .collect(),
        ),
    }
}

#[test]
fn what_serde_json_reads_is_read_alike() {
    for text in [
        "null",
        " true ",
        "[]",
        "{ }",
        "[1, -0, 0.5, 1e3, -1.25E-7, 18446744073709551615]",
        r#"{"a": {"b": [false, null, "x"]}, "ü": "\u00fc\n\t\"\\\/\b\f\r", "": "😀 \ud83d\ude00"}"#,
        r#"{"twice": 1, "twice": 2}"#,
    ] {
        let expected: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(by_serde(&Json::parse(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn what_serde_json_refuses_is_refused() {
    for text in [
        "",
        "nul",
        "tru",
        "[1,]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\" 1}",
        "{a: 1}",
        "{\"a\": 1,}",
        "01",
        "1.",
        ".5",
        "-",
        "1e",
        "+1",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud83d\"",
        "\"\\udc00\"",
        "\"\n\"",
        "1 2",
        "[",
        "{",
        "nan",
        "\"a\\",
    ] {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
        assert!(Json::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_mistake_is_named_with_its_place() {
    assert_eq!(
        Json::parse("{\n  \"a\" 1}").unwrap_err(),
        "a colon is expected at line 2, column 7"
    );
    assert_eq!(
        Json::parse("[1] x").unwrap_err(),
        "the end is expected at line 1, column 5"
    );
}

#[test]
fn depth_is_bounded() {
    let deep = "[".repeat(100_000);
    assert!(Json::parse(&deep).unwrap_err().contains("deep"));
    let fine = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert!(Json::parse(&fine).is_ok());
}

#[test]
fn no_text_makes_it_panic() {
    // Every prefix and every single-byte change of a text that uses the whole grammar.
    let text = r#"{"a":[1.5e-3,true,null,"é\u00e9\ud83d\ude00\n"],"b":{}}"#;
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        assert!(Json::parse(&text[..end]).is_err(), "{end}");
    }
    for place in 0..text.len() {
        for byte in [b'"', b'\\', b'{', b']', b'u', b'0', b' '] {
            let mut changed = text.as_bytes().to_vec();
            changed[place] = byte;
            if let Ok(changed) = std::str::from_utf8(&changed) {
                assert_eq!(
                    Json::parse(changed).is_ok(),
                    serde_json::from_str::<serde_json::Value>(changed).is_ok(),
                    "{changed}"
                );
            }
        }
    }
}
