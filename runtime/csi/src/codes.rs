//! From an answer of the cloud to a gRPC code.
//!
//! Sidecars take some codes for final: they drop the request, and a disk that is made later stays behind. So only an answer that leaves nothing under way
//! in the cloud gets one of those. `Internal` is never answered, since all sidecars take it for final.

use cloudwit_model::{CloudError, Failure};
use tonic::{Code, Status};

use crate::engine::operations::Refused;
use crate::engine::work::Trouble;

/// The gRPC status for the sidecar.
pub fn status(refused: Refused) -> Status {
    match refused {
        Refused::Trouble(trouble) => of_trouble(&trouble),
        Refused::Busy(other) => Status::aborted(format!("another operation is under way: {other}")),
        Refused::Deadline(waits_for) => Status::deadline_exceeded(format!("still waiting: {waits_for}")),
    }
}

/// The same for a question that changes nothing.
pub fn of_error(error: CloudError) -> Status {
    of_trouble(&Trouble {
        error,
        in_flight: false,
    })
}

fn of_trouble(trouble: &Trouble) -> Status {
    Status::new(code(trouble), trouble.error.to_string())
}

/// `docs/reference/failures.md` has the table.
fn code(trouble: &Trouble) -> Code {
    let failure = match &trouble.error {
        CloudError::Failure(failure) => failure,
        // How far the provider came is unknown.
        CloudError::Fault(_) => return Code::Aborted,
        CloudError::DryRun => return Code::FailedPrecondition,
    };
    match failure {
        Failure::Pending { .. } => Code::DeadlineExceeded,
        Failure::RateLimited { .. } | Failure::Unavailable(_) => Code::Unavailable,
        // Nothing is left of what was begun, by the contract. It would end so again.
        Failure::Exhausted(_) => Code::ResourceExhausted,
        // A fresh attempt, without the token, decides.
        _ if trouble.in_flight => Code::Aborted,
        Failure::NotFound(_) => Code::NotFound,
        Failure::AlreadyExists(_) => Code::AlreadyExists,
        Failure::Denied(_) => Code::PermissionDenied,
        Failure::Invalid(_) => Code::InvalidArgument,
        Failure::OutOfRange(_) => Code::OutOfRange,
        Failure::FailedPrecondition(_) | Failure::ImplementedElsewhere(_) => Code::FailedPrecondition,
        Failure::Conflict(_) | Failure::Aborted(_) | Failure::InvalidResponse(_) | Failure::Other(_) => Code::Aborted,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cloudwit_model::{FaultKind, ProviderFault, Reason};

    use super::*;

    /// Codes after which the provisioner keeps a record of the request (`external-provisioner` 6.3, `checkError`). After `ResourceExhausted` it keeps none.
    const NOT_FINAL: [Code; 4] = [
        Code::Cancelled,
        Code::DeadlineExceeded,
        Code::Unavailable,
        Code::Aborted,
    ];

    fn coded(error: impl Into<CloudError>, in_flight: bool) -> Code {
        let error = error.into();
        code(&Trouble { error, in_flight })
    }

    #[test]
    fn what_may_still_come_true_is_never_final() {
        let fault = ProviderFault {
            provider: "sim 0.1.0".into(),
            kind: FaultKind::Trap,
            message: String::new(),
            output: String::new(),
        };
        let pending = Failure::Pending {
            after: Duration::ZERO,
            token: String::new(),
            message: String::new(),
        };
        let limited = Failure::RateLimited {
            after: None,
            message: Reason::default(),
        };
        let reason = Reason::default;
        let errors: [CloudError; 8] = [
            fault.into(),
            pending.into(),
            limited.into(),
            Failure::Unavailable(reason()).into(),
            Failure::Conflict(reason()).into(),
            Failure::Aborted(reason()).into(),
            Failure::InvalidResponse(String::new()).into(),
            Failure::Other(reason()).into(),
        ];
        for error in errors {
            for in_flight in [false, true] {
                let code = coded(error.clone(), in_flight);
                assert!(NOT_FINAL.contains(&code), "{error:?}: {code:?}");
            }
        }
        for once_begun in [
            Failure::Denied,
            Failure::Invalid,
            Failure::NotFound,
            Failure::OutOfRange,
            Failure::FailedPrecondition,
        ] {
            assert_eq!(coded(once_begun(reason()), true), Code::Aborted);
        }
    }

    #[test]
    fn no_room_is_final_whether_or_not_it_had_begun() {
        for in_flight in [false, true] {
            assert_eq!(
                coded(Failure::Exhausted(Reason::default()), in_flight),
                Code::ResourceExhausted
            );
        }
    }

    #[test]
    fn what_the_user_has_to_mend_has_the_code_of_the_interface() {
        let reason = Reason::default;
        for (failure, expected) in [
            (Failure::NotFound(reason()), Code::NotFound),
            (Failure::AlreadyExists(reason()), Code::AlreadyExists),
            (Failure::Denied(reason()), Code::PermissionDenied),
            (Failure::Invalid(reason()), Code::InvalidArgument),
            (Failure::OutOfRange(reason()), Code::OutOfRange),
            (Failure::FailedPrecondition(reason()), Code::FailedPrecondition),
            (Failure::ImplementedElsewhere(reason()), Code::FailedPrecondition),
            (Failure::Exhausted(reason()), Code::ResourceExhausted),
        ] {
            assert_eq!(coded(failure.clone(), false), expected, "{failure:?}");
        }
        assert_eq!(coded(CloudError::DryRun, false), Code::FailedPrecondition);
    }

    #[test]
    fn people_read_what_is_under_way_and_what_is_waited_for() {
        let busy = status(Refused::Busy("delete volume v".into()));
        assert_eq!(
            (busy.code(), busy.message()),
            (Code::Aborted, "another operation is under way: delete volume v")
        );
        let late = status(Refused::Deadline("disk d is being made".into()));
        assert_eq!(
            (late.code(), late.message()),
            (Code::DeadlineExceeded, "still waiting: disk d is being made")
        );
    }
}
