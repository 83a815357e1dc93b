//! Next step of leader election: acquire, renew, wait or stop. Pure.
//!
//! The rules are client-go's (`tools/leaderelection`): a Lease is free when it has no holder, or when it has not *changed before our own
//! eyes* for the time its holder wrote into it. The times in it are never compared with our clock, so clocks may differ.
//! Stricter than client-go in one thing: a leader that sees another holder stops at once, not at its deadline.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

/// The numbers of an election; flags `--leader-elect-*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait after they have seen the last sign of life.
    pub lease_duration: Duration,
    /// How long a leader continues without having renewed.
    pub renew_deadline: Duration,
    /// Pause between two attempts.
    pub retry_period: Duration,
}

impl Timing {
    /// How long one request may take, as upstream's election client (`max(1 s, renew deadline / 2)`), but never beyond the deadline.
    pub fn request_limit(self) -> Duration {
        (self.renew_deadline / 2)
            .max(Duration::from_secs(1))
            .min(self.renew_deadline)
    }

    /// Written into the Lease: whole seconds, rounded up, so that others never wait for less than is meant.
    fn recorded_seconds(self) -> i32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX).max(1)
    }
}

/// The Lease as it was last seen, and since when it is unchanged before our eyes.
#[derive(Debug, Clone)]
pub struct ObservedLease {
    /// The object.
    pub lease: Lease,
    /// When this state was seen first, on our clock.
    pub since: Duration,
}

impl ObservedLease {
    /// Takes a look into account: time begins anew only when something has changed.
    pub fn look(before: Option<Self>, lease: Lease, now: Duration) -> Self {
        match before {
            Some(before) if before.lease.spec == lease.spec && before.lease.metadata.uid == lease.metadata.uid => {
                Self {
                    lease,
                    since: before.since,
                }
            }
            _ => Self { lease, since: now },
        }
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Create the Lease. Fails if another one was faster.
    Create(LeaseSpec),
    /// Replace the Lease that was seen. Fails if it has changed.
    Replace(LeaseSpec),
    /// Another one holds it; look again later.
    Wait {
        /// Who.
        holder: String,
        /// When it becomes free if its holder stays silent.
        rest: Duration,
    },
    /// We led, and now another one holds it.
    Lost {
        /// Who.
        holder: String,
    },
}

/// Decides. `leading` is whether we have been leading up to now; `wall` is only written into the Lease, for people.
pub fn step(
    seen: Option<&ObservedLease>,
    identity: &str,
    timing: Timing,
    leading: bool,
    now: Duration,
    wall: Timestamp,
) -> Step {
    let taken = LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(timing.recorded_seconds()),
        acquire_time: Some(MicroTime(wall)),
        renew_time: Some(MicroTime(wall)),
        lease_transitions: Some(0),
        ..LeaseSpec::default()
    };
    let Some(seen) = seen else {
        return Step::Create(taken);
    };
    let spec = seen.lease.spec.clone().unwrap_or_default();
    let transitions = spec.lease_transitions.unwrap_or(0);
    let holder = spec.holder_identity.clone().unwrap_or_default();
    if holder == identity {
        return Step::Replace(LeaseSpec {
            acquire_time: spec.acquire_time.clone().or(taken.acquire_time.clone()),
            lease_transitions: Some(transitions),
            ..with_foreign_fields(taken, spec)
        });
    }
    if leading {
        return Step::Lost { holder };
    }
    let recorded = u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    let rest = (seen.since + Duration::from_secs(recorded)).saturating_sub(now);
    if !holder.is_empty() && !rest.is_zero() {
        return Step::Wait { holder, rest };
    }
    Step::Replace(LeaseSpec {
        lease_transitions: Some(transitions.saturating_add(1)),
        ..with_foreign_fields(taken, spec)
    })
}

/// The Lease for all to take, as client-go leaves it behind with `ReleaseOnCancel`. None when it is not ours.
pub fn released(lease: &Lease, identity: &str, wall: Timestamp) -> Option<LeaseSpec> {
    let spec = lease.spec.clone()?;
    (spec.holder_identity.as_deref() == Some(identity)).then_some(LeaseSpec {
        holder_identity: None,
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(wall)),
        renew_time: Some(MicroTime(wall)),
        ..spec
    })
}

/// The object to send: the one that was seen with another spec, so that the API server refuses it if it has changed since.
pub fn replacement(seen: &Lease, spec: LeaseSpec) -> Lease {
    Lease {
        metadata: ObjectMeta {
            managed_fields: None,
            ..seen.metadata.clone()
        },
        spec: Some(spec),
    }
}

/// Keeps fields that we do not set (`strategy`, `preferredHolder`).
fn with_foreign_fields(taken: LeaseSpec, before: LeaseSpec) -> LeaseSpec {
    LeaseSpec {
        holder_identity: taken.holder_identity,
        lease_duration_seconds: taken.lease_duration_seconds,
        acquire_time: taken.acquire_time,
        renew_time: taken.renew_time,
        ..before
    }
}

#[cfg(test)]
mod tests;
