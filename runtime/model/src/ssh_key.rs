//! Public keys with which one logs in to machines, and the door to clouds that spread them.

use std::fmt;
use std::sync::Arc;

use data_encoding::BASE64;

use crate::{Answer, Gate, PlannedWrite};

/// The most bytes of a user's name (`useradd`). kube-apiserver cut longer ones there; here they are refused.
pub const MAX_USER: usize = 32;

/// The most bytes of a public key (`wit/v0.1/ssh-keys.wit`): one of RSA with 16,384 bits, which is the most that OpenSSH takes, has some 2,800.
pub const MAX_PUBLIC_KEY: usize = 16 << 10;

/// Algorithms of keys that OpenSSH takes today (sshd's `PubkeyAcceptedAlgorithms`; the signatures of one algorithm count as it).
const ALGORITHMS: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A key and whom it lets in. The key is public; nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshKey {
    user: String,
    public_key: String,
}

/// Why a text is no key, or a name none of a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshKeyError {
    /// The user's name.
    #[error(
        "{0:?} is not a valid user name on a machine; it needs 1 to {MAX_USER} lower-case letters, digits, - and _, and a letter or _ first"
    )]
    User(String),
    /// It is the secret half, which has no business here.
    #[error("this is a private key; name the file of the public one, which usually ends with .pub")]
    Private,
    /// Several lines.
    #[error("there is more than one key in it; leave one")]
    Several,
    /// Too long to be one.
    #[error("it has {0} bytes; at most {MAX_PUBLIC_KEY} are allowed")]
    Long(usize),
    /// No algorithm that machines take.
    #[error("it does not begin with an algorithm that OpenSSH takes ({}); expected a line of authorized_keys without options", ALGORITHMS.join(", "))]
    Algorithm,
    /// What follows it.
    #[error("what follows {0} is not a key of that algorithm; the text seems to be cut or changed")]
    Content(&'static str),
}

impl SshKey {
    /// A key from a line of `authorized_keys` without options, such as a file `id_ed25519.pub` has. Its comment is left off.
    ///
    /// # Errors
    /// What is wrong with it; never with what is in it.
    pub fn new(user: &str, text: &str) -> Result<Self, SshKeyError> {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        let begins = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if !(1..=MAX_USER).contains(&user.len()) || !user.bytes().all(inner) || !user.bytes().next().is_some_and(begins)
        {
            return Err(SshKeyError::User(user.chars().take(2 * MAX_USER).collect()));
        }
        Ok(Self {
            user: user.to_owned(),
            public_key: public_key(text)?,
        })
    }

    /// Whom it lets in.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Algorithm, a space and base64.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The algorithm.
    pub fn algorithm(&self) -> &str {
        self.public_key.split(' ').next().unwrap_or_default()
    }
}

/// Algorithm, a space and base64, if that is what the text has.
fn public_key(text: &str) -> Result<String, SshKeyError> {
    if text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File") {
        return Err(SshKeyError::Private);
    }
    if text.len() > MAX_PUBLIC_KEY {
        return Err(SshKeyError::Long(text.len()));
    }
    let mut lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (line, others) = (lines.next().unwrap_or_default(), lines.next());
    if others.is_some() {
        return Err(SshKeyError::Several);
    }
    let mut words = line.split_ascii_whitespace();
    let (algorithm, content) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let known = ALGORITHMS.into_iter().find(|known| *known == algorithm);
    let algorithm = known.ok_or(SshKeyError::Algorithm)?;
    let blob = BASE64
        .decode(content.as_bytes())
        .map_err(|_| SshKeyError::Content(algorithm))?;
    // RFC 4253, 6.6: the name of the algorithm, with its length before it in four bytes, and then the key.
    let length = u32::try_from(algorithm.len()).unwrap_or(u32::MAX).to_be_bytes();
    let begin = [&length[..], algorithm.as_bytes()].concat();
    if !blob.starts_with(&begin) || blob.len() == begin.len() {
        return Err(SshKeyError::Content(algorithm));
    }
    Ok(format!("{algorithm} {content}"))
}

/// What there was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsuredKey {
    /// The key was not there.
    Added,
    /// It was there already.
    Present,
}

/// A cloud that spreads keys to all machines.
pub trait SshKeys: Send + Sync {
    /// Sees to it that this user can log in with this key on all machines. `token` continues a [`Failure::Pending`](crate::Failure::Pending).
    fn ensure_ssh_key<'a>(&'a self, key: &'a SshKey, token: Option<&'a str>) -> Answer<'a, EnsuredKey>;
}

/// The keys of a cloud behind a [`Gate`]: the counterpart of [`gated`](crate::gated) for [`SshKeys`].
pub struct GatedSshKeys<G> {
    cloud: Arc<dyn SshKeys>,
    gate: G,
}

impl<G> GatedSshKeys<G> {
    /// The keys of this cloud behind this gate.
    pub fn over(cloud: Arc<dyn SshKeys>, gate: G) -> Self {
        Self { cloud, gate }
    }
}

impl<G> fmt::Debug for GatedSshKeys<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedSshKeys").finish_non_exhaustive()
    }
}

impl<G: Gate> SshKeys for GatedSshKeys<G> {
    fn ensure_ssh_key<'a>(&'a self, key: &'a SshKey, token: Option<&'a str>) -> Answer<'a, EnsuredKey> {
        self.gate.change(PlannedWrite::EnsureSshKey(key), move || {
            self.cloud.ensure_ssh_key(key, token)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `ssh-keygen -t ed25519`, whose private half was thrown away.
    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINxr/5LiAWoKRwMj0M43bnoPH+IPKu2qTpvUalMHBKTt";

    #[test]
    fn comment_and_blank_lines_are_left_off() {
        let key = SshKey::new("core", &format!("\n{ED25519}  ann@example.com laptop\n\n")).unwrap();
        assert_eq!((key.user(), key.public_key()), ("core", ED25519));
        assert_eq!(key.algorithm(), "ssh-ed25519");
    }

    #[test]
    fn what_is_no_public_key_is_refused_without_showing_it() {
        let wrong = |text: &str| SshKey::new("core", text).unwrap_err();
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n";
        assert_eq!(wrong(private), SshKeyError::Private);
        assert!(!wrong(private).to_string().contains("c2VjcmV0"));
        assert_eq!(wrong(&format!("{ED25519}\n{ED25519}")), SshKeyError::Several);
        assert_eq!(wrong(""), SshKeyError::Algorithm);
        assert_eq!(wrong("ssh-dss AAAAB3NzaC1kc3M="), SshKeyError::Algorithm);
        assert_eq!(wrong(&format!("command=\"sh\" {ED25519}")), SshKeyError::Algorithm);
        for cut in [
            "ssh-ed25519",
            "ssh-ed25519 AAAA",
            "ssh-ed25519 %%%",
            "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAA",
        ] {
            assert!(matches!(wrong(cut), SshKeyError::Content(_)), "{cut}");
        }
        assert_eq!(
            wrong(&"a".repeat(MAX_PUBLIC_KEY + 1)),
            SshKeyError::Long(MAX_PUBLIC_KEY + 1)
        );
    }

    #[test]
    fn users_that_useradd_refuses_are_refused() {
        for bad in ["", "Core", "1a", "-a", "a b", "a:b", "a\nroot", &"a".repeat(33)] {
            assert!(
                matches!(SshKey::new(bad, ED25519), Err(SshKeyError::User(_))),
                "{bad:?}"
            );
        }
        assert!(SshKey::new("_core-1", ED25519).is_ok());
    }
}
