//! What plain YAML becomes; where all of YAML is read too (`yaml.rs`), both agree on every text that this one takes.

use super::*;

fn wrong(text: &str) -> String {
    parse(text).unwrap_err().message
}

/// Texts that are read, with what they are in JSON.
const READ: &[(&str, &str)] = &[
    ("", "null"),
    ("# only a comment\n", "null"),
    ("---\n# a\n\na: 1\n...\n", r#"{"a": 1}"#),
    (
        "a: b # c\nd: e#f\ng:\nh: 'it''s: #1'\n",
        r#"{"a": "b", "d": "e#f", "g": null, "h": "it's: #1"}"#,
    ),
    (
        "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
        r#"{"a": {"b": {"c": 1}, "d": 2}, "e": 3}"#,
    ),
    (
        "a:\n- 1\n- x y\nb:\n  - c: 1\n    d: 2\n  -\n    e: f\n  - - g\n    - h\n",
        r#"{"a": [1, "x y"], "b": [{"c": 1, "d": 2}, {"e": "f"}, ["g", "h"]]}"#,
    ),
    ("- a\n-\n- b\n", r#"["a", null, "b"]"#),
    (
        "a: [1, 'b, c', {d: e}, [],\n  f ] # x\nb: {}\nc: {d: [1], e: }\n",
        r#"{"a": [1, "b, c", {"d": "e"}, [], "f"], "b": {}, "c": {"d": [1], "e": null}}"#,
    ),
    (
        "{\"a\": \"b\\n\\u00e4\", \"c\": [true, null]}",
        r#"{"a": "b\nä", "c": [true, null]}"#,
    ),
    (
        "a: '1'\nb: \"true\"\nc: 1.5e3\nd: 0x10\ne: 1.2.3\nf: ~\n",
        r#"{"a": "1", "b": "true", "c": 1.5e3, "d": "0x10", "e": "1.2.3", "f": null}"#,
    ),
    (
        "a: |\n  one\n   two\n\n  three # no comment\nb: |-\n  x\nc: >\n  one\n  two\n\n  three\nd: >-\n  x\n  y\n",
        r#"{"a": "one\n two\n\nthree # no comment\n", "b": "x", "c": "one two\nthree\n", "d": "x y"}"#,
    ),
    (
        "\"quoted key\": 1\n'another': 2\nhttp://x: 3\n10.0.0.1: 4\n",
        r#"{"quoted key": 1, "another": 2, "http://x": 3, "10.0.0.1": 4}"#,
    ),
    (
        "a: AB:CD:EF\nb: https://x:443/?a=b\nc: -1\nd: a-b\n",
        r#"{"a": "AB:CD:EF", "b": "https://x:443/?a=b", "c": -1, "d": "a-b"}"#,
    ),
    ("a:   \r\n  b: c\r\n", r#"{"a": {"b": "c"}}"#),
    ("a: {b: c,\n    d: [e,\n f]}\n", r#"{"a": {"b": "c", "d": ["e", "f"]}}"#),
];

#[test]
fn configs_become_the_tree_of_the_same_config_in_json() {
    for (yaml, json) in READ {
        assert_eq!(parse(yaml), Ok(Json::parse(json).unwrap()), "{yaml:?}");
    }
}

/// All of YAML takes a text that this takes, and takes it for the same.
#[cfg(feature = "yaml")]
#[test]
fn what_is_read_means_what_it_means_in_yaml() {
    for (yaml, _) in READ {
        assert_eq!(parse(yaml), crate::yaml::parse(yaml), "{yaml:?}");
    }
}

/// Every beginning of every text, every text without one of its lines, and with one more letter anywhere: what means something in YAML means the
/// same here, or is refused.
#[cfg(feature = "yaml")]
#[test]
fn damaged_texts_are_refused_or_mean_what_they_mean_in_yaml() {
    let mut same = 0;
    let mut check = |text: &str| {
        if let (Ok(plain), Ok(whole)) = (parse(text), crate::yaml::parse(text)) {
            assert_eq!(plain, whole, "{text:?}");
            same += 1;
        }
    };
    for (yaml, _) in READ {
        for end in (0..yaml.len()).filter(|end| yaml.is_char_boundary(*end)) {
            check(&yaml[..end]);
        }
        let lines: Vec<&str> = yaml.split_inclusive('\n').collect();
        for left_out in 0..lines.len() {
            let rest: Vec<&str> = lines
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|(_, line)| *line)
                .collect();
            check(&rest.concat());
        }
        for letter in [" ", "\t", ":", "-", "#", "'", "[", "}", ",", "\n"] {
            for at in (0..yaml.len()).filter(|at| yaml.is_char_boundary(*at)) {
                check(&[&yaml[..at], letter, &yaml[at..]].concat());
            }
        }
    }
    assert!(same > 1_000, "{same}");
}

#[test]
fn what_is_not_known_is_said_with_its_place() {
    for (yaml, place, what) in [
        ("a: 1\na: 2\n", "line 2, column 1", "twice"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", "one document"),
        ("a: !!str 1\n", "line 1, column 4", "tags"),
        ("a: &x 1\n", "line 1, column 4", "anchors"),
        ("a: *x\n", "line 1, column 4", "anchors"),
        ("a:\n  <<: {a: 1}\n", "line 2, column 3", "merge keys"),
        ("? a\n: b\n", "line 1", "key"),
        ("a: [1\n", "line 2", "not closed"),
        ("a: 'b\n", "line 1, column 4", "not closed"),
        ("a: b: c\n", "line 1, column 5", "quotes"),
        ("a: b\n  c\n", "line 2, column 3", "goes on"),
        ("a:\n\tb: c\n", "line 2, column 2", "tabs"),
        ("a: \"\\q\"\n", "line 1", "backslash"),
        ("a: 'b' c\n", "line 1", "quotes"),
        ("a\nb: c\n", "line 2", "indented"),
        ("a: {b: 1, b: 2}\n", "line 1", "twice"),
        (&"[".repeat(5000), "line 1", "too deep"),
        (&"- ".repeat(5000), "line 1", "too deep"),
    ] {
        let message = wrong(yaml);
        assert!(message.contains(place) && message.contains(what), "{yaml:?}: {message}");
    }
}

#[test]
fn byte_order_mark_counts_at_the_beginning_only() {
    assert!(parse("\u{feff}a: b").is_ok());
    assert!(wrong("\n\u{feff}a: b").contains("byte order mark"));
}

#[test]
fn nothing_follows_the_end_of_the_document() {
    assert_eq!(parse("a: 1\n...\n# b\n"), parse("a: 1"));
    assert!(wrong("...\na: ").contains("take out what follows ..."));
}

#[test]
fn text_that_begins_like_structure_is_refused() {
    for wrong in ["]", "}", ", a", "a: - b", "a: ]", "[|]", "[a, > b]"] {
        assert!(parse(wrong).is_err(), "{wrong}");
        assert!(crate::yaml::parse(wrong).is_err(), "{wrong}: the large reader takes it");
    }
}
