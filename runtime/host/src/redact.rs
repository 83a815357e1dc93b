//! Takes secrets out of the texts of a provider: its failures, faults, log lines, Events and complaints about its configuration.
//!
//! A guest never holds a secret (see `keys`), but a cloud may send one back in an error page, and one granted for `reveal` may be put into a
//! message by mistake. Every such text ends up in a log, an Event or an explanation, so it passes here first. What is looked for: the secret as
//! it is, each line of one with several, and both in Base64; also the beginning of it, since quotes are cut anywhere.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::Zeroizing;

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
    pub fn redact(&self, mut text: String) -> String {
        for (secret, mark) in &self.0 {
            if let Some(hidden) = hide(&text, secret, mark) {
                text = hidden;
            }
        }
        text
    }
}

/// How a secret may appear in a text.
fn forms(secret: &[u8]) -> Vec<Zeroizing<String>> {
    let mut forms = vec![
        Zeroizing::new(STANDARD.encode(secret)),
        Zeroizing::new(STANDARD_NO_PAD.encode(secret)),
    ];
    if let Ok(text) = std::str::from_utf8(secret) {
        forms.push(Zeroizing::new(text.trim().to_owned()));
        // The frame of a PEM file is the same for all of them.
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        forms.extend(lines.map(|line| Zeroizing::new(line.to_owned())));
    }
    forms.retain(|form| form.len() >= SHORTEST && !form.starts_with("-----"));
    forms
}

/// The text with each occurrence of the secret, or of a beginning of it, replaced; none when there is none.
fn hide(text: &str, secret: &str, mark: &str) -> Option<String> {
    let beginning = &secret[..secret.floor_char_boundary(BEGINNING.min(secret.len()))];
    let mut rest = text;
    let mut clean: Option<String> = None;
    while let Some(at) = rest.find(beginning) {
        let found = &rest[at..];
        let same = found.chars().zip(secret.chars()).take_while(|(a, b)| a == b);
        let length: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
        let clean = clean.get_or_insert_default();
        clean.push_str(&rest[..at]);
        clean.push_str(mark);
        rest = &found[length..];
    }
    clean.map(|clean| clean + rest)
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
