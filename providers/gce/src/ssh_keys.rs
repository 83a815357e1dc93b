//! Keys of all machines of the project: lines of its metadata, changed by fingerprint.
//!
//! As upstream's `AddSSHKeyToAllInstances` (`gce_instances.go`), under the key `ssh-keys`, which took the place of `sshKeys` there.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};
use serde::{Deserialize, Serialize};

use crate::Gce;
use crate::operation::Operation;
use crate::place::Place;

/// The key of metadata that guests read.
const KEYS: &str = "ssh-keys";

/// The one that it took the place of: guests read it too.
const FORMER: &str = "sshKeys";

/// Makes guests ignore both.
const OS_LOGIN: &str = "enable-oslogin";

/// The most bytes of one value of metadata (Compute Engine, "Metadata size limits").
const MOST_BYTES: usize = 256 << 10;

/// Comments that guests read as the end of a key's time.
const WITH_EXPIRY: &str = "google-ssh";

/// Until the operation is polled.
const LOOK: std::time::Duration = std::time::Duration::from_secs(2);

/// Metadata of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Metadata {
    fingerprint: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Item {
    key: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Project {
    common_instance_metadata: Metadata,
}

impl SshKeys for Gce {
    fn ensure_ssh_key(&self, key: &SshKey, token: Option<&str>) -> Result<EnsuredKey, Failure> {
        if let Some(path) = token {
            // It ends in what is seen below, or in why not.
            if let Some(path) = Operation::look(&self.api, path)? {
                return Err(working(path));
            }
        }
        let place = Place::of(&self.config.global, self.context)?;
        let project = format!("projects/{}", place.project);
        let query = [("fields", "commonInstanceMetadata(fingerprint,items)")];
        let seen: Project = self.api.get(&format!("/{project}"), &query)?;
        let Some(wanted) = with_key(seen.common_instance_metadata, key)? else {
            return Ok(match token {
                Some(_) => EnsuredKey::Added,
                None => EnsuredKey::Present,
            });
        };
        let body: Value = json!({"fingerprint": wanted.fingerprint, "items": wanted.items});
        let operation = self
            .api
            .change("POST", &format!("{project}/setCommonInstanceMetadata"), Some(&body))?;
        match operation.running()? {
            Some(path) => Err(working(path)),
            None => Ok(EnsuredKey::Added),
        }
    }
}

fn working(path: String) -> Failure {
    Failure::pending(
        LOOK,
        path,
        "Compute Engine gives the key to the machines of the project",
    )
}

/// The metadata with the key; none when it is there.
fn with_key(mut metadata: Metadata, key: &SshKey) -> Result<Option<Metadata>, Failure> {
    let os_login = metadata.items.iter().find(|item| item.key == OS_LOGIN);
    if os_login.is_some_and(|item| item.value.trim().eq_ignore_ascii_case("true")) {
        return Err(Failure::failed_precondition(
            "the project's metadata says enable-oslogin: machines take keys of people's Google accounts and none of the metadata; use OS Login, or set it to FALSE",
        ));
    }
    let has_it = |line: &str| {
        let Some((user, rest)) = line.trim().split_once(':') else {
            return false;
        };
        user == key.user && key.is_in(rest) && !rest.contains(WITH_EXPIRY)
    };
    let keys = metadata
        .items
        .iter()
        .filter(|item| item.key == KEYS || item.key == FORMER);
    if keys.flat_map(|item| item.value.lines()).any(has_it) {
        return Ok(None);
    }
    let line = format!("{user}:{} {user}", key.public_key, user = key.user);
    match metadata.items.iter_mut().find(|item| item.key == KEYS) {
        Some(item) => {
            if !item.value.is_empty() && !item.value.ends_with('\n') {
                item.value.push('\n');
            }
            item.value.push_str(&line);
        }
        None => metadata.items.push(Item {
            key: KEYS.into(),
            value: line,
        }),
    }
    let bytes = metadata
        .items
        .iter()
        .map(|item| item.value.len())
        .max()
        .unwrap_or_default();
    if bytes > MOST_BYTES {
        return Err(Failure::exhausted(format!(
            "the keys of the project would have {bytes} bytes, and its metadata has room for {MOST_BYTES}; remove keys that nobody uses"
        )));
    }
    Ok(Some(metadata))
}

#[cfg(test)]
mod tests;
