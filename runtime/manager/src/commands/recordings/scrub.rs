//! Hides what a cloud gives out as secrets: session tokens, keys, passwords. Pure.
//!
//! The host hides the secrets that the operator gave it. What a cloud answers with is found by the name of its header or key, gets a number in the order in which
//! it is seen, and is replaced by it wherever it comes again. So a recording says which token was used where, and the tokens are not in it.

use cloudwit_host::names_a_secret;
use serde_json::Value;

/// Headers whose values are secrets, in lower case.
const HEADERS: [&str; 10] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "vmware-api-session-id",
    "x-amz-security-token",
    "x-auth-token",
    "x-aws-ec2-metadata-token",
    "x-subject-token",
    "x-vault-token",
];

/// Keys of JSON and names of XML elements whose texts are secrets, beside those known to the host in configurations: in lower case, without dashes
/// and underscores.
const KEYS: [&str; 4] = ["adminpass", "assertion", "credential", "sessionid"];

/// A text that is shorter is no secret worth hiding: it would be found in every other word.
const SHORTEST: usize = 8;

/// What was found so far.
#[derive(Debug, Default)]
pub struct Scrub {
    /// The longest first, so that no secret is cut by one that is a part of it.
    found: Vec<(String, String)>,
}

impl Scrub {
    /// Learns the secrets of these headers and this body.
    pub fn learn(&mut self, headers: &[(String, String)], body: &str) {
        for (_, value) in headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str())) {
            // The scheme, and what follows the secret of a cookie, are no secrets.
            let secret = value.split_once(' ').map_or(value.as_str(), |(_, secret)| secret);
            let secret = match value.split_once('=') {
                Some((name, cookie)) if !name.contains(' ') => cookie.split(';').next().unwrap_or_default(),
                _ => secret,
            };
            self.add(secret);
        }
        match serde_json::from_str(body) {
            // A session's id alone, as vCenter answers.
            Ok(Value::String(text)) => self.add(&text),
            Ok(json) => self.in_json(&json),
            Err(_) => self.in_xml(body),
        }
    }

    fn in_json(&mut self, json: &Value) {
        match json {
            Value::Object(object) => {
                for (key, value) in object {
                    match value {
                        Value::String(text) if is_secret(key) => self.add(text),
                        _ => self.in_json(value),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.in_json(value)),
            _ => {}
        }
    }

    /// Elements without elements in them, which is what secrets are.
    fn in_xml(&mut self, text: &str) {
        for part in text.split('<') {
            if let Some((name, value)) = part.split_once('>')
                && is_secret(name.split_whitespace().next().unwrap_or_default())
            {
                self.add(value.trim());
            }
        }
    }

    fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST || secret.starts_with('{') || self.found.iter().any(|(known, _)| known == secret) {
            return;
        }
        let name = format!("{{hidden {}}}", self.found.len() + 1);
        self.found.push((secret.to_owned(), name));
        self.found.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    }

    /// The text without them.
    pub fn hide(&self, text: &str) -> String {
        let found = self.found.iter();
        found.fold(text.to_owned(), |text, (secret, name)| text.replace(secret, name))
    }

    /// Headers without them.
    pub fn hide_in(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let hidden = headers.iter();
        hidden.map(|(name, value)| (name.clone(), self.hide(value))).collect()
    }
}

fn is_secret(key: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    names_a_secret(&key) || KEYS.contains(&key.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_token_is_hidden_wherever_it_comes_again() {
        let mut scrub = Scrub::default();
        scrub.learn(&[header("x-subject-token", "gAAAAABtoken1")], "{}");
        scrub.learn(&[header("set-cookie", "session=abcdefgh1; HttpOnly")], "");
        scrub.learn(
            &[],
            r#"{"auth": [{"access_token": "ya29.token2", "expires_in": 3600}]}"#,
        );
        scrub.learn(
            &[],
            "<C><SecretAccessKey>wJalrXUtnFEMI</SecretAccessKey><Path>/long/path</Path></C>",
        );
        scrub.learn(&[], r#""a-session-of-vcenter""#);
        let text = "gAAAAABtoken1 abcdefgh1 HttpOnly ya29.token2 3600 wJalrXUtnFEMI /long/path a-session-of-vcenter";
        let hidden = scrub.hide(text);
        assert_eq!(
            hidden,
            "{hidden 1} {hidden 2} HttpOnly {hidden 3} 3600 {hidden 4} /long/path {hidden 5}"
        );
    }

    #[test]
    fn authorization_scheme_stays_and_placeholders_are_public() {
        let mut scrub = Scrub::default();
        let headers = [
            header("authorization", "Bearer {secret token}"),
            header("x-auth-token", "{secret token}"),
        ];
        scrub.learn(&headers, "");
        assert_eq!(scrub.hide_in(&headers), headers);
        let signed = [header("authorization", "AWS4-HMAC-SHA256 Credential=AKID/20261122")];
        scrub.learn(&signed, "");
        assert_eq!(
            scrub.hide_in(&signed),
            [header("authorization", "AWS4-HMAC-SHA256 {hidden 1}")]
        );
    }
}
