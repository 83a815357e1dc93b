//! Credentials of a docker config file, such as `.dockerconfigjson` of an imagePullSecret.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::registry::reference::Reference;

/// User and password. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    #[serde(default, rename = "identitytoken")]
    identity_token: String,
}

/// The credential for this repository: of the entry with the longest path that leads to it. None when no entry is for its registry.
///
/// # Errors
///
/// When the text is no docker config, or the entry cannot be used. Messages contain nothing of the text.
pub fn find(config: &str, reference: &Reference) -> anyhow::Result<Option<Credential>> {
    // What the parser says could quote a password.
    let Ok(config) = serde_json::from_str::<DockerConfig>(config) else {
        bail!("is not a docker config; it has to be JSON such as {{\"auths\": {{\"HOST\": {{\"auth\": \"...\"}}}}}}");
    };
    let wanted = format!("{}/{}", reference.authority(), reference.repository);
    let fits = |key: &&String| {
        let key = place(key);
        wanted
            .strip_prefix(key)
            .is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
    };
    let Some(key) = config.auths.keys().filter(fits).max_by_key(|key| place(key).len()) else {
        return Ok(None);
    };
    let entry = &config.auths[key];
    credential(entry)
        .with_context(|| format!("the entry {key:?}"))
        .map(Some)
}

/// The key without what older tools put around it: `https://HOST/v1/` is `HOST`.
fn place(key: &str) -> &str {
    let key = key
        .trim_start_matches("https://")
        .trim_start_matches("http://")
        .trim_end_matches('/');
    key.strip_suffix("/v1")
        .or_else(|| key.strip_suffix("/v2"))
        .unwrap_or(key)
}

fn credential(entry: &Entry) -> anyhow::Result<Credential> {
    if !entry.username.is_empty() {
        return Ok(Credential {
            user: entry.username.clone(),
            password: entry.password.clone(),
        });
    }
    if entry.auth.is_empty() && !entry.identity_token.is_empty() {
        bail!("has an identity token only, which is not supported; put a user and a password there");
    }
    let decoded = STANDARD
        .decode(entry.auth.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    match decoded.as_deref().and_then(|text| text.split_once(':')) {
        Some((user, password)) => Ok(Credential {
            user: user.to_owned(),
            password: password.to_owned(),
        }),
        None => bail!("has an `auth` that is not the base64 of USER:PASSWORD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str, reference: &str) -> Option<String> {
        let reference = Reference::parse(reference).unwrap();
        find(config, &reference)
            .unwrap()
            .map(|found| format!("{}:{}", found.user, found.password))
    }

    #[test]
    fn entry_of_longest_path_is_taken_and_no_other_host() {
        let config = r#"{"auths": {
            "https://r.example:5000/v2/": {"auth": "YTpi"},
            "r.example:5000/team": {"username": "team", "password": "x:y"},
            "r.example:5000/te": {"username": "no", "password": "no"},
            "other": {"auth": "YTpi"}
        }, "credsStore": "desktop"}"#;
        assert_eq!(of(config, "r.example:5000/sim"), Some("a:b".into()));
        assert_eq!(of(config, "r.example:5000/team/sim"), Some("team:x:y".into()));
        assert_eq!(of(config, "r.example/sim"), None);
        assert_eq!(of(config, "r.example:50/sim"), None);
        assert_eq!(of("{}", "r.example/sim"), None);
    }

    #[test]
    fn wrong_file_is_reported_without_its_content() {
        let reference = Reference::parse("r.example/sim").unwrap();
        for config in [
            "secret-text",
            r#"{"auths": {"r.example": {"auth": "secret-text"}}}"#,
            r#"{"auths": {"r.example": {"identitytoken": "secret-text"}}}"#,
            r#"{"auths": ["secret-text"]}"#,
        ] {
            let error = format!("{:#}", find(config, &reference).unwrap_err());
            assert!(!error.contains("secret-text"), "{error}");
        }
    }
}
