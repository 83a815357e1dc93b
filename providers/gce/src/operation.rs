//! Operations: what Compute Engine answers to every change, and where its result is.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use crate::api::{Api, errors};
use crate::links;

/// An operation as the cloud returns it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Operation {
    name: String,
    status: String,
    self_link: String,
    operation_type: String,
    target_link: String,
    error: Option<Errors>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Errors {
    errors: Vec<Error>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Error {
    code: String,
    message: String,
}

impl Operation {
    /// Where it is polled: none when it is done.
    ///
    /// # Errors
    /// Why it failed.
    pub fn running(&self) -> Result<Option<String>, Failure> {
        if self.status != "DONE" {
            return Ok(Some(links::tail(&self.self_link).into()));
        }
        let first = self.error.as_ref().and_then(|error| error.errors.first());
        match first {
            None => Ok(None),
            Some(error) => {
                let what = format!("{} of {}", self.operation_type, links::tail(&self.target_link));
                Err(errors::of_operation(&what, &error.code, &error.message))
            }
        }
    }

    /// Its status now. One that is not found ended long ago.
    ///
    /// # Errors
    /// Why it failed; the cloud's error.
    pub fn look(api: &Api, path: &str) -> Result<Option<String>, Failure> {
        match api.find(path)? {
            None => Ok(None),
            Some(value) => {
                let operation: Self = serde_json::from_value(value)
                    .map_err(|mistake| Failure::other(format!("the operation {path} cannot be read: {mistake}")))?;
                operation.running()
            }
        }
    }
}
