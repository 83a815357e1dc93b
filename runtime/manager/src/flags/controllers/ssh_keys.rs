//! Flags of SSH keys on machines.

use std::path::{Path, PathBuf};

use cloudwit_model::SshKey;
use cloudwit_model::ssh_key::SshKeyError;

use crate::ssh_keys::key_file::KeyFile;

/// Flags about SSH keys.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "SSH keys")]
pub struct SshKeyArgs {
    /// The user with the key --ssh-keyfile on all machines, where the provider supports it (kube-apiserver had this flag).
    #[arg(long, value_name = "USER")]
    pub ssh_user: Option<String>,

    /// The key that the leader gives to all machines for --ssh-user, and checks every five minutes. Of a private key FILE the public half FILE.pub is
    /// read, and FILE itself never; a file whose name ends with .pub is the public half.
    #[arg(long, value_name = "FILE")]
    pub ssh_keyfile: Option<PathBuf>,
}

impl SshKeyArgs {
    /// What is wrong and can be seen without a file.
    pub fn mistakes(&self) -> Vec<String> {
        let user = self.ssh_user.as_deref().and_then(|user| match SshKey::new(user, "") {
            Err(wrong @ SshKeyError::User(_)) => Some(format!("--ssh-user: {wrong}")),
            _ => None,
        });
        let alone = match (&self.ssh_user, &self.ssh_keyfile) {
            (Some(_), None) => Some("--ssh-user needs --ssh-keyfile, the key that lets it in"),
            (None, Some(_)) => Some("--ssh-keyfile needs --ssh-user, whom the key lets in"),
            _ => None,
        };
        user.into_iter().chain(alone.map(str::to_owned)).collect()
    }

    /// The key, where there is to be one.
    pub fn key_file(&self) -> Option<KeyFile> {
        let file: &Path = self.ssh_keyfile.as_deref()?;
        Some(KeyFile::new(self.ssh_user.as_deref()?, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_file_belong_together() {
        let args = |user: Option<&str>, file: Option<&str>| SshKeyArgs {
            ssh_user: user.map(str::to_owned),
            ssh_keyfile: file.map(PathBuf::from),
        };
        assert!(args(None, None).mistakes().is_empty() && args(None, None).key_file().is_none());
        assert!(args(Some("core"), Some("/k")).mistakes().is_empty());
        assert_eq!(args(Some("core"), None).mistakes().len(), 1);
        assert_eq!(args(None, Some("/k")).mistakes().len(), 1);
        let both = args(Some("no such user"), None).mistakes();
        assert_eq!(both.len(), 2, "{both:?}");
    }
}
