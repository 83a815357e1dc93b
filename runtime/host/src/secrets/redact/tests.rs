use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::secrets::forms;

thread_local! {
    /// How many pieces were looked up and compared on this thread.
    pub(crate) static COMPARED: Cell<usize> = const { Cell::new(0) };
}

const SECRET: &str = "canary-7391-secret";

fn redactor(secret: &str) -> Redactor {
    Redactor::new([("token", secret.as_bytes())])
}

fn redacted(secret: &str, text: &str) -> String {
    redactor(secret).redact(text.to_owned())
}

#[test]
fn secret_is_hidden_wherever_it_stands() {
    let text = "401: bad header \"Bearer canary-7391-secret\", again canary-7391-secret";
    assert_eq!(
        redacted(SECRET, text),
        "401: bad header \"Bearer [secret token]\", again [secret token]"
    );
    assert_eq!(redacted(SECRET, "nothing to see"), "nothing to see");
}

#[test]
fn beginning_middle_and_end_of_a_secret_are_hidden() {
    for (text, expected) in [
        ("body: canary-7391-s...", "body: [secret token]..."),
        ("canary-7", "[secret token]"),
        ("...ary-7391-sec...", "...[secret token]..."),
        ("...1-secret", "...[secret token]"),
        ("a canary sings", "a canary sings"),
        ("canary-7391-secretcanary-7391-secret", "[secret token]"),
    ] {
        assert_eq!(redacted(SECRET, text), expected, "{text}");
    }
}

#[test]
fn single_lines_of_a_key_are_hidden_and_its_frame_is_not() {
    let pem = "-----BEGIN PRIVATE KEY-----\nMIIcanary0123456789\nAAAAcanary9876543210\n-----END PRIVATE KEY-----\n";
    for (text, expected) in [
        (
            "-----BEGIN PRIVATE KEY-----\\nMIIcanary0123456789\\nAAAAcanary9876543210",
            "-----BEGIN PRIVATE KEY-----\\n[secret token]",
        ),
        (
            "MIIcanary0123456789 | AAAAcanary9876543210",
            "[secret token] | [secret token]",
        ),
        ("MIIcanary0123456789AAAAcanary9876543210", "[secret token]"),
    ] {
        assert_eq!(redacted(pem, text), expected);
    }
    let encoded = redacted(pem, &STANDARD.encode(pem));
    assert!(
        encoded.ends_with("[secret token]") || encoded.contains("[secret token]"),
        "{encoded}"
    );
    assert!(!encoded.contains(&STANDARD.encode("0123456789")[..8]), "{encoded}");
}

#[test]
fn base64_around_a_secret_is_hidden_in_every_alignment() {
    let secret = "canary/quill+1\u{ff}\u{fe}";
    for user in ["", "a", "ab", "abc", "root:"] {
        for end in ["", "x", "xy", "xyz"] {
            let whole = format!("{user}{secret}{end}");
            for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let hidden = redacted(secret, &text);
                assert!(hidden.contains("[secret token]"), "{user} {end}: {text}");
                assert!(hidden.len() < "[secret token]".len() + 16, "{user} {end}: {hidden}");
            }
        }
    }
    // What is left around the secret is less than one byte of it at each side.
    assert_eq!(redacted(SECRET, &STANDARD.encode(SECRET)), "[secret token]");
}

#[test]
fn escaped_and_hexadecimal_secrets_are_hidden() {
    for shown in [
        r#"canary/q<&1\""#,
        r#"canary\/q<&1\""#,
        r#"canary/q\u003c\u00261\""#,
        "canary%2Fq%3C%261%22",
        "canary/q&lt;&amp;1&#34;",
        "63616e6172792f713c263122",
        "63616E6172792F713C263122",
    ] {
        let text = format!("p={shown}!");
        assert_eq!(redacted("canary/q<&1\"", &text), "p=[secret token]!", "{shown}");
    }
}

#[test]
fn short_secrets_and_bytes_that_are_no_text_do_no_harm() {
    assert_eq!(
        redacted("abc", "abc is the alphabet, 616263"),
        "abc is the alphabet, 616263"
    );
    assert_eq!(redacted("hunter2", "hunter2 and hunter3"), "[secret token] and hunter3");
    let redactor = Redactor::new([("key", &[0xff, 0xfe, 1, 2, 3, 4, 5, 6][..])]);
    let encoded = STANDARD.encode([0xff, 0xfe, 1, 2, 3, 4, 5, 6]);
    assert_eq!(redactor.redact(format!("key {encoded}")), "key [secret key]");
    let letters = "\u{e4}\u{f6}\u{fc}\u{df}\u{e4}";
    assert_eq!(redacted(letters, &format!("x {letters}!")), "x [secret token]!");
    assert_eq!(redacted("", "text"), "text");
}

#[test]
fn a_piece_of_two_secrets_counts_for_the_longer() {
    let redactor = Redactor::new([("short", &b"canary-1"[..]), ("long", &b"canary-1-and-more"[..])]);
    assert_eq!(redactor.redact("canary-1-and-more".into()), "[secret long]");
}

#[test]
fn name_with_a_secret_is_unfit_and_one_with_a_word_is_not() {
    let redactor = Redactor::new([("token", SECRET.as_bytes()), ("user", &b"kubernetes"[..])]);
    assert_eq!(redactor.betrayed("sim://canary-7391-secret"), Some("token"));
    assert_eq!(redactor.betrayed(&STANDARD.encode(SECRET)), Some("token"));
    assert_eq!(redactor.betrayed("sim://canary-7"), None);
    assert_eq!(
        redactor.betrayed("kubernetes-worker-1"),
        None,
        "a user name is a secret as well"
    );
}

/// A private key of 4 KiB, made without a key: what counts is the shape.
fn long_key() -> String {
    let line = |at: u32| -> String {
        let noise = (0..12_u32).map(|part| (at * 12 + part).wrapping_mul(0x9e37_79b9).rotate_left(at % 32));
        let bytes: Vec<u8> = noise.flat_map(u32::to_le_bytes).collect();
        STANDARD.encode(bytes)
    };
    let lines: Vec<String> = (0..64).map(line).collect();
    format!("-----BEGIN KEY-----\n{}\n-----END KEY-----\n", lines.join("\n"))
}

#[test]
fn work_is_linear_in_the_text_and_memory_in_the_secrets() {
    let key = long_key();
    let redactor = redactor(&key);
    let pieces: usize = redactor.pieces.iter().map(|(_, pieces)| pieces.numbers.len()).sum();
    assert!(pieces < 16 * key.len(), "{pieces}");
    let fullest = redactor
        .pieces
        .iter()
        .flat_map(|(_, pieces)| pieces.begins.windows(2).map(|two| two[1] - two[0]));
    assert!(fullest.max().unwrap() < 16);
    // The text that cost most: beginnings of the secret all over.
    let nearly: String = key.lines().map(|line| &line[..7]).collect();
    for text in [nearly.repeat(2000), "x".repeat(1 << 20), key.repeat(200)] {
        COMPARED.with(|compared| compared.set(0));
        let length = text.len();
        let clean = redactor.redact(text);
        let compared = COMPARED.with(Cell::get);
        assert!(compared <= 6 * length, "{compared} comparisons for {length} bytes");
        assert!(clean.len() <= 2 * length);
    }
}

/// Some text around and between parts of the secret, as a cloud or a guest may build it.
fn texts_with(secret: String) -> impl Strategy<Value = String> {
    let forms: Vec<String> = forms::of(secret.as_bytes())
        .iter()
        .filter_map(|form| String::from_utf8(form.to_vec()).ok())
        .chain([secret.clone()])
        .collect();
    let part = (
        prop::sample::select(forms),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(form, from, to)| {
            let at = [from, to].map(|index| form.floor_char_boundary(index.index(form.len() + 1)));
            form[at[0].min(at[1])..at[0].max(at[1])].to_owned()
        });
    let piece = prop_oneof![part, "\\PC{0,6}", Just(secret)];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn secrets_and_texts() -> impl Strategy<Value = (String, String)> {
    let secret = prop_oneof!["[a-z0-9/+]{8,40}", "[ -~]{8,24}", "[a-c\n]{8,30}", "\\PC{4,12}"];
    secret.prop_flat_map(|secret| (Just(secret.clone()), texts_with(secret)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_eight_bytes_of_a_secret_survive((secret, text) in secrets_and_texts()) {
        // A mark that looks like no secret here.
        let redactor = Redactor::new([("\u{2588}", secret.as_bytes())]);
        let clean = redactor.redact(text.clone());
        for left in clean.split("[secret \u{2588}]") {
            for form in forms::of(secret.as_bytes()) {
                for piece in form.windows(PIECE) {
                    prop_assert!(!left.as_bytes().windows(PIECE).any(|here| here == piece), "{left:?} of {text:?}");
                }
            }
        }
        // Seven bytes that stayed may look like eight of the secret with a bracket of the mark, which gives nothing away.
        if !secret.contains(['[', ']']) {
            prop_assert_eq!(redactor.redact(clean.clone()), clean, "done twice is done once");
        }
    }

    #[test]
    fn what_has_nothing_of_a_secret_stays(text in "[g-z ]{0,200}") {
        prop_assert_eq!(redacted("0123456789-ABCDEF", &text), text);
    }
}
