//! SSH keys of a provider that can change: each call takes the one that runs when it begins.

use cloudwit_model::{Answer, EnsuredKey, SshKey, SshKeys};

use crate::swap::SwappableProvider;

impl SshKeys for SwappableProvider {
    fn ensure_ssh_key<'a>(&'a self, key: &'a SshKey, token: Option<&'a str>) -> Answer<'a, EnsuredKey> {
        let provider = self.current();
        Box::pin(async move { provider.ensure_ssh_key(key, token).await })
    }
}
