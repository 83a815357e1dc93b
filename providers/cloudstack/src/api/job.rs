//! Jobs: most changes are begun by a call and end later.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Jobs;
use cloudwit_guest_sdk::state::Keep;
use serde::Deserialize;
use serde_json::Value;

use super::{Api, Call, errors, wire};

/// How long a job's failure counts as reported: longer than the controller pauses before it sends the same token back.
const TOLD: Keep = Keep::at_most(Duration::from_secs(3600));

#[derive(Deserialize)]
struct Begun {
    #[serde(default, deserialize_with = "wire::text")]
    jobid: String,
}

#[derive(Deserialize)]
struct Job {
    jobstatus: u8,
    #[serde(default)]
    jobresult: Value,
    #[serde(default)]
    cmd: String,
}

impl Api {
    /// Begins a change: the id of its job; none where it has ended already.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn begin(&self, call: &Call) -> Result<Option<String>, Failure> {
        let begun: Begun = self.send(call)?;
        Ok(Some(begun.jobid).filter(|job| !job.is_empty()))
    }

    /// Polls jobs. Of those that failed the first is reported, once: the controller keeps the token over a failure, and would get it again and again.
    ///
    /// # Errors
    /// Why one failed; the cloud's error.
    pub fn look(&self, jobs: Vec<String>) -> Result<Jobs, Failure> {
        let state = self.context.state();
        let (mut seen, mut first) = (Jobs::default(), None);
        for id in jobs {
            let job: Job = match self.send(&Call::new("queryAsyncJobResult").field("jobid", &id)) {
                // It ended long ago.
                Err(failure) if failure.is_not_found() => continue,
                job => job?,
            };
            match job.jobstatus {
                0 => seen.running.push(id),
                1 => {}
                _ => match errors::of_job(job.doing(), &job.jobresult) {
                    // What was to be deleted is gone.
                    failure if failure.is_not_found() && job.deletes() => {}
                    _ if state.get::<bool>(&key(&id)).is_some() => seen.failed = true,
                    failure => {
                        state.put(&key(&id), &true, TOLD);
                        first.get_or_insert(failure);
                    }
                },
            }
        }
        first.map_or(Ok(seen), Err)
    }
}

fn key(job: &str) -> String {
    format!("job-failed/{job}")
}

impl Job {
    fn deletes(&self) -> bool {
        let doing = self.doing();
        doing.starts_with("Delete") || doing.starts_with("Disassociate")
    }

    /// `org.apache.cloudstack.api.command.user.address.AssociateIPAddrCmd` is known as its last part.
    fn doing(&self) -> &str {
        self.cmd
            .rsplit('.')
            .next()
            .filter(|cmd| !cmd.is_empty())
            .unwrap_or("a job")
    }
}
