//! The file of a public key, as `--ssh-keyfile` names it.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use cloudwit_model::SshKey;
use cloudwit_model::ssh_key::MAX_PUBLIC_KEY;

/// A user, and where his key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The user on the machines.
    pub user: String,
    /// The public key: FILE.pub where FILE is the private one, which is never read.
    pub path: PathBuf,
}

impl KeyFile {
    /// The public key beside this file, or the file itself when its name ends with `.pub`.
    pub fn new(user: &str, file: &Path) -> Self {
        let path = match file.extension().is_some_and(|extension| extension == "pub") {
            true => file.to_owned(),
            false => {
                let mut path = file.as_os_str().to_owned();
                path.push(".pub");
                PathBuf::from(path)
            }
        };
        Self {
            user: user.to_owned(),
            path,
        }
    }

    /// Reads it, on a thread that may hang.
    ///
    /// # Errors
    /// Why there is no key; never with what is in the file.
    pub async fn read(&self) -> anyhow::Result<SshKey> {
        let file = self.clone();
        let key = format!("ssh key {}", self.path.display());
        bounded(&key, FILE_LIMIT, move || file.read_now())
            .await?
            .map_err(anyhow::Error::msg)
    }

    fn read_now(&self) -> Result<SshKey, String> {
        let shown = self.path.display();
        let limit = u64::try_from(MAX_PUBLIC_KEY).unwrap_or(u64::MAX).saturating_add(1);
        let mut text = String::new();
        let read = File::open(&self.path).and_then(|file| file.take(limit).read_to_string(&mut text));
        match read {
            Ok(_) => SshKey::new(&self.user, &text).map_err(|wrong| format!("{shown}: {wrong}")),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(format!(
                "{shown}: there is no such file; it has the public half of the key: `ssh-keygen -y -f PRIVATE-KEY` prints it"
            )),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(format!("{shown}: this is not UTF-8 text")),
            Err(error) => Err(format!("{shown}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINxr/5LiAWoKRwMj0M43bnoPH+IPKu2qTpvUalMHBKTt";

    #[tokio::test]
    async fn public_half_is_read_and_the_private_one_never() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("id");
        // Reading it would fail.
        std::fs::create_dir(&private).unwrap();
        std::fs::write(folder.path().join("id.pub"), format!("{ED25519} ann\n")).unwrap();
        let key = KeyFile::new("core", &private).read().await.unwrap();
        assert_eq!(key.public_key(), ED25519);
        let same = KeyFile::new("core", &folder.path().join("id.pub"))
            .read()
            .await
            .unwrap();
        assert_eq!(same, key);
    }

    #[tokio::test]
    async fn what_is_wrong_names_the_file_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let private = folder.path().join("id");
        let wrong = KeyFile::new("core", &private).read().await.unwrap_err().to_string();
        assert!(wrong.contains("id.pub") && wrong.contains("ssh-keygen -y"), "{wrong}");
        let text = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n";
        std::fs::write(folder.path().join("id.pub"), text).unwrap();
        let wrong = KeyFile::new("core", &private).read().await.unwrap_err().to_string();
        assert!(wrong.contains("private key") && !wrong.contains("c2VjcmV0"), "{wrong}");
        std::fs::write(folder.path().join("id.pub"), vec![0xff; 64]).unwrap();
        let wrong = KeyFile::new("core", &private).read().await.unwrap_err().to_string();
        assert!(wrong.contains("not UTF-8 text"), "{wrong}");
        std::fs::write(folder.path().join("id.pub"), "a".repeat(MAX_PUBLIC_KEY + 9)).unwrap();
        assert!(KeyFile::new("core", &private).read().await.is_err());
    }
}
