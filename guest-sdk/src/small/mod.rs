//! Interfaces with one function: clusters, DNS, location, SSH keys; traits and types.
//!
//! `register_provider!(Lab: Instances, Clusters, Dns, Location, SshKeys);`, each only where the cloud has it. [`Dns`] and [`Location`] are called on a machine of
//! the cloud, where no secret is granted, so they are called without the provider: [`Provider::new`](crate::Provider::new) might request one.

mod provider;
mod register;

use crate::bindings::{clusters, dns, location, ssh_keys};
use crate::types::Instance;

pub use clusters::exports::cloudwit::provider::clusters::KnownCluster;
pub use dns::exports::cloudwit::provider::dns::Resolver;
pub use location::exports::cloudwit::provider::location::Machine as MachineLocation;
pub use provider::{Clusters, Dns, Location, SshKeys};
pub use ssh_keys::exports::cloudwit::provider::ssh_keys::{Ensured as EnsuredKey, SshKey};

impl KnownCluster {
    /// A cluster whose control plane is nowhere yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            host: None,
            port: None,
            extra: Vec::new(),
        }
    }

    /// The same cluster with a control plane at this host; none or an empty text changes nothing.
    pub fn host(mut self, host: Option<impl Into<String>>) -> Self {
        self.host = host.map(Into::into).filter(|host| !host.is_empty()).or(self.host);
        self
    }

    /// The same cluster with a control plane at this port.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }
}

impl MachineLocation {
    /// The machine of this Node.
    pub fn new(node: impl Into<String>, instance: Instance) -> Self {
        Self {
            node: node.into(),
            instance,
        }
    }
}

impl Resolver {
    /// The same without the search domains of which `is_useless` is true. It gets them in lower case and without the last dot.
    pub fn without_searches(mut self, is_useless: impl Fn(&str) -> bool) -> Self {
        self.searches
            .retain(|search| !is_useless(search.trim_end_matches('.').to_ascii_lowercase().as_str()));
        self
    }
}

impl SshKey {
    /// Whether a line of `authorized_keys` has this key, whatever its options and its comment are.
    pub fn is_in(&self, line: &str) -> bool {
        let mut wanted = self.public_key.split_ascii_whitespace();
        let (Some(algorithm), Some(content)) = (wanted.next(), wanted.next()) else {
            return false;
        };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        words.windows(2).any(|pair| pair == [algorithm, content])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn useless_searches_are_dropped_whatever_their_case_and_dot() {
        let found = Resolver {
            nameservers: vec!["10.0.0.2".into()],
            searches: vec!["A.Internal.".into(), "b.internal".into(), ".".into()],
            extra: Vec::new(),
        };
        let left = found.without_searches(|search| search == "a.internal");
        assert_eq!(left.searches, ["b.internal", "."]);
        assert_eq!(left.nameservers, ["10.0.0.2"]);
    }

    #[test]
    fn key_is_found_beside_options_and_comments() {
        let key = SshKey {
            user: "core".into(),
            public_key: "ssh-ed25519 AAAA".into(),
            extra: Vec::new(),
        };
        assert!(key.is_in("ssh-ed25519 AAAA ann@example.com"));
        assert!(key.is_in("no-pty ssh-ed25519 AAAA"));
        assert!(!key.is_in("ssh-ed25519 AAAAB"));
        assert!(!key.is_in("ssh-rsa AAAA"));
        assert!(!key.is_in(""));
    }
}
