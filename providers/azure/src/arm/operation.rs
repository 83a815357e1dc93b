//! Operations: a change that the Resource Manager has accepted, and where its result is.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use super::{Arm, errors, path_of};

/// Poll interval of an operation where the cloud sets none.
const SOON: u64 = 2;

/// The cloud's advice is followed up to this, in seconds.
const LATEST: u64 = 60;

/// What a change has become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is done.
    Done,
    /// It runs.
    Running(Operation),
}

/// A change that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Path and query of where it is requested.
    pub link: String,
    /// When to poll.
    pub after: std::time::Duration,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    status: String,
    error: errors::Error,
}

impl Begun {
    /// By the headers of the answer to a change.
    pub(super) fn of(answer: &Response) -> Self {
        let operation = answer.header("azure-asyncoperation");
        // DELETE returns only this one; for PUT it is where the resource is.
        let location = answer.header("location").filter(|_| answer.status == 202);
        operation
            .or(location)
            .map_or(Self::Done, |link| Self::Running(Operation::at(link, answer)))
    }
}

impl Operation {
    fn at(link: &str, answer: &Response) -> Self {
        let advice = answer.header("retry-after").and_then(|text| text.parse().ok());
        Self {
            link: path_of(link).into(),
            after: std::time::Duration::from_secs(advice.unwrap_or(SOON).clamp(1, LATEST)),
        }
    }

    /// The status of this one now. One that is not found ended long ago.
    ///
    /// # Errors
    /// Why it failed; the cloud's error.
    pub fn look(arm: &Arm, link: &str) -> Result<Begun, Failure> {
        let answer = match arm.send(|http| http.get(link)) {
            Ok(answer) => answer,
            Err(failure) if errors::denies_resource(&failure) => return Ok(Begun::Done),
            Err(failure) => return Err(failure),
        };
        let running = || Ok(Begun::Running(Self::at(link, &answer)));
        if answer.status == 202 {
            return running();
        }
        // A location that is not 202 any more returns the result, or nothing.
        let Ok(status) = answer.json::<Status>() else {
            return Ok(Begun::Done);
        };
        match status.status.as_str() {
            "" | "Succeeded" => Ok(Begun::Done),
            "Failed" | "Canceled" => Err(errors::of_operation(&status.error, &status.status)),
            _ => running(),
        }
    }
}
