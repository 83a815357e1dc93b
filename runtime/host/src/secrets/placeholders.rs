//! Placeholders for secrets in the requests of one call: issued, found, filled.
//!
//! ```text
//!   guest: keys.placeholder("token", json)  -> grant? -> a random text, in the table of this call
//!   guest: request with that text           -> egress: destination? how many? how large? -> filled
//! ```
//!
//! Only texts that were issued in the same call are replaced. They are unguessable, so what the cluster or the cloud wrote can never be
//! one, whatever a provider decodes; what merely has their form (one of an earlier call, say) is no secret and is sent as it is. What was
//! filled in is never searched again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use memchr::memmem;
use parking_lot::{Mutex, MutexGuard};
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::net::destination::Destination;
use crate::secrets::encoding::{self, Encoding};
use crate::secrets::keys::{KeyError, Keyring, Withheld};
use crate::secrets::secret::Secret;

/// How every placeholder begins. It survives JSON, forms, XML and URLs unchanged, as do the digits that follow.
pub(super) const PREFIX: &str = "cloudwit-placeholder-";

/// Hexadecimal digits after the prefix: 128 bits.
const DIGITS: usize = 32;

/// Length of a placeholder, in bytes.
pub const LENGTH: usize = PREFIX.len() + DIGITS;

/// Most placeholders of one call. The same one requested again is not another. (`wit/v0.1/keys.wit`)
pub const MOST_PER_CALL: usize = 64;

/// Most places in one request, headers and body together, that are filled. (`wit/v0.1/keys.wit`)
pub const MOST_PER_REQUEST: usize = 16;

/// Most bytes of all texts of one request that have placeholders in them, filled. (`wit/v0.1/keys.wit`)
pub const FILLED_LIMIT: usize = 1 << 20;

/// Each filled place counts as a multiple of so many bytes, else a provider could find out a secret's length from what is refused.
pub(super) const STEP: usize = 4 << 10;

/// Bytes that are wiped when dropped.
pub type Filled = Zeroizing<Vec<u8>>;

/// What a placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StandsFor {
    /// The secret of this name.
    Secret(String, Encoding),
    /// The value of HTTP Basic, `Basic` included, from the names of the secrets for user and password.
    Basic(String, String),
}

impl fmt::Display for StandsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name, _) => write!(f, "{{secret {name}}}"),
            Self::Basic(user, password) => write!(f, "{{basic {user} {password}}}"),
        }
    }
}

type Table = BTreeMap<[u8; DIGITS], StandsFor>;

/// The placeholders of one call. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct Placeholders(Arc<Mutex<Table>>);

impl Placeholders {
    /// A placeholder for this. Checks the grants of its secrets, and that they can be written so; `hosts` is what to propose as their
    /// `hosts` where there are none.
    pub(crate) fn issue(&self, stands_for: StandsFor, keyring: &Keyring, hosts: &[String]) -> Result<String, KeyError> {
        let granted = |name: &str| keyring.placeholder_use(name, hosts);
        let (name, unfit) = match &stands_for {
            StandsFor::Secret(name, encoding) => (name, encoding.unfit(granted(name)?.expose())),
            StandsFor::Basic(user, password) => {
                let unfit = encoding::unfit_user(granted(user)?.expose());
                granted(password)?;
                (user, unfit)
            }
        };
        if let Some((place, why)) = unfit {
            let text = format!("secret {name:?} cannot be written {place}: {why}");
            return Err(KeyError::Unusable(text));
        }
        self.insert(stands_for)
    }

    /// The text for this, without any check of grants.
    pub(crate) fn insert(&self, stands_for: StandsFor) -> Result<String, KeyError> {
        let mut table = self.table();
        if let Some((digits, _)) = table.iter().find(|(_, known)| **known == stands_for) {
            return Ok(text(digits));
        }
        if table.len() == MOST_PER_CALL {
            return Err(KeyError::Unusable(format!(
                "the provider requested more than {MOST_PER_CALL} placeholders in one call"
            )));
        }
        let digits = random_digits()?;
        table.insert(digits, stands_for);
        Ok(text(&digits))
    }

    /// Whether one of them is in the text.
    pub fn any_in(&self, text: &[u8]) -> bool {
        places(&self.table(), text).next().is_some()
    }

    /// The text with the names of secrets in the places of placeholders, such as `{secret token}`, for people.
    pub(crate) fn named(&self, text: &[u8]) -> Vec<u8> {
        let table = self.table();
        let (mut named, mut done) = (Vec::with_capacity(text.len()), 0);
        for (at, stands_for) in places(&table, text) {
            named.extend_from_slice(&text[done..at]);
            named.extend_from_slice(stands_for.to_string().as_bytes());
            done = at + LENGTH;
        }
        named.extend_from_slice(&text[done..]);
        named
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

fn random_digits() -> Result<[u8; DIGITS], KeyError> {
    let (mut bytes, mut digits) = ([0; DIGITS / 2], [0; DIGITS]);
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::Unusable("the system has no random numbers for a placeholder".into()))?;
    HEXLOWER.encode_mut(&bytes, &mut digits);
    Ok(digits)
}

pub(super) fn text(digits: &[u8; DIGITS]) -> String {
    PREFIX
        .chars()
        .chain(digits.iter().map(|digit| char::from(*digit)))
        .collect()
}

/// Where placeholders of the table begin in the text, in one pass.
pub(super) fn places<'a>(table: &'a Table, text: &'a [u8]) -> impl Iterator<Item = (usize, &'a StandsFor)> {
    memmem::find_iter(text, PREFIX).filter_map(|at| {
        let digits = text.get(at + PREFIX.len()..at + LENGTH)?.try_into().ok()?;
        Some((at, table.get::<[u8; DIGITS]>(digits)?))
    })
}

/// Why a request is not filled. Never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FillError {
    /// A secret may not be used so.
    #[error(transparent)]
    Withheld(#[from] Withheld),
    /// Over [`MOST_PER_REQUEST`].
    #[error("it contains more than {MOST_PER_REQUEST} placeholders for secrets")]
    TooMany,
    /// Over [`FILLED_LIMIT`].
    #[error(
        "with its placeholders for secrets filled it has more than {FILLED_LIMIT} bytes (each counts as a multiple of {STEP})"
    )]
    TooLarge,
}

/// Fills the headers and the body of one request.
pub(crate) struct Filling<'a> {
    issued: &'a Placeholders,
    keyring: &'a Keyring,
    to: &'a Destination,
    places_left: usize,
    bytes_left: usize,
}

impl<'a> Filling<'a> {
    /// For a request to this destination.
    pub fn new(issued: &'a Placeholders, keyring: &'a Keyring, to: &'a Destination) -> Self {
        Self {
            issued,
            keyring,
            to,
            places_left: MOST_PER_REQUEST,
            bytes_left: FILLED_LIMIT,
        }
    }

    /// The text with all placeholders of the call filled; none when there is none in it. Nothing is allocated for it before its size is
    /// known and within what is left for the request.
    pub fn fill(&mut self, text: &[u8]) -> Result<Option<Filled>, FillError> {
        let table = self.issued.table();
        let mut values: Vec<(usize, Value<'_>)> = Vec::new();
        let (mut size, mut counted) = (text.len(), text.len());
        for (at, stands_for) in places(&table, text) {
            self.places_left = self.places_left.checked_sub(1).ok_or(FillError::TooMany)?;
            let value = Value::of(stands_for, self.keyring, self.to)?;
            let length = value.length();
            size = size - LENGTH + length;
            counted += length.next_multiple_of(STEP);
            values.push((at, value));
        }
        if values.is_empty() {
            return Ok(None);
        }
        self.bytes_left = self.bytes_left.checked_sub(counted).ok_or(FillError::TooLarge)?;
        let (mut filled, mut done) = (Zeroizing::new(Vec::with_capacity(size)), 0);
        for (at, value) in values {
            filled.extend_from_slice(&text[done..at]);
            value.write(&mut filled);
            done = at + LENGTH;
        }
        filled.extend_from_slice(&text[done..]);
        debug_assert_eq!(filled.len(), size, "a length was counted wrong");
        Ok(Some(filled))
    }
}

/// What is written in the place of one placeholder.
pub(super) enum Value<'k> {
    Secret(&'k Secret, Encoding),
    Basic(&'k Secret, &'k Secret),
}

impl<'k> Value<'k> {
    fn of(stands_for: &StandsFor, keyring: &'k Keyring, to: &Destination) -> Result<Self, Withheld> {
        Ok(match stands_for {
            StandsFor::Secret(name, encoding) => Self::Secret(keyring.placeholder(name, to)?, *encoding),
            StandsFor::Basic(user, password) => {
                Self::Basic(keyring.placeholder(user, to)?, keyring.placeholder(password, to)?)
            }
        })
    }

    fn length(&self) -> usize {
        match self {
            Self::Secret(secret, encoding) => encoding.length(secret.expose()),
            Self::Basic(user, password) => encoding::basic_length(user.expose(), password.expose()),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Secret(secret, encoding) => encoding.write(secret.expose(), out),
            Self::Basic(user, password) => encoding::write_basic(user.expose(), password.expose(), out),
        }
    }
}

#[cfg(test)]
mod tests;
