//! The changes: the only place that writes. What takes time ends the call with `pending`; its jobs are in the token.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Change, Steps};
use serde::{Deserialize, Serialize};

use super::address;
use crate::CloudStack;
use crate::api::{Call, Jobs};

/// Most jobs at once: the cloud has few threads for them, and a token 4 KiB.
const JOBS: usize = 16;

/// Most rounds of a call: a plan that never ends is a mistake.
const ROUNDS: usize = 16;

/// What comes next.
pub enum Next<T> {
    /// These changes, in whatever order.
    Calls(Vec<Call>),
    /// An address is associated by this call, and marked as the Service's.
    Associate {
        call: Call,
        uid: String,
        named: bool,
    },
    Done(T),
}

/// What goes from one call to the next.
#[derive(Serialize, Deserialize)]
struct Token {
    jobs: Vec<String>,
    /// Of [`Steps`].
    steps: String,
}

#[derive(Deserialize)]
struct Associated {
    #[serde(deserialize_with = "crate::api::wire::text")]
    id: String,
    #[serde(default, deserialize_with = "crate::api::wire::text")]
    jobid: String,
}

impl CloudStack {
    /// Makes one round of changes after the other until nothing is left or the cloud needs time.
    ///
    /// # Errors
    /// `pending` while jobs go on; why one failed; what `next` and the cloud say.
    pub(super) fn until_done<T>(
        &self,
        name: &str,
        token: Option<&str>,
        next: impl Fn() -> Result<Next<T>, Failure>,
    ) -> Result<T, Failure> {
        let token = token.and_then(|token| serde_json::from_str::<Token>(token).ok());
        let (jobs, steps) = token.map_or_else(Default::default, |token| (token.jobs, Steps::read(&token.steps)));
        let Jobs { running, failed } = self.api.look(jobs)?;
        // What failed may be made again.
        let steps = steps.filter(|_| !failed);
        let mut steps = steps.unwrap_or_else(|| Steps::new(name));
        if !running.is_empty() {
            return Err(wait(&steps, running));
        }
        for _ in 0..ROUNDS {
            let jobs = match next()? {
                Next::Done(done) => return Ok(done),
                Next::Calls(calls) => self.begin_all(&mut steps, &calls)?,
                Next::Associate { call, uid, named } => self.associate(&mut steps, &call, &uid, named)?,
            };
            if !jobs.is_empty() {
                return Err(wait(&steps, jobs));
            }
        }
        Err(Failure::conflict(
            "somebody else changes the load balancer back each time",
        ))
    }

    /// Begins changes; their jobs.
    fn begin_all(&self, steps: &mut Steps, calls: &[Call]) -> Result<Vec<String>, Failure> {
        let mut jobs = Vec::new();
        for call in calls.iter().take(JOBS) {
            let text = call.text();
            match steps.make(&self.context, &Change::new(&text), || self.api.begin(call)) {
                Ok(job) => jobs.extend(job.flatten()),
                // Deleted already.
                Err(failure) if failure.is_not_found() && call.command().starts_with("delete") => {}
                Err(failure) if jobs.is_empty() => return Err(with_token(failure)),
                // Those that were begun are waited for; this one is planned again.
                Err(failure) => {
                    warn!("a change was not begun: {}", failure.message());
                    break;
                }
            }
        }
        Ok(jobs)
    }

    /// The address is marked as soon as the cloud says which one it is: a process that ends here leaves none behind.
    fn associate(&self, steps: &mut Steps, call: &Call, uid: &str, named: bool) -> Result<Vec<String>, Failure> {
        let text = call.text();
        let made = steps.make(&self.context, &Change::new(&text), || self.api.send::<Associated>(call));
        let Some(made) = made.map_err(with_token)? else {
            return Ok(Vec::new());
        };
        let mut jobs = vec![made.jobid];
        let mark = self.api.begin(&address::mark(&made.id, uid, named));
        jobs.extend(mark.inspect_err(|_| self.give_back(&made.id))?);
        jobs.retain(|job| !job.is_empty());
        Ok(jobs)
    }
}

impl CloudStack {
    /// Gives an address back that could not be marked: nothing would find it again.
    fn give_back(&self, address: &str) {
        let call = Call::new("disassociateIpAddress").field("id", address);
        if let Err(failure) = self.api.begin(&call) {
            warn!(
                "address {address} is left behind, since it could be neither marked nor given back: {}",
                failure.message()
            );
        }
    }
}

/// `pending` with these jobs.
fn wait(steps: &Steps, jobs: Vec<String>) -> Failure {
    let failure = steps.pending("the cloud is changing the load balancer");
    match failure.kind {
        FailureKind::Pending(steps) => Failure {
            kind: FailureKind::Pending(written(jobs, steps)),
            ..failure
        },
        _ => failure,
    }
}

/// A call that has no time left says so in the words of [`Steps`].
fn with_token(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Pending(steps) => Failure {
            kind: FailureKind::Pending(written(Vec::new(), steps)),
            ..failure
        },
        _ => failure,
    }
}

fn written(jobs: Vec<String>, steps: String) -> String {
    serde_json::to_string(&Token { jobs, steps }).unwrap_or_default()
}
