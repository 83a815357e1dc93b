//! How to log in: with secrets that the host fills into requests, or with what is in the cloud config.

use std::fmt;

use cloudwit_guest_sdk::keys::Keys;
use cloudwit_guest_sdk::{Encoding, Failure, xml};
use data_encoding::BASE64;

/// Name and password for one vCenter, never readable here where they are secrets.
#[derive(Clone)]
pub enum Credentials {
    /// Names of two secrets.
    Secrets {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
    /// From the cloud config.
    Text {
        /// The user's name.
        user: String,
        /// The password.
        password: String,
    },
}

impl Credentials {
    /// The secrets of this server, called as the keys in upstream's Kubernetes Secret. (A colon, as in IPv6 addresses, cannot be in a name.)
    pub fn secrets(server: &str) -> Self {
        let server = server.replace(':', "-");
        Self::Secrets {
            user: format!("{server}.username"),
            password: format!("{server}.password"),
        }
    }

    /// What is in the cloud config.
    pub fn text(user: String, password: String) -> Self {
        Self::Text { user, password }
    }

    /// For the inside of two XML elements: the user's name and the password.
    ///
    /// # Errors
    /// `denied` when a secret is not granted.
    pub fn xml(&self, keys: Keys) -> Result<(String, String), Failure> {
        match self {
            Self::Secrets { user, password } => {
                let escaped = |name: &str| keys.placeholder_as(name, Encoding::Xml).map(String::from);
                Ok((escaped(user)?, escaped(password)?))
            }
            Self::Text { user, password } => Ok((xml::escape(user), xml::escape(password))),
        }
    }

    /// For two fields of a form.
    ///
    /// # Errors
    /// `denied` when a secret is not granted.
    pub fn form(&self, keys: Keys) -> Result<(String, String), Failure> {
        match self {
            Self::Secrets { user, password } => {
                let escaped = |name: &str| keys.placeholder_as(name, Encoding::Form).map(String::from);
                Ok((escaped(user)?, escaped(password)?))
            }
            Self::Text { user, password } => Ok((user.clone(), password.clone())),
        }
    }

    /// For the header `Authorization`.
    ///
    /// # Errors
    /// `denied` when a secret is not granted.
    pub fn basic(&self, keys: Keys) -> Result<String, Failure> {
        match self {
            Self::Secrets { user, password } => keys.basic(user, password).map(String::from),
            Self::Text { user, password } => Ok(format!(
                "Basic {}",
                BASE64.encode(format!("{user}:{password}").as_bytes())
            )),
        }
    }
}

/// The user's name is confidential too.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secrets { user, password } => f.debug_list().entries([user, password]).finish(),
            Self::Text { .. } => f.write_str("[hidden]"),
        }
    }
}
