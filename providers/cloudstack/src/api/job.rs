//! Jobs: most changes are begun by a call and end later.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::{Api, Call, errors, wire};

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
    /// What the cloud says.
    pub fn begin(&self, call: &Call) -> Result<Option<String>, Failure> {
        let begun: Begun = self.send(call)?;
        Ok(Some(begun.jobid).filter(|job| !job.is_empty()))
    }

    /// Those of the jobs that go on.
    ///
    /// # Errors
    /// Why one failed; what the cloud says.
    pub fn running(&self, jobs: Vec<String>) -> Result<Vec<String>, Failure> {
        let mut running = Vec::new();
        for id in jobs {
            let job: Job = match self.send(&Call::new("queryAsyncJobResult").field("jobid", &id)) {
                // It ended long ago.
                Err(failure) if failure.is_not_found() => continue,
                job => job?,
            };
            match job.jobstatus {
                0 => running.push(id),
                1 => {}
                _ => match errors::of_job(job.doing(), &job.jobresult) {
                    // What was to be deleted is gone.
                    failure if failure.is_not_found() && job.deletes() => {}
                    failure => return Err(failure),
                },
            }
        }
        Ok(running)
    }
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
