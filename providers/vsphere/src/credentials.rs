//! How to log in: with secrets that the host fills into requests, or with what stands in the cloud config.

use core::fmt;

use cloudwit_guest_sdk::without_std::prelude::*;
use cloudwit_guest_sdk::{Secret, base64, xml};

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
    /// The secrets of this server, called as the keys in upstream's Kubernetes Secret. (A colon, as in IPv6 addresses, cannot stand in a name.)
    pub fn secrets(server: &str) -> Self {
        let server = server.replace(':', "-");
        Self::Secrets {
            user: [&server, ".username"].concat(),
            password: [&server, ".password"].concat(),
        }
    }

    /// What stands in the cloud config.
    pub fn text(user: String, password: String) -> Self {
        Self::Text { user, password }
    }

    /// For the inside of two XML elements: the user's name and the password.
    pub fn xml(&self) -> (String, String) {
        match self {
            Self::Secrets { user, password } => {
                let escaped = |name: &str| Secret::new(name).xml().to_string();
                (escaped(user), escaped(password))
            }
            Self::Text { user, password } => (xml::escape(user), xml::escape(password)),
        }
    }

    /// For the header `Authorization`.
    pub fn basic(&self) -> String {
        match self {
            Self::Secrets { user, password } => Secret::basic(user, password).to_string(),
            Self::Text { user, password } => {
                ["Basic ", &base64::encode([user, ":", password].concat().as_bytes())].concat()
            }
        }
    }
}

/// The user's name is none of anybody's business either.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secrets { user, password } => f.debug_list().entries([user, password]).finish(),
            Self::Text { .. } => f.write_str("[hidden]"),
        }
    }
}
