//! User, in the words of TokenReviews and SubjectAccessReviews.

use std::collections::BTreeMap;

/// The name and the group of those who have not said who they are, and the group of all others (`apiserver pkg/authentication/user`).
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATED: &str = "system:authenticated";

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// An id that distinguishes users of one name.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further facts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An unauthenticated client.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// Whether nothing proves who this is, whoever said so: a front proxy may pass such a user on.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.groups.iter().any(|group| group == UNAUTHENTICATED)
    }

    /// In the group of those who are known, unless he is not.
    pub fn authenticated(mut self) -> Self {
        if !self.is_anonymous() && !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticated_users_are_in_their_own_group_only() {
        let named = |name: &str| User {
            name: name.into(),
            ..User::default()
        };
        assert_eq!(named("ann").authenticated().authenticated().groups, [AUTHENTICATED]);
        assert!(named(ANONYMOUS).authenticated().groups.is_empty());
        assert!(!named("ann").is_anonymous());
        assert!(named(ANONYMOUS).is_anonymous() && User::anonymous().is_anonymous());
    }
}
