//! Patterns that names of subnets are matched with: regular expressions as Go has them, and globs.

use regex_lite::{Regex, escape};

/// A pattern that was read.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Reads a regular expression. It matches a text that contains it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn regex(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|wrong| wrong.to_string())
    }

    /// Reads a glob: `*` for any text, `?` for any character. It matches whole texts.
    pub fn glob(text: &str) -> Result<Self, String> {
        let escaped = escape(text).replace(r"\*", ".*").replace(r"\?", ".");
        Self::regex(&format!("^(?s:{escaped})$"))
    }

    /// Whether it matches.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Two patterns of the same text are equal.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_match_as_gos() {
        for (pattern, yes, no) in [
            ("public", &["public", "the-public-net"][..], &["Public", ""][..]),
            ("^public$", &["public"], &["public-1"]),
            ("^(a|bc)+$", &["a", "bca"], &["", "b", "abb"]),
            (
                r"^net-\d{2,3}$",
                &["net-12", "net-123"],
                &["net-1", "net-1234", "net-ab"],
            ),
            ("[^a-c]x[]]", &["dx]"], &["ax]", "x]"]),
            (r"^\w+\.\S*$", &["ab_9.", "a.b"], &["a-b.c", "a. "]),
            ("(?i)PUBLIC", &["a public one"], &["publi"]),
            ("^(?:a*)*b?$", &["", "aaab"], &["aac"]),
            ("^a.?c$", &["ac", "abc"], &["abbc"]),
            ("a|^$", &["", "xa"], &["x"]),
        ] {
            let read = Pattern::regex(pattern).unwrap();
            assert!(
                yes.iter().all(|text| read.matches(text)),
                "{pattern} should match {yes:?}"
            );
            assert!(
                !no.iter().any(|text| read.matches(text)),
                "{pattern} should match none of {no:?}"
            );
        }
    }

    #[test]
    fn malformed_pattern_is_refused() {
        for wrong in ["(", ")", "[", "[a", "*a", "a{2", "a{3,2}", "(?=a)", r"\", "[b-a]"] {
            assert!(Pattern::regex(wrong).is_err(), "{wrong}");
        }
        assert!(Pattern::regex(&"(".repeat(50)).is_err());
    }

    #[test]
    fn a_pattern_that_would_take_for_ever_ends() {
        assert!(
            !Pattern::regex("^(a|a|aa)*$")
                .unwrap()
                .matches(&format!("{}b", "a".repeat(60)))
        );
    }

    #[test]
    fn globs_match_whole_names() {
        let matches = |glob: &str, name: &str| Pattern::glob(glob).unwrap().matches(name);
        assert!(matches("public-*", "public-") && matches("p?b", "pub"));
        assert!(!matches("public", "public-1") && !matches("a.c", "abc"));
    }
}
