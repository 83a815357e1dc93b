//! Headers in which a front proxy names the user it speaks for.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName};

use crate::flags::groups::delegation::AuthenticationArgs;
use crate::flags::values::go::entries;
use crate::serving::access::user::User;

/// What the front proxy may say, and in which headers. Names are compared without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// Common names of the proxy; empty: any.
    pub allowed_names: Vec<String>,
    /// Headers with the name.
    pub username: Vec<String>,
    /// Headers with groups.
    pub group: Vec<String>,
    /// Headers with the id.
    pub uid: Vec<String>,
    /// Beginnings of headers with further facts.
    pub extra_prefix: Vec<String>,
}

impl ProxyHeaders {
    /// As the flags say.
    pub fn of(args: &AuthenticationArgs) -> Self {
        Self {
            allowed_names: entries(&args.requestheader_allowed_names),
            username: entries(&args.requestheader_username_headers),
            group: entries(&args.requestheader_group_headers),
            uid: entries(&args.requestheader_uid_headers),
            extra_prefix: entries(&args.requestheader_extra_headers_prefix),
        }
    }

    /// The user of the headers, which are removed from the request, so that no later handler trusts them.
    pub fn take(&self, headers: &mut HeaderMap) -> Option<User> {
        let user = self.user(headers);
        let ours: Vec<HeaderName> = headers.keys().filter(|name| self.is_one(name)).cloned().collect();
        for name in ours {
            headers.remove(name);
        }
        user
    }

    fn is_one(&self, header: &HeaderName) -> bool {
        let mut whole = self.username.iter().chain(&self.group).chain(&self.uid);
        whole.any(|name| name.eq_ignore_ascii_case(header.as_str())) || self.fact(header).is_some()
    }

    /// The key of a further fact.
    fn fact<'a>(&self, header: &'a HeaderName) -> Option<&'a str> {
        self.extra_prefix
            .iter()
            .find_map(|prefix| header.as_str().strip_prefix(&prefix.to_ascii_lowercase()))
    }

    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let all = |names: &[String]| -> Vec<String> {
            let values = names
                .iter()
                .flat_map(|name| headers.get_all(name.to_ascii_lowercase()).iter());
            values
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect()
        };
        let name = all(&self.username).into_iter().find(|name| !name.is_empty())?;
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (header, value) in headers {
            if let (Some(fact), Ok(value)) = (self.fact(header), value.to_str()) {
                extra.entry(decoded(fact)).or_default().push(value.to_owned());
            }
        }
        Some(User {
            name,
            uid: all(&self.uid).into_iter().next().unwrap_or_default(),
            groups: all(&self.group),
            extra,
        })
    }
}

/// Percent signs in the key of a fact, as the API server writes them; what is no such sign stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let hex = more
            .get(..2)
            .filter(|hex| *first == b'%' && hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        authentication: AuthenticationArgs,
    }

    /// The headers that are read unless flags say otherwise.
    fn by_default() -> ProxyHeaders {
        ProxyHeaders::of(&Flags::parse_from(["cloudwit"]).authentication)
    }

    #[test]
    fn proxy_reports_name_groups_and_facts_and_none_of_it_is_left() {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", "ann".parse().unwrap());
        headers.append("x-remote-group", "a".parse().unwrap());
        headers.append("x-remote-group", "b".parse().unwrap());
        headers.insert("x-remote-extra-example.com%2fproject", "p".parse().unwrap());
        headers.insert("accept", "text/plain".parse().unwrap());
        let user = by_default().take(&mut headers).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("ann", vec!["a".to_owned(), "b".into()])
        );
        assert_eq!(user.extra["example.com/project"], ["p"]);
        assert_eq!(headers.len(), 1, "{headers:?}");
    }

    #[test]
    fn who_has_no_name_is_anonymous() {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", "".parse().unwrap());
        headers.insert("x-remote-group", "system:masters".parse().unwrap());
        let user = by_default().take(&mut headers);
        assert_eq!((user, headers.len()), (None, 0));
    }

    #[test]
    fn only_whole_percent_signs_are_decoded() {
        for (text, plain) in [("a%2Fb", "a/b"), ("a%+1", "a%+1"), ("a%2", "a%2"), ("%ff", "%ff")] {
            assert_eq!(decoded(text), plain);
        }
    }

    /// Names of headers: any, and those that count, in any case.
    fn names() -> impl proptest::strategy::Strategy<Value = String> {
        proptest::prop_oneof![
            "[a-zA-Z0-9%!#$&'*+.^_|~-]{1,40}",
            "(?i)x-remote-(user|group|uid)",
            "(?i)x-remote-extra-[a-z0-9%.]{0,20}",
        ]
    }

    proptest::proptest! {
        #[test]
        fn whatever_headers_come_none_that_counts_is_left(
            sent in proptest::collection::vec((names(), "[ -~\\x80-\\xff]{0,60}"), 0..60),
        ) {
            let mut headers = HeaderMap::new();
            let mut bytes = 0;
            for (name, value) in &sent {
                let value = axum::http::HeaderValue::from_bytes(value.as_bytes());
                if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value) {
                    bytes += name.as_str().len() + value.len();
                    headers.append(name, value);
                }
            }
            let allowed = by_default();
            let user = allowed.take(&mut headers);
            for name in headers.keys() {
                let name = name.as_str();
                proptest::prop_assert!(!matches!(name, "x-remote-user" | "x-remote-group"));
                proptest::prop_assert!(!name.starts_with("x-remote-extra-"), "{name}");
            }
            if let Some(user) = user {
                let extra = user.extra.iter().map(|(key, values)| key.len() + values.iter().map(String::len).sum::<usize>());
                let kept = user.name.len() + user.groups.iter().map(String::len).sum::<usize>() + extra.sum::<usize>();
                proptest::prop_assert!(!user.name.is_empty() && kept <= bytes, "{kept} of {bytes}");
            }
        }

        #[test]
        fn a_decoded_key_is_never_longer(text in "\\PC{0,200}") {
            proptest::prop_assert!(decoded(&text).len() <= text.len());
        }

        #[test]
        fn an_encoded_key_is_decoded(text in "\\PC{0,60}") {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
            proptest::prop_assert_eq!(decoded(&encoded), text);
        }
    }
}
