//! Ends a series of changes in time: once AWS says to slow down, or most of the call's time is over, nothing more is asked.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

use crate::api_error::AwsError;

/// The rest comes again with the next call.
pub(crate) struct Brake {
    context: Context,
    /// So much of the call's time has to be left for a change.
    reserve: Duration,
    stopped: Option<Failure>,
    late: fn() -> Failure,
}

impl Brake {
    /// A third of the time is kept: AWS takes two requests of some 100 ms for each change, and what the last one takes has to fit in too. `late` is told of
    /// what is left for the next call.
    pub(crate) fn new(context: Context, late: fn() -> Failure) -> Self {
        Self {
            context,
            reserve: context.time_left() / 3,
            stopped: None,
            late,
        }
    }

    /// Makes a change, unless it is too late.
    pub(crate) fn run<T>(&mut self, step: impl FnOnce() -> Result<T, AwsError>) -> Result<T, Failure> {
        if self.stopped.is_none() && self.context.time_left() <= self.reserve {
            self.stopped = Some((self.late)());
        }
        if let Some(failure) = &self.stopped {
            return Err(failure.clone());
        }
        step().map_err(Failure::from).inspect_err(|failure| {
            if failure.kind == FailureKind::RateLimited {
                self.stopped = Some(failure.clone());
            }
        })
    }
}
