//! Parameters of classes, in any case: words, numbers, resource ids. Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use super::sku::{ALL, Sku};

/// Where resource ids begin.
const RESOURCE: &str = "/subscriptions/";

/// Parameters under their names in small letters; the empty ones are left out.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<Pair>);

impl Parameters {
    /// Reads those of a class.
    pub(crate) fn read(parameters: &[Pair]) -> Self {
        let given = parameters.iter().filter(|pair| !pair.value.is_empty());
        Self(
            given
                .map(|pair| Pair::new(pair.key.to_ascii_lowercase(), &pair.value))
                .collect(),
        )
    }

    /// Refuses those that are not known.
    ///
    /// # Errors
    /// `invalid` with them.
    pub(crate) fn known(&self, known: &[&str]) -> Result<(), Failure> {
        known_parameters(&self.0, known)
    }

    /// The value of one.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        parameter(&self.0, name)
    }

    /// A number above zero.
    ///
    /// # Errors
    /// `invalid` where it is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.parse::<u64>().ok().filter(|number| *number > 0);
        number
            .map(Some)
            .ok_or_else(|| wrong(name, text, "write a number above 0"))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// `invalid` for anything else.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.word(name, &["true", "false"])? == Some("true"))
    }

    /// One of these words, in any case.
    ///
    /// # Errors
    /// `invalid` for any other.
    pub(crate) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let word = words.iter().copied().find(|word| word.eq_ignore_ascii_case(text));
        let known = || wrong(name, text, &format!("it can be {}", words.join(", ")));
        word.map(Some).ok_or_else(known)
    }

    /// A resource id.
    ///
    /// # Errors
    /// `invalid` where it is none.
    pub(super) fn resource(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            Some(id) if !id.to_ascii_lowercase().starts_with(RESOURCE) => {
                Err(wrong(name, id, "write a resource id, /subscriptions/..."))
            }
            id => Ok(id.map(str::to_owned)),
        }
    }

    /// The type of disks.
    ///
    /// # Errors
    /// `invalid` for one that there is not.
    pub(crate) fn sku(&self) -> Result<Option<Sku>, Failure> {
        let names = ALL.map(|sku| sku.name);
        let one = self.word("skuname", &names)?;
        let same = self.word("storageaccounttype", &names)?;
        if let (Some(one), Some(other)) = (one, same)
            && one != other
        {
            return Err(wrong(
                "storageAccountType",
                other,
                &format!("and skuName is {one}; write one of them"),
            ));
        }
        Ok(one.or(same).and_then(Sku::of))
    }
}

/// The failure for a parameter that cannot have this value.
pub(super) fn wrong(name: &str, value: &str, what: &str) -> Failure {
    Failure::invalid(format!("parameter {name} is \"{value}\"; {what}"))
}
