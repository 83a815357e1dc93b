//! Challenges of `WWW-Authenticate` (RFC 9110, 11.6.1), as registries send them.

use std::collections::BTreeMap;

/// Longest header that is read, in bytes.
const LONGEST: usize = 8 << 10;

/// Authentication challenge of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User and password with each request.
    Basic,
    /// A token, which this URL gives out.
    Bearer {
        /// The URL.
        realm: String,
        /// For whom the token is.
        service: Option<String>,
        /// What it allows.
        scope: Option<String>,
    },
}

/// The challenge that is answered: `Bearer` where it is among them, else `Basic`. `headers` are the values of all headers of that name.
pub fn choose<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let all: Vec<(String, BTreeMap<String, String>)> = headers.into_iter().flat_map(read).collect();
    let find = |name: &str| all.iter().find(|(scheme, _)| scheme == name);
    let bearer = find("bearer").and_then(|(_, parameters)| {
        let get = |name: &str| parameters.get(name).filter(|value| !value.is_empty()).cloned();
        Some(Challenge::Bearer {
            realm: get("realm")?,
            service: get("service"),
            scope: get("scope"),
        })
    });
    bearer.or_else(|| find("basic").map(|_| Challenge::Basic))
}

/// All challenges of one header: schemes and parameters, names in lower case.
fn read(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let mut rest = header.get(..LONGEST).unwrap_or(header);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let length = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        if word.is_empty() {
            return found;
        }
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        match (value, found.last_mut()) {
            (Some(value), Some((_, parameters))) => {
                let (value, after) = value_of(value.trim_start_matches([' ', '\t']));
                parameters.entry(word.to_ascii_lowercase()).or_insert(value);
                rest = after;
            }
            // A parameter of no scheme.
            (Some(_), None) => return found,
            (None, _) => {
                found.push((word.to_ascii_lowercase(), BTreeMap::new()));
                rest = after;
            }
        }
    }
}

/// A token or a quoted string, and what follows.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let length = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(length);
        return (value.to_owned(), rest);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, letter) in quoted.char_indices() {
        match letter {
            _ if escaped => {
                value.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &quoted[at + 1..]),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.into(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        })
    }

    #[test]
    fn challenges_are_read_in_all_their_forms() {
        let whole = r#"Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:a/b:pull,push""#;
        let expected = bearer(
            "https://auth.example.com/token",
            Some("registry.example.com"),
            Some("repository:a/b:pull,push"),
        );
        assert_eq!(choose([whole]), expected);
        assert_eq!(choose(["Basic realm=\"x\"", whole]), expected);
        assert_eq!(
            choose([format!("Basic realm=\"a, b=\\\"c\\\"\", {whole}").as_str()]),
            expected
        );
        assert_eq!(
            choose(["bearer REALM=https://a , scope=\"\""]),
            bearer("https://a", None, None)
        );
        assert_eq!(choose(["BASIC realm=\"Registry Realm\""]), Some(Challenge::Basic));
        assert_eq!(choose(["Bearer service=\"x\""]), None, "the realm is missing");
        assert_eq!(choose(["Negotiate", ""]), None);
        assert_eq!(
            choose(["Bearer realm=\"https://open"]),
            bearer("https://open", None, None)
        );
    }

    proptest! {
        #[test]
        fn no_header_makes_reading_panic_or_last(text in "[ -~\u{e9}]{0,200}") {
            choose([text.as_str()]);
        }
    }
}
