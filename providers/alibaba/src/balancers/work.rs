//! The changes: the only place that writes. Those of Network Load Balancers are jobs.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{self, Apply, Change, Jobs};
use cloudwit_guest_sdk::state::Keep;
use serde::Deserialize;

use crate::Alibaba;
use crate::api::{Call, NLB};

/// How long a load balancer that was just made is cached: the cloud's search by tags may be late.
const MADE: Keep = Keep::at_most(Duration::from_secs(600));

/// The action that makes a load balancer, of either kind.
pub const CREATE: &str = "CreateLoadBalancer";

/// What comes next.
pub type Next<T> = reconcile::Next<T, Call>;

/// The answer to a change.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Changed {
    job_id: String,
    load_balancer_id: String,
    /// As NLB writes it.
    loadbalancer_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Job {
    status: String,
}

/// The key under which the load balancer that was just made for a Service is cached.
pub fn made_key(name: &str) -> String {
    format!("made/{name}")
}

impl Apply for Alibaba {
    type Change = Call;

    fn text(call: &Call) -> String {
        call.text()
    }

    fn codes(text: &str) -> Change<'_> {
        Change::new(text).busy_when(FailureKind::Conflict)
    }

    fn deletes(call: &Call) -> bool {
        call.action.starts_with("Delete")
    }

    fn apply(&self, name: &str, call: &Call) -> Result<Vec<String>, Failure> {
        let made: Changed = self.api.send(call)?;
        if call.action != CREATE {
            return Ok(Some(made.job_id).into_iter().filter(|job| !job.is_empty()).collect());
        }
        let ids = [made.load_balancer_id, made.loadbalancer_id];
        let id = ids.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        self.context.state().put(&made_key(name), &id, MADE);
        // Its state is read from itself.
        Ok(Vec::new())
    }

    fn jobs(&self, jobs: Vec<String>) -> Result<Jobs, Failure> {
        let mut running = Vec::new();
        for id in jobs {
            let call = Call::new(NLB, "GetJobStatus").field("JobId", &id);
            match self.api.send::<Job>(&call) {
                Ok(job) if job.status.eq_ignore_ascii_case("processing") => running.push(id),
                Ok(job) if job.status.eq_ignore_ascii_case("succeeded") => {}
                // A kind with which the token is dropped: what it was to do is planned again.
                Ok(job) => {
                    return Err(Failure::other(format!(
                        "the cloud could not change the load balancer: job {id} is {}",
                        job.status
                    )));
                }
                // It ended long ago.
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Jobs { running, failed: false })
    }
}
