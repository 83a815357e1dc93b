//! Facts of the CSI drivers.

use cloudwit_controllers::report::cause::{Cause, CauseKind};
use cloudwit_csi::{FailedOperation, Operation};

use crate::status::causes::{Affected, Failing, HeldUp};
use crate::status::facts::{DriverFacts, VolumeFailure, VolumeOperation};
use crate::status::source::Now;
use crate::volumes::DriverSource;

/// A failure this old is history: the sidecar would have come again.
const RECENT: std::time::Duration = std::time::Duration::from_secs(600);

/// What a driver does and has failed at.
pub(super) fn facts(source: &DriverSource, now: Now) -> DriverFacts {
    let operation = |operation: Operation| VolumeOperation {
        work: operation.work,
        since: now.ago(operation.age),
        waits_for: operation.waits_for,
        next: operation.next.map(|next| now.after(next)),
        waiting: operation.waiting,
    };
    let failure = |failed: FailedOperation| VolumeFailure {
        work: failed.work,
        at: now.ago(failed.age),
        error: failed.error,
        times: failed.times,
    };
    let (all, failed) = (source.operations.all(), source.operations.failures());
    DriverFacts {
        driver: source.driver.clone(),
        provider: source.provider.clone(),
        operations: all.into_iter().map(operation).collect::<Vec<_>>().into(),
        failed: failed.into_iter().map(failure).collect::<Vec<_>>().into(),
    }
}

/// Operations that fail again and again.
pub(super) fn failures(source: &DriverSource) -> Vec<Failing> {
    let failed = source.operations.failures().into_iter();
    let again = failed.filter(|failed| failed.times > 1 && failed.age < RECENT);
    again.map(|failed| failing(&source.provider, failed)).collect()
}

fn failing(provider: &str, failed: FailedOperation) -> Failing {
    let affected = Affected {
        kind: "Volume",
        name: failed.work,
        explain: None,
    };
    Failing {
        provider: provider.to_owned(),
        cause: Cause::new(kind(failed.label), failed.error),
        since: None,
        held_up: HeldUp::Object("csi", affected),
    }
}

/// From the case of a failure ([`cloudwit_model::CloudError::label`]).
fn kind(label: &str) -> CauseKind {
    match label {
        "unavailable" => CauseKind::Unavailable,
        "denied" => CauseKind::Denied,
        "fault" | "invalid_response" => CauseKind::Fault,
        "rate_limited" => CauseKind::RateLimited,
        "invalid" | "out_of_range" => CauseKind::Object,
        _ => CauseKind::Cloud,
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_model::{CloudError, Failure};

    use super::*;

    #[test]
    fn labels_mean_what_the_failures_mean() {
        let reason = || "x".into();
        for failure in [
            Failure::Unavailable(reason()),
            Failure::Denied(reason()),
            Failure::InvalidResponse("x".into()),
            Failure::Invalid(reason()),
            Failure::OutOfRange(reason()),
            Failure::Exhausted(reason()),
            Failure::RateLimited {
                after: None,
                message: reason(),
            },
        ] {
            let error = CloudError::from(failure);
            assert_eq!(kind(error.label()), Cause::from(&error).kind, "{error}");
        }
    }
}
