//! `{{secret:NAME}}` and its kin in requests: found, and replaced by the secret, escaped for where it stands.
//!
//! The syntax is that of `wit/v0.1/keys.wit`: `{{secret:NAME}}`, `{{secret:NAME|base64}}` (`json`, `form`, `xml`) and
//! `{{basic:USER:PASSWORD}}`, which becomes `Basic ` and the Base64 text of both. What was filled in is never looked at again, so a
//! secret that happens to contain a placeholder stays as it is.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::destination::Destination;
use crate::grants;
use crate::keys::{Keyring, Withheld};

/// How placeholders begin.
const OPENINGS: [&str; 2] = ["{{secret:", "{{basic:"];

/// Length of the longest opening: text that may be cut anywhere has to overlap by one byte less.
pub const LONGEST_OPENING: usize = OPENINGS[0].len();

/// Longest placeholder: two names of 128 bytes and what is around them.
const LONGEST: usize = 300;

/// Bytes that are wiped when dropped.
pub type Filled = Zeroizing<Vec<u8>>;

/// Why a placeholder cannot be filled. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlaceholderError {
    /// It is none of those there are.
    #[error(
        "a placeholder is malformed; write {{{{secret:NAME}}}}, {{{{secret:NAME|base64}}}} (or json, form, xml) or {{{{basic:USER:PASSWORD}}}}"
    )]
    Malformed,
    /// The secret may not be used so.
    #[error(transparent)]
    Withheld(#[from] Withheld),
    /// The secret cannot stand there.
    #[error("secret {name:?} cannot be written {place}: {why}")]
    Unfit {
        /// Which.
        name: String,
        /// Where or how.
        place: &'static str,
        /// Why not.
        why: &'static str,
    },
}

/// Whether a placeholder begins in the text.
pub fn begins_in(text: &[u8]) -> bool {
    find(text).is_some()
}

/// Whether a URL contains one, also percent-encoded.
pub fn in_url(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%7b", "{").replace("%3a", ":");
    begins_in(plain.as_bytes())
}

/// The text with no placeholder in it: a blank between the two braces of each opening. For what a provider is told about the cluster, since
/// whoever may annotate a Service could otherwise have a secret filled in next to the provider's own words and read it in the cloud.
pub fn defused(text: &str) -> String {
    if find(text.as_bytes()).is_none() {
        return text.to_owned();
    }
    OPENINGS.iter().fold(text.to_owned(), |text, opening| {
        text.replace(opening, &format!("{{ {}", &opening[1..]))
    })
}

fn find(text: &[u8]) -> Option<usize> {
    let begins = |at: &usize| {
        OPENINGS
            .iter()
            .any(|opening| text[*at..].starts_with(opening.as_bytes()))
    };
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'{')
        .map(|(at, _)| at)
        .find(begins)
}

/// The text with all placeholders filled; none when there is no placeholder in it.
pub fn fill(text: &[u8], keyring: &Keyring, to: &Destination) -> Result<Option<Filled>, PlaceholderError> {
    let Some(mut next) = find(text) else { return Ok(None) };
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut rest = text;
    loop {
        let (before, placeholder) = rest.split_at(next);
        let inside = &placeholder[2..placeholder.len().min(LONGEST)];
        let end = inside
            .windows(2)
            .position(|two| two == b"}}")
            .ok_or(PlaceholderError::Malformed)?;
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Filled(value(&inside[..end], keyring, to)?));
        rest = &placeholder[2 + end + 2..];
        match find(rest) {
            Some(at) => next = at,
            None => break,
        }
    }
    pieces.push(Piece::Text(rest));
    Ok(Some(join(&pieces)))
}

enum Piece<'a> {
    Text(&'a [u8]),
    Filled(Filled),
}

/// Allocates once: a vector that grows would leave copies of secrets behind.
fn join(pieces: &[Piece<'_>]) -> Filled {
    let bytes = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => text.len(),
        Piece::Filled(filled) => filled.len(),
    };
    let mut joined = Zeroizing::new(Vec::with_capacity(pieces.iter().map(bytes).sum()));
    for piece in pieces {
        match piece {
            Piece::Text(text) => joined.extend_from_slice(text),
            Piece::Filled(filled) => joined.extend_from_slice(filled),
        }
    }
    joined
}

fn value(inside: &[u8], keyring: &Keyring, to: &Destination) -> Result<Filled, PlaceholderError> {
    let inside = std::str::from_utf8(inside).map_err(|_| PlaceholderError::Malformed)?;
    let named = |name: &str| {
        grants::is_secret_name(name)
            .then_some(())
            .ok_or(PlaceholderError::Malformed)
    };
    let (kind, rest) = inside.split_once(':').ok_or(PlaceholderError::Malformed)?;
    if kind == "basic" {
        let (user, password) = rest.split_once(':').ok_or(PlaceholderError::Malformed)?;
        named(user)?;
        named(password)?;
        return basic(
            user,
            keyring.placeholder(user, to)?.expose(),
            keyring.placeholder(password, to)?.expose(),
        );
    }
    let (name, escape) = match rest.split_once('|') {
        None => (rest, Escape::None),
        Some((name, escape)) => (name, Escape::parse(escape).ok_or(PlaceholderError::Malformed)?),
    };
    named(name)?;
    escape.apply(name, keyring.placeholder(name, to)?.expose())
}

/// RFC 7617: the user's name cannot contain a colon.
fn basic(name: &str, user: &[u8], password: &[u8]) -> Result<Filled, PlaceholderError> {
    if user.contains(&b':') {
        let (name, place) = (name.to_owned(), "as the user of HTTP Basic");
        return Err(PlaceholderError::Unfit {
            name,
            place,
            why: "it contains a colon",
        });
    }
    let both = join(&[Piece::Text(user), Piece::Text(b":"), Piece::Text(password)]);
    Ok(join(&[Piece::Text(b"Basic "), Piece::Filled(base64(&both))]))
}

fn base64(bytes: &[u8]) -> Filled {
    Zeroizing::new(STANDARD.encode(bytes).into_bytes())
}

/// For where a secret stands.
#[derive(Clone, Copy)]
enum Escape {
    None,
    Base64,
    Json,
    Form,
    Xml,
}

impl Escape {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "base64" => Some(Self::Base64),
            "json" => Some(Self::Json),
            "form" => Some(Self::Form),
            "xml" => Some(Self::Xml),
            _ => None,
        }
    }

    fn apply(self, name: &str, secret: &[u8]) -> Result<Filled, PlaceholderError> {
        let unfit = |place, why| PlaceholderError::Unfit {
            name: name.to_owned(),
            place,
            why,
        };
        match self {
            Self::None => Ok(Zeroizing::new(secret.to_vec())),
            Self::Base64 => Ok(base64(secret)),
            Self::Form => Ok(escape(secret, form)),
            Self::Json => {
                std::str::from_utf8(secret).map_err(|_| unfit("into JSON", "it is not UTF-8"))?;
                Ok(escape(secret, json))
            }
            Self::Xml => {
                let text = std::str::from_utf8(secret).map_err(|_| unfit("into XML", "it is not UTF-8"))?;
                if text
                    .chars()
                    .any(|c| (c < ' ' && !"\t\n\r".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}'))
                {
                    return Err(unfit("into XML", "it contains characters that XML does not have"));
                }
                Ok(escape(secret, xml))
            }
        }
    }
}

/// Longest escape of one byte: `&quot;` and `\u001f`.
const LONGEST_ESCAPE: usize = 6;

fn escape(secret: &[u8], one: fn(u8, &mut Vec<u8>)) -> Filled {
    let mut escaped = Zeroizing::new(Vec::with_capacity(secret.len() * LONGEST_ESCAPE));
    secret.iter().for_each(|byte| one(*byte, &mut escaped));
    escaped
}

/// The secret as it stands in JSON, a form and XML, where that is another text than the secret itself.
pub(crate) fn escaped_forms(secret: &str) -> impl Iterator<Item = Zeroizing<String>> {
    [json, form, xml].into_iter().filter_map(move |one| {
        let escaped = escape(secret.as_bytes(), one);
        let text = std::str::from_utf8(&escaped).ok()?;
        (text != secret).then(|| Zeroizing::new(text.to_owned()))
    })
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// RFC 8259, section 7: the inside of a string.
fn json(byte: u8, out: &mut Vec<u8>) {
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
#[path = "placeholders_tests.rs"]
mod tests;
