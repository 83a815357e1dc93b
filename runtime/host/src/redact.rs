//! Takes secrets out of the texts of a provider: its failures, faults, log lines, Events and complaints about its configuration.
//!
//! A guest never holds a secret (see `keys`), but a cloud may send one back in an error page, and one granted for `reveal` may be put into a
//! message by mistake. Every such text ends up in a log, an Event or an explanation, so it passes here first. What is looked for: the secret as
//! it is, each line of one with several, escaped as in JSON, a form or XML, and in Base64, also as a part of a longer text; also the beginning of it, since quotes are cut anywhere.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::Zeroizing;

use crate::placeholders::escaped_forms;

/// Shorter texts are not taken for secrets: they would turn ordinary words into marks.
const SHORTEST: usize = 6;

/// So many bytes of the beginning of a secret betray it; what follows is hidden as far as it is the secret.
const BEGINNING: usize = 8;

/// What is hidden, and what stands there instead.
pub(crate) struct Redactor(Vec<(Zeroizing<String>, String)>);

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Hides these secrets, given by name and content.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut hidden = Vec::new();
        for (name, secret) in secrets {
            let mark = format!("[secret {name}]");
            for text in forms(secret) {
                hidden.push((text, mark.clone()));
            }
        }
        // The longest first: one secret may contain another.
        hidden.sort_by_key(|(text, _): &(Zeroizing<String>, String)| std::cmp::Reverse(text.len()));
        Self(hidden)
    }

    /// The text without secrets.
    pub fn redact(&self, text: String) -> String {
        let mut rest = text.as_str();
        let mut clean: Option<String> = None;
        while let Some((at, length, mark)) = self.first(rest) {
            let clean = clean.get_or_insert_default();
            clean.push_str(&rest[..at]);
            clean.push_str(mark);
            rest = &rest[at + length..];
        }
        match clean {
            Some(clean) => clean + rest,
            None => text,
        }
    }

    /// Where the first secret begins, how long it is there and what to write instead. Forms may begin alike: the one that goes on longest
    /// counts, so that nothing of it stays.
    fn first(&self, text: &str) -> Option<(usize, usize, &str)> {
        let mut first: Option<(usize, usize, &str)> = None;
        for (secret, mark) in &self.0 {
            let Some(at) = text.find(beginning(secret)) else {
                continue;
            };
            let length = common(&text[at..], secret);
            if first.is_none_or(|(before, longest, _)| at < before || (at == before && length > longest)) {
                first = Some((at, length, mark));
            }
        }
        first
    }
}

/// How a secret may appear in a text.
fn forms(secret: &[u8]) -> Vec<Zeroizing<String>> {
    let mut forms = vec![
        Zeroizing::new(STANDARD.encode(secret)),
        Zeroizing::new(STANDARD_NO_PAD.encode(secret)),
    ];
    forms.extend((0..3).map(|before| inside_base64(secret, before)));
    if let Ok(text) = std::str::from_utf8(secret) {
        let text = text.trim();
        forms.push(Zeroizing::new(text.to_owned()));
        forms.extend(escaped_forms(text));
        // The frame of a PEM file is the same for all of them.
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        forms.extend(lines.map(|line| Zeroizing::new(line.to_owned())));
    }
    forms.retain(|form| form.len() >= SHORTEST && !form.starts_with("-----"));
    forms
}

/// What a secret looks like in the Base64 of a longer text, such as `user:password`, with so many bytes before it (modulo 3): the letters
/// that depend on the secret alone.
fn inside_base64(secret: &[u8], before: usize) -> Zeroizing<String> {
    let padded = Zeroizing::new([&[0_u8; 2][..before], secret].concat());
    let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*padded));
    // Six bits a letter: the first letters hold bits of what stands before, the last one of what follows.
    let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    Zeroizing::new(encoded.get(from..to).unwrap_or_default().to_owned())
}

fn beginning(secret: &str) -> &str {
    &secret[..secret.floor_char_boundary(BEGINNING.min(secret.len()))]
}

/// How many bytes both begin with.
fn common(text: &str, secret: &str) -> usize {
    let same = text.chars().zip(secret.chars()).take_while(|(a, b)| a == b);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(secret: &str, text: &str) -> String {
        Redactor::new([("token", secret.as_bytes())]).redact(text.to_owned())
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_stands_and_as_often() {
        let text = "401: bad header \"Bearer canary-7391-secret\", again canary-7391-secret";
        assert_eq!(
            redacted("canary-7391-secret", text),
            "401: bad header \"Bearer [secret token]\", again [secret token]"
        );
        assert_eq!(redacted("canary-7391-secret", "nothing to see"), "nothing to see");
    }

    #[test]
    fn a_secret_that_was_cut_off_is_hidden_as_far_as_it_goes() {
        assert_eq!(
            redacted("canary-7391-secret", "body: canary-7391-s..."),
            "body: [secret token]..."
        );
        assert_eq!(redacted("canary-7391-secret", "canary-739"), "[secret token]");
        assert_eq!(redacted("canary-7391-secret", "a canary sings"), "a canary sings");
    }

    #[test]
    fn base64_and_single_lines_are_hidden_too() {
        let secret = "user:canary-7391";
        let encoded = STANDARD.encode(secret);
        assert_eq!(redacted(secret, &format!("Basic {encoded}")), "Basic [secret token]");
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIcanary0123456789\nAAAAcanary9876543210\n-----END PRIVATE KEY-----\n";
        assert_eq!(
            redacted(
                pem,
                "-----BEGIN PRIVATE KEY-----\\nMIIcanary0123456789\\nAAAAcanary9876543210"
            ),
            "-----BEGIN PRIVATE KEY-----\\n[secret token]\\n[secret token]"
        );
    }

    #[test]
    fn base64_of_a_text_around_the_secret_is_hidden_wherever_the_secret_begins_in_it() {
        for user in ["", "a", "ab", "abc", "root:"] {
            for end in ["", "x", "xy", "xyz"] {
                let text = STANDARD.encode(format!("{user}canary/quill+1{end}"));
                let hidden = redacted("canary/quill+1", &text);
                assert!(hidden.contains("[secret token]"), "{user} {end}: {text}");
                assert!(hidden.len() < "[secret token]".len() + 16, "{user} {end}: {hidden}");
                let inside = inside_base64(b"canary/quill+1", user.len() % 3);
                assert!(text.contains(&*inside) && !hidden.contains(&inside[..8]), "{hidden}");
            }
        }
    }

    #[test]
    fn what_placeholders_may_make_of_a_secret_is_hidden() {
        for shown in [
            "canary/q&1\"",
            "canary/q&1\\\"",
            "canary%2Fq%261%22",
            "canary/q&amp;1&quot;",
        ] {
            assert_eq!(
                redacted("canary/q&1\"", &format!("p={shown}!")),
                "p=[secret token]!",
                "{shown}"
            );
        }
    }

    #[test]
    fn short_secrets_and_bytes_that_are_no_text_do_no_harm() {
        assert_eq!(redacted("abc", "abc is the alphabet"), "abc is the alphabet");
        let redactor = Redactor::new([("key", &[0xff, 0xfe, 1, 2, 3, 4, 5, 6][..])]);
        let encoded = STANDARD.encode([0xff, 0xfe, 1, 2, 3, 4, 5, 6]);
        assert_eq!(redactor.redact(format!("key {encoded}")), "key [secret key]");
        assert_eq!(
            redacted("\u{e4}\u{f6}\u{fc}\u{df}\u{e4}", "x \u{e4}\u{f6}\u{fc}\u{df}\u{e4}!"),
            "x [secret token]!"
        );
    }

    #[test]
    fn the_longer_of_two_secrets_is_hidden_first() {
        let redactor = Redactor::new([("short", &b"canary-1"[..]), ("long", &b"canary-1-and-more"[..])]);
        assert_eq!(redactor.redact("canary-1-and-more".into()), "[secret long]");
    }
}
