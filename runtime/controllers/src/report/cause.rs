//! Cause of a failure: its kind and text. Failures of one cause are reported as one.

use std::sync::Arc;

use cloudwit_model::{CloudError, Failure};

/// Whose failure it is, and who can mend it. Closed, since people and programs distinguish outages from mistakes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseKind {
    /// The cloud is unreachable or failed.
    Unavailable,
    /// Credentials or permissions do not suffice.
    Denied,
    /// The provider misbehaved.
    Fault,
    /// The API server did not take a write.
    ApiServer,
    /// The cloud throttles requests.
    RateLimited,
    /// Anything else that the cloud answers: a machine not found, a quota, a conflict.
    Cloud,
    /// The object is invalid.
    Object,
    /// Nothing has failed: the cloud works on it.
    Pending,
}

impl CauseKind {
    /// The kind in JSON; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Denied => "denied",
            Self::Fault => "fault",
            Self::ApiServer => "api_server",
            Self::RateLimited => "rate_limited",
            Self::Cloud => "cloud",
            Self::Object => "object",
            Self::Pending => "pending",
        }
    }
}

impl From<&Failure> for CauseKind {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::Unavailable(_) => Self::Unavailable,
            Failure::Denied(_) => Self::Denied,
            Failure::InvalidResponse(_) => Self::Fault,
            Failure::RateLimited { .. } => Self::RateLimited,
            Failure::Pending { .. } => Self::Pending,
            Failure::Invalid(_) | Failure::OutOfRange(_) => Self::Object,
            Failure::NotFound(_)
            | Failure::AlreadyExists(_)
            | Failure::Conflict(_)
            | Failure::Exhausted(_)
            | Failure::FailedPrecondition(_)
            | Failure::Aborted(_)
            | Failure::ImplementedElsewhere(_)
            | Failure::Other(_) => Self::Cloud,
        }
    }
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What kind of failure it is.
    pub kind: CauseKind,
    /// In the words of who refused.
    pub reason: Arc<str>,
}

impl Cause {
    /// A cause in these words.
    pub fn new(kind: CauseKind, reason: impl Into<Arc<str>>) -> Self {
        let reason = reason.into();
        Self { kind, reason }
    }

    /// Whether something has failed, and the cloud does not just take its time.
    pub fn is_failure(&self) -> bool {
        self.kind != CauseKind::Pending
    }

    /// With at most so many bytes of the reason: thousands of objects may fail.
    #[must_use]
    pub fn cut(&self, bytes: usize) -> Self {
        if self.reason.len() <= bytes {
            return self.clone();
        }
        Self::new(self.kind, &self.reason[..self.reason.floor_char_boundary(bytes)])
    }
}

impl From<&Failure> for Cause {
    fn from(failure: &Failure) -> Self {
        Self::new(failure.into(), failure.to_string())
    }
}

impl From<&CloudError> for Cause {
    fn from(error: &CloudError) -> Self {
        match error {
            CloudError::Failure(failure) => failure.into(),
            CloudError::Fault(fault) => Self::new(CauseKind::Fault, fault.to_string()),
            CloudError::DryRun => Self::new(CauseKind::Cloud, error.to_string()),
        }
    }
}

#[cfg(test)]
impl From<&str> for Cause {
    fn from(reason: &str) -> Self {
        Self::new(CauseKind::Cloud, reason)
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_model::{FaultKind, ProviderFault, Reason};

    use super::*;

    #[test]
    fn outage_and_mistake_are_different_causes() {
        let kind = |failure: Failure| Cause::from(&CloudError::from(failure)).kind;
        assert_eq!(kind(Failure::Unavailable(Reason::default())), CauseKind::Unavailable);
        assert_eq!(kind(Failure::Invalid(Reason::default())), CauseKind::Object);
        assert_eq!(kind(Failure::Exhausted(Reason::default())), CauseKind::Cloud);
        assert_eq!(kind(Failure::InvalidResponse(String::new())), CauseKind::Fault);
        let fault = ProviderFault {
            provider: "sim 0.1.0".into(),
            kind: FaultKind::Trap,
            message: "unreachable".into(),
            output: String::new(),
        };
        let cause = Cause::from(&CloudError::from(fault));
        assert_eq!(
            (cause.kind, &*cause.reason),
            (CauseKind::Fault, "provider \"sim 0.1.0\" crashed: unreachable")
        );
    }

    #[test]
    fn a_long_reason_is_cut_between_letters() {
        let cause = Cause::from("ää");
        assert_eq!(&*cause.cut(3).reason, "ä");
        assert_eq!(cause.cut(4), cause);
    }
}
