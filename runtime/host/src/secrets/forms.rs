//! Forms in which a secret may show up in a text: plain, escaped, encoded.
//!
//! `redact` hides each piece of eight bytes of each form, so forms that differ in some places only cost no more than these places.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use data_encoding::{HEXLOWER, HEXUPPER};
use zeroize::Zeroizing;

use crate::secrets::encoding::escaped_forms;

/// Shorter texts are not taken for secrets: they would turn ordinary words into marks.
pub(crate) const SHORTEST: usize = 6;

/// Of longer secrets only so much is hidden, which bounds the memory: a hundred bytes for each byte of a secret. The largest private keys have 4 KiB.
const LONGEST: usize = 16 << 10;

/// One way to write a secret. Wiped when dropped.
pub(crate) type Form = Zeroizing<Vec<u8>>;

/// All forms of the secret. The frame of a PEM file (`-----BEGIN ...`), the same for all of them, is part of none.
pub(crate) fn of(secret: &[u8]) -> Vec<Form> {
    let mut forms = Vec::new();
    for part in parts(&secret[..secret.len().min(LONGEST)]) {
        forms.push(Zeroizing::new(part.to_vec()));
        // Short lines are hidden whole; of longer ones the parts are in the form above.
        let lines = part.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        forms.extend(lines.map(|line| Zeroizing::new(line.to_vec())));
        if let Ok(text) = std::str::from_utf8(part) {
            forms.extend(escaped_forms(text).map(|form| Zeroizing::new(form.as_bytes().to_vec())));
            forms.extend(json_forms(text));
            forms.extend(xml_forms(text));
        }
        forms.extend(percent_forms(part));
        forms.extend(base64_forms(part));
        forms.push(Zeroizing::new(HEXLOWER.encode(part).into_bytes()));
        forms.push(Zeroizing::new(HEXUPPER.encode(part).into_bytes()));
    }
    forms
}

/// What lies between the lines of a PEM frame, without the blanks around it: one part for most secrets.
fn parts(secret: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = secret.split_inclusive(|byte| *byte == b'\n');
    let mut ends = lines.scan(0, |end, line| {
        *end += line.len();
        Some((line.trim_ascii().starts_with(b"-----"), *end - line.len(), *end))
    });
    let mut parts = Vec::new();
    let mut begin = 0;
    for (is_frame, from, to) in ends.by_ref() {
        if is_frame {
            parts.push(&secret[begin..from]);
            begin = to;
        }
    }
    parts.push(&secret[begin..]);
    parts
        .into_iter()
        .map(<[u8]>::trim_ascii)
        .filter(|part| part.len() >= SHORTEST)
}

/// The inside of a JSON string as RFC 8259 requires it, and with what Go (`\u0026`), PHP (`\/`, `\u00e4`), Python and .NET escape beside it.
fn json_forms(text: &str) -> impl Iterator<Item = Form> {
    (0..16_u8).map(move |style| {
        let [slash, html, ascii, upper] = [1, 2, 4, 8].map(|bit| style & bit != 0);
        let mut form = Zeroizing::new(Vec::with_capacity(text.len() * 6));
        for letter in text.chars() {
            let short = match letter {
                '"' | '\\' => Some(letter),
                '/' if slash => Some(letter),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            let by_code = letter < ' ' || (html && "<>&'".contains(letter)) || (ascii && !letter.is_ascii());
            match short {
                Some(short) => form.extend([b'\\', short as u8]),
                None if by_code => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                    let code = if upper {
                        format!("\\u{unit:04X}")
                    } else {
                        format!("\\u{unit:04x}")
                    };
                    form.extend(code.bytes());
                }),
                None => form.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        form
    })
}

/// In text and in attributes: only what has to be escaped, and as Go (`&#34;`, `&#xA;`), Python (`&#x27;`) and others write quotes.
fn xml_forms(text: &str) -> impl Iterator<Item = Form> {
    const QUOTES: [(&str, &str, &str); 5] = [
        ("\"", "'", "\n"),
        ("&quot;", "&#39;", "\n"),
        ("&quot;", "&apos;", "\n"),
        ("&quot;", "&#x27;", "\n"),
        ("&#34;", "&#39;", "&#xA;"),
    ];
    QUOTES.into_iter().map(move |(double, single, line_end)| {
        let mut form = Zeroizing::new(Vec::with_capacity(text.len() * 6));
        let mut plain = [0; 4];
        for letter in text.chars() {
            let escaped = match letter {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => double,
                '\'' => single,
                '\n' => line_end,
                _ => letter.encode_utf8(&mut plain),
            };
            form.extend(escaped.bytes());
        }
        form
    })
}

/// In URLs and forms: RFC 3986, the form encoding of browsers, and what JavaScript leaves; digits of either case, a blank as `+` or `%20`.
fn percent_forms(secret: &[u8]) -> impl Iterator<Item = Form> {
    const KEPT: [&[u8]; 4] = [b"-._~", b"*-._", b"-._~!*'()", b"-._~!*'()/$&+,;=:@"];
    let styles = KEPT
        .into_iter()
        .flat_map(|kept| (0..4_u8).map(move |style| (kept, style & 1 != 0, style & 2 != 0)));
    styles.map(move |(kept, plus, upper)| {
        let mut form = Zeroizing::new(Vec::with_capacity(secret.len() * 3));
        for byte in secret {
            match byte {
                _ if byte.is_ascii_alphanumeric() || kept.contains(byte) => form.push(*byte),
                b' ' if plus => form.push(b'+'),
                _ if upper => form.extend(format!("%{byte:02X}").bytes()),
                _ => form.extend(format!("%{byte:02x}").bytes()),
            }
        }
        form
    })
}

/// Base64 in both alphabets, alone or inside the Base64 of a longer text such as `user:password`: with 0, 1 or 2 bytes before it (modulo 3), from the
/// first letter that depends on the secret alone to its end, padding included.
fn base64_forms(secret: &[u8]) -> impl Iterator<Item = Form> {
    let alphabets = [&STANDARD, &URL_SAFE];
    let styles = alphabets
        .into_iter()
        .flat_map(|alphabet| (0..3).map(move |before| (alphabet, before)));
    styles.map(move |(alphabet, before)| {
        let padded = Zeroizing::new([&[0_u8; 2][..before], secret].concat());
        let encoded = Zeroizing::new(alphabet.encode(&*padded).into_bytes());
        // Six bits a letter: the first letters hold bits of what stands before.
        Zeroizing::new(encoded[(before * 8).div_ceil(6)..].to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(secret: &str, form: &str) -> bool {
        of(secret.as_bytes())
            .iter()
            .any(|one| one.as_slice() == form.as_bytes())
    }

    #[test]
    fn json_of_go_php_and_python_is_known() {
        for form in [
            "a/b<c>&\u{e4}\\\"d",
            r#"a/b\u003cc\u003e\u0026ä\"d"#,
            r#"a\/b<c>&\u00e4\"d"#,
            r#"a/b\u003Cc\u003E\u0026\u00E4\"d"#,
        ] {
            assert!(has("a/b<c>&\u{e4}\"d", form), "{form}");
        }
        assert!(has("secret\nb", r"secret\nb") && has("secret\u{1f600}", r"secret\ud83d\ude00"));
    }

    #[test]
    fn urls_forms_and_xml_are_known() {
        for form in [
            "a%20bb%2Fc%26",
            "a+bb%2fc%26",
            "a+bb%2Fc%26",
            "a%20bb/c&",
            "a bb/c&amp;",
        ] {
            assert!(has("a bb/c&", form), "{form}");
        }
        for form in ["&quot;&#39;text", "&#34;&#39;text", "&quot;&#x27;text", "\"'text"] {
            assert!(has("\"'text", form), "{form}");
        }
    }

    #[test]
    fn base64_and_hex_are_known_to_their_ends() {
        assert!(
            has("\u{fe}\u{ff}secret", "w77Dv3NlY3JldA=="),
            "{}",
            STANDARD.encode("\u{fe}\u{ff}secret")
        );
        assert!(has("secret???", "c2VjcmV0Pz8_") && has("secret???", "c2VjcmV0Pz8/"));
        for (text, part) in [
            ("secret", "c2VjcmV0"),
            ("u:secret", "zZWNyZXQ="),
            ("u::-secret", "NlY3JldA=="),
        ] {
            assert!(STANDARD.encode(text).ends_with(part) && has("secret", part), "{text}");
        }
        assert!(has("secret", "736563726574") && has("\u{ff}text", "C3BF74657874"));
    }

    #[test]
    fn the_frame_of_a_pem_file_is_part_of_no_form() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMIIcanary\nAAAA\n-----END PRIVATE KEY-----\nend\n";
        let found: Vec<_> = parts(pem.as_bytes()).collect();
        assert_eq!(found, [&b"MIIcanary\nAAAA"[..]]);
        assert_eq!(parts(b" plain text \n").collect::<Vec<_>>(), [b"plain text"]);
    }
}
