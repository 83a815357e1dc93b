//! Parser of `spec.providerID`.
//!
//! Opaque to Kubernetes and mostly to us: only its prefix decides which provider a Node belongs to.

use std::fmt;

/// A provider id, kept exactly as it was read: it is an identity and is never rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderId(String);

impl ProviderId {
    /// A provider id, unless the text is empty.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text as it was read.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it starts with one of these prefixes, the ones a provider gives out.
    pub fn has_prefix<S: AsRef<str>>(&self, prefixes: &[S]) -> bool {
        prefixes.iter().any(|prefix| self.0.starts_with(prefix.as_ref()))
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_is_no_id() {
        assert_eq!(ProviderId::new(""), None);
        assert_eq!(
            ProviderId::new("cn-hangzhou.i-abc").unwrap().as_str(),
            "cn-hangzhou.i-abc"
        );
    }

    #[test]
    fn a_prefix_decides_the_owner() {
        let id = ProviderId::new("sim://vm-1").unwrap();
        assert!(id.has_prefix(&["aws://", "sim://"]));
        assert!(!id.has_prefix(&["aws://"]));
        assert!(!id.has_prefix::<&str>(&[]));
    }
}
