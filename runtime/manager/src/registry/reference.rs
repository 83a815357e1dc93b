//! Reference of an artifact: `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:HEX]`.

use std::fmt;

use cloudwit_host::destination::Host;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// What a reference begins with where a file could stand too.
pub const SCHEME: &str = "oci://";

/// The longest repository, of the 255 characters that registries take with the host in front (OCI distribution 1.1, "Pulling manifests").
const LONGEST: usize = 255;

/// Why a text is no reference.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{text:?} {wrong}; write oci://HOST[:PORT]/REPOSITORY@sha256:DIGEST, such as oci://registry.example.com/cloudwit/sim@sha256:9f86..."
)]
pub struct NoReference {
    text: String,
    wrong: &'static str,
}

/// SHA-256 of a manifest or blob, by which it is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentDigest(String);

impl ContentDigest {
    /// Reads `sha256:` with 64 lower-case hexadecimal digits. No other algorithm is known.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (hex.len() == 64 && hex.bytes().all(is_hex)).then(|| Self(hex.to_owned()))
    }

    /// The digest of this content.
    pub fn of(content: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(content))
    }

    /// The digest of what was put into a hasher.
    pub fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The 64 digits.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// An artifact in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Host of the registry.
    pub host: Host,
    /// Its port, where one is named.
    pub port: Option<u16>,
    /// The repository, such as `cloudwit/sim`.
    pub repository: String,
    /// The tag, where one is named.
    pub tag: Option<String>,
    /// The digest of the manifest, where one is named.
    pub digest: Option<ContentDigest>,
}

impl Reference {
    /// Reads a reference, with or without `oci://`.
    pub fn parse(text: &str) -> Result<Self, NoReference> {
        let wrong = |wrong| NoReference {
            text: text.to_owned(),
            wrong,
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (authority, rest) = rest.split_once('/').ok_or_else(|| wrong("names no repository"))?;
        let (host, port) = authority_of(authority).ok_or_else(|| wrong("names no host"))?;
        let (name, digest) = match rest.split_once('@') {
            Some((name, digest)) => {
                let digest = ContentDigest::parse(digest);
                (
                    name,
                    Some(digest.ok_or_else(|| {
                        wrong("has a digest that is not sha256: and 64 lower-case hexadecimal digits")
                    })?),
                )
            }
            None => (rest, None),
        };
        let (repository, tag) = match name.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (name, None),
        };
        if !is_repository(repository) {
            return Err(wrong(
                "has an invalid repository (lower-case letters, digits, '.', '_', '-', with '/' between)",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("has an invalid tag (at most 128 letters, digits, '.', '_', '-')"));
        }
        Ok(Self {
            host,
            port,
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// What the manifest is requested by: the digest, else the tag, else `latest`.
    pub fn version(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// `HOST[:PORT]`.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// The same artifact by this digest alone.
    pub fn at(&self, digest: ContentDigest) -> Self {
        Self {
            tag: None,
            digest: Some(digest),
            ..self.clone()
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.authority(), self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

fn authority_of(text: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse::<u16>().ok().filter(|port| *port > 0)?)),
        _ => (text, None),
    };
    Some((Host::parse(host)?, port))
}

/// Parts of lower-case letters and digits, with `.`, `_`, `__` or some `-` inside (OCI distribution 1.1, "Pulling manifests").
fn is_repository(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let separators = part.split(|letter: char| letter.is_ascii() && inner(letter as u8));
        part.bytes().next().is_some_and(inner)
            && part.bytes().last().is_some_and(inner)
            && separators
                .into_iter()
                .all(|one| matches!(one, "" | "." | "_" | "__") || one.bytes().all(|byte| byte == b'-'))
    };
    text.len() <= LONGEST && text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    #[test]
    fn reference_is_read_and_written_in_all_its_forms() {
        for (text, authority, repository, version) in [
            (
                "oci://registry.example.com/sim",
                "registry.example.com",
                "sim",
                "latest",
            ),
            (
                "registry.example.com:5000/a/b-c__d.e:v1.0",
                "registry.example.com:5000",
                "a/b-c__d.e",
                "v1.0",
            ),
            ("oci://127.0.0.1:5000/a:1", "127.0.0.1:5000", "a", "1"),
            ("oci://[::1]:5000/a", "[::1]:5000", "a", "latest"),
        ] {
            let read = Reference::parse(text).unwrap();
            assert_eq!(
                (
                    read.authority().as_str(),
                    read.repository.as_str(),
                    read.version().as_str()
                ),
                (authority, repository, version)
            );
            assert_eq!(
                read.to_string().trim_start_matches(SCHEME),
                text.trim_start_matches(SCHEME)
            );
        }
        let pinned = Reference::parse(&format!("oci://r.example/a:1@sha256:{HEX}")).unwrap();
        assert_eq!(pinned.version(), format!("sha256:{HEX}"));
        let digest = pinned.digest.clone().unwrap();
        assert_eq!(pinned.at(digest).to_string(), format!("oci://r.example/a@sha256:{HEX}"));
        assert_eq!(ContentDigest::of(b"test").hex(), HEX);
    }

    #[test]
    fn what_is_no_reference_is_refused_with_an_example() {
        for text in [
            "oci://",
            "oci://registry",
            "oci:///a",
            "oci://r.example/",
            "oci://r.example/A",
            "oci://r.example/a//b",
            "oci://r.example/../a",
            "oci://r.example/a?b",
            "oci://user@r.example/a",
            "oci://r.example:0/a",
            "oci://r.example:99999/a",
            "oci://r.example/a:",
            "oci://r.example/a@sha256:12",
            "oci://r.example/a@md5:12",
            "oci://r.example/a-",
            "oci://r.example/a___b",
            "oci://r example/a",
        ] {
            let error = Reference::parse(text).expect_err(text).to_string();
            assert!(error.contains("write oci://HOST"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_was_read_is_read_again_the_same(text in "[a-z0-9.:@/_-]{1,60}") {
            if let Ok(read) = Reference::parse(&text) {
                prop_assert_eq!(Reference::parse(&read.to_string()).unwrap(), read);
            }
        }
    }
}
