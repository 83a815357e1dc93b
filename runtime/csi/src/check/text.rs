//! Names, ids and maps: present and bounded.

use std::collections::{BTreeMap, HashMap};

use cloudwit_model::VolumeSecrets;
use tonic::Status;

/// The CSI spec requires names of 128 bytes to be accepted; the contract of providers has none that are longer.
const NAME: usize = 128;

/// The CSI spec has 128 bytes; Azure's ids have up to 400.
const ID: usize = 1024;

/// The CSI spec has 4 KiB for a map.
const MAP: usize = 16 * 1024;

/// What is wrong with a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mistakes(Vec<String>);

impl Mistakes {
    /// One more.
    pub fn add(&mut self, mistake: impl Into<String>) {
        self.0.push(mistake.into());
    }

    /// What was read, when nothing is wrong.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with all mistakes.
    pub fn none_or<T>(self, read: T) -> Result<T, Status> {
        if self.0.is_empty() {
            Ok(read)
        } else {
            Err(Status::invalid_argument(self.0.join("; ")))
        }
    }
}

/// A name that has to be there.
pub(crate) fn name<'a>(what: &str, text: &'a str, mistakes: &mut Mistakes) -> &'a str {
    bounded(what, text, NAME, mistakes)
}

/// An id that has to be there.
pub fn id<'a>(what: &str, text: &'a str, mistakes: &mut Mistakes) -> &'a str {
    bounded(what, text, ID, mistakes)
}

/// The same for a request that has nothing else to be wrong.
pub(crate) fn only_id(what: &str, text: &str) -> Result<(), Status> {
    let mut mistakes = Mistakes::default();
    id(what, text, &mut mistakes);
    mistakes.none_or(())
}

fn bounded<'a>(what: &str, text: &'a str, most: usize, mistakes: &mut Mistakes) -> &'a str {
    if text.is_empty() {
        mistakes.add(format!("{what} is missing"));
    } else if text.len() > most {
        mistakes.add(format!("{what} has {} bytes, at most {most} are allowed", text.len()));
    } else if text.contains(char::is_control) {
        mistakes.add(format!("{what} contains control characters"));
    }
    text
}

/// A map of bounded size.
pub(crate) fn map(what: &str, map: HashMap<String, String>, mistakes: &mut Mistakes) -> BTreeMap<String, String> {
    let bytes: usize = map.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAP {
        mistakes.add(format!("{what} have {bytes} bytes, at most {MAP} are allowed"));
    }
    map.into_iter().collect()
}

/// Secrets, which no message repeats. The CSI spec has 128 bytes for a string and 4 KiB for a map; the limits here are the model's.
pub(crate) fn secrets(secrets: HashMap<String, String>, mistakes: &mut Mistakes) -> VolumeSecrets {
    VolumeSecrets::new(secrets).unwrap_or_else(|error| {
        mistakes.add(error.to_string());
        VolumeSecrets::default()
    })
}

/// The same for a request that has nothing else to be wrong but an id.
pub(crate) fn id_and_secrets(what: &str, text: &str, found: HashMap<String, String>) -> Result<VolumeSecrets, Status> {
    let mut mistakes = Mistakes::default();
    id(what, text, &mut mistakes);
    let read = secrets(found, &mut mistakes);
    mistakes.none_or(read)
}

/// A number that is not negative.
pub(crate) fn number(what: &str, number: i64, mistakes: &mut Mistakes) -> u64 {
    u64::try_from(number).unwrap_or_else(|_| {
        mistakes.add(format!("{what} is negative: {number}"));
        0
    })
}
