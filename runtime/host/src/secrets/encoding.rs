//! Encodings of a secret in a request: plain, Base64, or escaped for JSON, forms, XML.
//!
//! Pure. Lengths are counted before anything is written, so that the text a secret goes into is allocated once, at its exact size: a
//! vector that grows would leave copies of secrets behind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// How a secret is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// Base64 with padding (RFC 4648, section 4).
    Base64,
    /// For the inside of a JSON string.
    Json,
    /// For a value of `application/x-www-form-urlencoded`.
    Form,
    /// For XML text and attributes.
    Xml,
}

impl Encoding {
    /// Where and why this secret cannot be written so; none when it can.
    pub(crate) fn unfit(self, secret: &[u8]) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Plain | Self::Base64 | Self::Form => None,
            Self::Json => std::str::from_utf8(secret)
                .is_err()
                .then_some(("into JSON", "it is not UTF-8")),
            Self::Xml => match std::str::from_utf8(secret) {
                Err(_) => Some(("into XML", "it is not UTF-8")),
                Ok(text) => text
                    .chars()
                    .any(|c| (c < ' ' && !"\t\n\r".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}'))
                    .then_some(("into XML", "it contains characters that XML does not have")),
            },
        }
    }

    /// How many bytes [`write`](Self::write) adds.
    pub(crate) fn length(self, secret: &[u8]) -> usize {
        match self {
            Self::Plain => secret.len(),
            Self::Base64 => base64_length(secret.len()),
            Self::Json => escaped_length(secret, json),
            Self::Form => escaped_length(secret, form),
            Self::Xml => escaped_length(secret, xml),
        }
    }

    /// Adds the secret to the text.
    pub(crate) fn write(self, secret: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(secret),
            Self::Base64 => write_base64(secret, out),
            Self::Json => secret.iter().for_each(|byte| json(*byte, out)),
            Self::Form => secret.iter().for_each(|byte| form(*byte, out)),
            Self::Xml => secret.iter().for_each(|byte| xml(*byte, out)),
        }
    }
}

/// How the value of HTTP Basic begins.
const BASIC: &[u8] = b"Basic ";

/// How many bytes [`write_basic`] adds.
pub(crate) fn basic_length(user: &[u8], password: &[u8]) -> usize {
    BASIC.len() + base64_length(user.len() + 1 + password.len())
}

/// Adds the value of the header of RFC 7617. The user cannot contain a colon: see [`unfit_user`].
pub(crate) fn write_basic(user: &[u8], password: &[u8], out: &mut Vec<u8>) {
    let mut both = Zeroizing::new(Vec::with_capacity(user.len() + 1 + password.len()));
    both.extend_from_slice(user);
    both.push(b':');
    both.extend_from_slice(password);
    out.extend_from_slice(BASIC);
    write_base64(&both, out);
}

/// Where and why this secret cannot be the user of HTTP Basic (RFC 7617, section 2); none when it can.
pub(crate) fn unfit_user(user: &[u8]) -> Option<(&'static str, &'static str)> {
    user.contains(&b':')
        .then_some(("as the user of HTTP Basic", "it contains a colon"))
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + base64_length(bytes.len()), 0);
    STANDARD
        .encode_slice(bytes, &mut out[at..])
        .expect("the slice is as long as the Base64 text");
}

/// Longest escape of one byte: `&quot;` and `\u001f`.
const LONGEST_ESCAPE: usize = 6;

/// Adds one byte, escaped.
type Escape = fn(u8, &mut Vec<u8>);

fn escaped_length(secret: &[u8], one: Escape) -> usize {
    let mut escaped = Zeroizing::new(Vec::with_capacity(LONGEST_ESCAPE));
    let length = |byte: &u8| {
        escaped.clear();
        one(*byte, &mut escaped);
        escaped.len()
    };
    secret.iter().map(length).sum()
}

/// The secret as it stands in JSON, a form and XML, where that is another text than the secret itself.
pub(crate) fn escaped_forms(secret: &str) -> impl Iterator<Item = Zeroizing<String>> {
    let escapes: [Escape; 3] = [json, form, xml];
    escapes.into_iter().filter_map(move |one| {
        let mut escaped = Zeroizing::new(Vec::with_capacity(escaped_length(secret.as_bytes(), one)));
        secret.bytes().for_each(|byte| one(byte, &mut escaped));
        let text = std::str::from_utf8(&escaped).ok()?;
        (text != secret).then(|| Zeroizing::new(text.to_owned()))
    })
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// RFC 8259, section 7: the inside of a string.
pub(super) fn json(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend([b'\\', byte]),
        0..0x20 => {
            out.extend(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        _ => out.push(byte),
    }
}

/// `application/x-www-form-urlencoded`, everything but RFC 3986's unreserved characters encoded.
fn form(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(byte);
    } else {
        out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// Good for text and for attributes in either kind of quotes.
fn xml(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'&' => out.extend(b"&amp;"),
        b'<' => out.extend(b"&lt;"),
        b'>' => out.extend(b"&gt;"),
        b'"' => out.extend(b"&quot;"),
        b'\'' => out.extend(b"&#39;"),
        b'\t' => out.extend(b"&#9;"),
        b'\n' => out.extend(b"&#10;"),
        b'\r' => out.extend(b"&#13;"),
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests;
