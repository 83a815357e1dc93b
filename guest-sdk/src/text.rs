//! Looking for a text within another in little code: a plain walk, which is enough for what a cloud says in a line.
//!
//! The standard library's search is fast in long texts; with the panics of cutting a text in the middle of a letter it comes to 8 KB of component,
//! once. Nothing here panics.

use crate::without_std::prelude::*;

/// Where `part`, which is not empty, begins within the text.
pub fn find(text: &str, part: &str) -> Option<usize> {
    let mut places = text.as_bytes().windows(part.len().max(1));
    places.position(|place| place == part.as_bytes())
}

/// What is before the first `part`, which is not empty, and what is behind it.
///
/// ```
/// use cloudwit_guest_sdk::text::split_once;
///
/// assert_eq!(split_once("https://a://b", "://"), Some(("https", "a://b")));
/// assert_eq!(split_once("a:/b", "://"), None);
/// ```
pub fn split_once<'a>(text: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let at = find(text, part)?;
    Some((text.get(..at)?, text.get(at + part.len()..)?))
}

/// The text with every `part`, which is not empty, replaced.
pub fn replaced(text: &str, part: &str, with: &str) -> String {
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = split_once(rest, part) {
        whole.push_str(before);
        whole.push_str(with);
        rest = behind;
    }
    whole.push_str(rest);
    whole
}

/// Both sides of this place, in bytes; all and nothing if there is no such place.
pub fn split_at(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// The text in quotes; quotes and control characters within are escaped as in Rust.
pub fn quoted(text: &str) -> String {
    let mut whole = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\n' => whole.push_str("\\n"),
            '\r' => whole.push_str("\\r"),
            '\t' => whole.push_str("\\t"),
            '"' | '\\' => whole.extend(['\\', letter]),
            letter if letter.is_ascii_control() => whole.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
            letter => whole.push(letter),
        }
    }
    whole.push('"');
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_as_by_the_standard_library() {
        for text in ["", "a", "ab", "aab", "abab", "üaüb", "UDP", "TCP_UDP"] {
            for part in ["a", "ab", "b", "ü", "üb", "UDP", "abcdefghij"] {
                assert_eq!(find(text, part), text.find(part), "{part} in {text}");
                assert_eq!(split_once(text, part), text.split_once(part), "{text} at {part}");
                assert_eq!(replaced(text, part, "-"), text.replace(part, "-"), "{part} in {text}");
            }
        }
    }

    #[test]
    fn quoted_text_is_one_line_with_an_end_that_can_be_seen() {
        for text in [
            "",
            "plain",
            "a \"b\" c",
            "c:\\d",
            "two\nlines\t",
            "\u{1b}[31m\u{0}",
            "zürich",
        ] {
            assert_eq!(quoted(text), format!("{text:?}").replace("\\0", "\\u{0}"));
        }
    }

    #[test]
    fn no_place_to_cut_panics() {
        assert_eq!(split_at("aü", 1), ("a", "ü"));
        assert_eq!(split_at("aü", 3), ("aü", ""));
        assert_eq!(split_at("aü", 2), ("aü", ""), "within a letter");
        assert_eq!(split_at("aü", 9), ("aü", ""));
    }
}
