//! URLs, as far as API calls need them: taking one apart, and percent-encoding.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlParts<'a> {
    pub(crate) scheme: &'a str,
    /// Host and port.
    pub(crate) authority: &'a str,
    /// Path and query; may be empty.
    pub(crate) path: &'a str,
}

/// Takes an `http` or `https` URL apart; none when it is none.
pub(crate) fn split_url(url: &str) -> Option<UrlParts<'_>> {
    let (scheme, rest) = match url.strip_prefix("https://") {
        Some(rest) => ("https", rest),
        None => ("http", url.strip_prefix("http://")?),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let path = path.split('#').next().unwrap_or_default();
    let plain = !authority.is_empty() && authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@');
    plain.then_some(UrlParts {
        scheme,
        authority,
        path,
    })
}

/// Whether the text can be the base of API calls: an `http` or `https` URL with a host and without a query.
pub fn is_url(text: &str) -> bool {
    split_url(text).is_some_and(|parts| !parts.path.contains('?'))
}

/// Host and port of a URL, as in a `Host` header, and what follows; empty when it is none.
pub fn host_and_path(url: &str) -> (&str, &str) {
    split_url(url).map_or(("", ""), |parts| (parts.authority, parts.path))
}

/// Percent-encodes everything but the unreserved characters of RFC 3986.
pub fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

pub(crate) fn encode_into(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, ENCODED));
}

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parts = |url| split_url(url).map(|parts| (parts.scheme, parts.authority, parts.path));
        assert_eq!(parts("https://a.b:8443/c?d=e#f"), Some(("https", "a.b:8443", "/c?d=e")));
        assert_eq!(parts("http://[::1]:80"), Some(("http", "[::1]:80", "")));
        assert_eq!(parts("https://a?b"), Some(("https", "a", "?b")));
        for wrong in [
            "",
            "a.b",
            "ftp://a",
            "https://",
            "https:///c",
            "https://user@a",
            "https://a b/",
            "https://\u{e9}.test/",
        ] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_base_url_has_a_host_and_no_query() {
        assert!(is_url("https://sim.test/api") && is_url("http://127.0.0.1:80"));
        assert!(!is_url("sim.test") && !is_url("https://sim.test?x=1"));
        assert_eq!(host_and_path("https://a.b:8443/c"), ("a.b:8443", "/c"));
        assert_eq!(host_and_path("a.b"), ("", ""));
    }

    #[test]
    fn everything_but_unreserved_characters_is_encoded() {
        assert_eq!(percent_encode("a-b.c_d~9 /?&=\u{e9}"), "a-b.c_d~9%20%2F%3F%26%3D%C3%A9");
    }
}
