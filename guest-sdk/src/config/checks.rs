//! Checks that many providers make of their configuration, so that all report them in the same words.

use super::{Problems, given};
use crate::types::SecretUse;
use crate::url::is_url;

impl Problems {
    /// The value of a key that has to be there. `what` is what to write: `the region, such as DFW`.
    pub fn needed<'v>(&mut self, at: &str, value: &'v Option<String>, what: &str) -> Option<&'v str> {
        let value = given(value);
        if value.is_none() {
            self.add(at, format!("this key is missing; write {what}"));
        }
        value
    }

    /// A URL, where there is one.
    pub fn url(&mut self, at: &str, value: &Option<String>, example: &str) {
        if let Some(url) = given(value).filter(|url| !is_url(url)) {
            self.add(at, format!("\"{url}\" is no URL; write it like {example}"));
        }
    }

    /// A URL that has to be there, of `what`.
    pub fn needed_url(&mut self, at: &str, value: &Option<String>, what: &str, example: &str) {
        if self
            .needed(at, value, &format!("the URL of {what}, such as {example}"))
            .is_some()
        {
            self.url(at, value, example);
        }
    }

    /// A secret in the text that has to be in the grants instead, under this name.
    pub fn no_secret(&mut self, at: &str, value: &Option<String>, name: &str, granted: SecretUse) {
        let (what, granted) = match granted {
            SecretUse::Hmac => ("signs with it", "hmac"),
            SecretUse::Sign => ("signs with it", "sign"),
            SecretUse::Placeholder => ("fills it in", "placeholder"),
            SecretUse::Reveal => ("keeps it", "reveal"),
        };
        if given(value).is_some() {
            let how = format!(
                "write it into a file that is granted as the secret {name} with uses: [{granted}], and remove this key"
            );
            self.add(at, format!("the host {what}: {how}"));
        }
    }

    /// A key that switches the check of certificates off.
    pub fn no_insecurity(&mut self, at: &str, is_set: bool) {
        if is_set {
            self.add(
                at,
                "certificates are always checked; write the cloud's authority as `ca: FILE`, or the certificate's `thumbprints`, into the grant of its host \
                 and remove this key",
            );
        }
    }

    /// A key of upstream's that has no effect here, and why.
    pub fn no_effect(&mut self, at: &str, is_set: bool, why: &str) {
        if is_set {
            self.warn(at, format!("has no effect: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_says_what_to_write() {
        let (mut problems, none, blank) = (Problems::default(), None, Some(" ".to_owned()));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(problems.needed("a", &text(" b "), "it"), Some("b"));
        problems.url("a", &none, "https://a.test");
        problems.url("a", &text("https://b.test"), "https://a.test");
        problems.needed_url("a", &text("https://b.test"), "it", "https://a.test");
        problems.no_secret("a", &blank, "key", SecretUse::Hmac);
        problems.no_insecurity("a", false);
        problems.no_effect("a", false, "no");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(problems.needed("needed", &blank, "the region"), None);
        problems.url("url", &text("b"), "https://a.test");
        problems.needed_url("missing", &none, "the API", "https://a.test");
        problems.needed_url("wrong", &text("b"), "the API", "https://a.test");
        problems.no_secret("secret", &text("s"), "key", SecretUse::Hmac);
        problems.no_insecurity("insecure", true);
        problems.no_effect("effect", true, "there is none");
        let told: Vec<(&str, &str)> = problems
            .iter()
            .map(|one| (one.at.as_str(), one.message.as_str()))
            .collect();
        assert_eq!(
            told[..4],
            [
                ("needed", "this key is missing; write the region"),
                ("url", "\"b\" is no URL; write it like https://a.test"),
                (
                    "missing",
                    "this key is missing; write the URL of the API, such as https://a.test"
                ),
                ("wrong", "\"b\" is no URL; write it like https://a.test"),
            ]
        );
        let secret = "the host signs with it: write it into a file that is granted as the secret key with uses: [hmac], and remove this key";
        assert_eq!(told[4], ("secret", secret));
        assert!(told[5].1.starts_with("certificates are always checked"));
        assert_eq!(told[6], ("effect", "has no effect: there is none"));
        let is_warning = |at: usize| {
            problems
                .iter()
                .nth(at)
                .is_some_and(|one| one.severity == crate::Severity::Warning)
        };
        assert!(is_warning(6) && !is_warning(5), "only what has no effect is no mistake");
    }
}
