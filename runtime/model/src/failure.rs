//! What can go wrong in a call, and when it is tried again.
//!
//! Two types on purpose: a [`Failure`] is the provider's considered answer, a [`ProviderFault`] means that the provider itself
//! misbehaved. Neither ever means that a machine is gone.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// When a failed call is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// With growing pauses, as for any error.
    Backoff,
    /// After exactly this time; not counted as a failure.
    After(Duration),
    /// Once as soon as possible, since another writer was faster and the next look usually sees it; from then on as [`Backoff`](Self::Backoff).
    Soon,
    /// At the longest pause: only a change by a person helps, and that usually shows as a change of the object.
    Slowly,
    /// Not at all until the object changes.
    Never,
}

/// Why, for people: the provider's text and the cloud's own code. Neither is ever matched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// The provider's text.
    pub message: String,
    /// The cloud's code, such as `InvalidSubnetID.NotFound`.
    pub code: Option<String>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.code {
            Some(code) if !self.message.contains(code.as_str()) => write!(f, " ({code})"),
            _ => Ok(()),
        }
    }
}

impl From<String> for Reason {
    fn from(message: String) -> Self {
        Self { message, code: None }
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// The provider's own answer that the request failed. The case decides what happens; `docs/reference/failures.md` has the table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// Something the call needs does not exist.
    #[error("not found: {0}")]
    NotFound(Reason),
    /// Something else has the requested name, address or port.
    #[error("already exists: {0}")]
    AlreadyExists(Reason),
    /// Not finished yet. Call again with the token.
    #[error("waiting: {message}")]
    Pending {
        /// When to call again.
        after: Duration,
        /// Handed back in the next call.
        token: String,
        /// What is being waited for.
        message: String,
    },
    /// The cloud throttles requests.
    #[error("rate limited: {message}")]
    RateLimited {
        /// The cloud's advice.
        after: Option<Duration>,
        /// For people.
        message: Reason,
    },
    /// Credentials or permissions do not suffice.
    #[error("denied: {0}")]
    Denied(Reason),
    /// Can never succeed unchanged.
    #[error("invalid: {0}")]
    Invalid(Reason),
    /// A concurrent change.
    #[error("conflict: {0}")]
    Conflict(Reason),
    /// A quota, a pool or the cloud's capacity is used up.
    #[error("exhausted: {0}")]
    Exhausted(Reason),
    /// A value is beyond what the cloud allows.
    #[error("out of range: {0}")]
    OutOfRange(Reason),
    /// The cloud's objects are not in the state that the call needs.
    #[error("failed precondition: {0}")]
    FailedPrecondition(Reason),
    /// The cloud began and gave up.
    #[error("aborted: {0}")]
    Aborted(Reason),
    /// The cloud is unreachable or failed.
    #[error("unavailable: {0}")]
    Unavailable(Reason),
    /// Another controller is responsible.
    #[error("implemented elsewhere: {0}")]
    ImplementedElsewhere(Reason),
    /// What the provider answered about this object is invalid (an address that is none, an id that is not its own, a text beyond its limit), and
    /// nothing of it is used. The misbehaviour of a provider that costs one item of a list: what costs the whole call is a [`ProviderFault`]. No
    /// provider can answer it; the host makes it.
    #[error("invalid response: {0}")]
    InvalidResponse(String),
    /// Anything else.
    #[error("{0}")]
    Other(Reason),
}

impl Failure {
    /// When to try again. A rate limit without advice waits 10 s.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Pending { after, .. } => Retry::After(*after),
            Self::RateLimited { after, .. } => Retry::After(after.unwrap_or(Duration::from_secs(10))),
            Self::Denied(_) | Self::Invalid(_) | Self::OutOfRange(_) => Retry::Slowly,
            Self::Conflict(_) | Self::AlreadyExists(_) | Self::Aborted(_) => Retry::Soon,
            Self::ImplementedElsewhere(_) => Retry::Never,
            Self::NotFound(_)
            | Self::Exhausted(_)
            | Self::FailedPrecondition(_)
            | Self::Unavailable(_)
            | Self::InvalidResponse(_)
            | Self::Other(_) => Retry::Backoff,
        }
    }

    /// The case as a metric label; a closed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::AlreadyExists(_) => "already_exists",
            Self::Pending { .. } => "pending",
            Self::RateLimited { .. } => "rate_limited",
            Self::Denied(_) => "denied",
            Self::Invalid(_) => "invalid",
            Self::Conflict(_) => "conflict",
            Self::Exhausted(_) => "exhausted",
            Self::OutOfRange(_) => "out_of_range",
            Self::FailedPrecondition(_) => "failed_precondition",
            Self::Aborted(_) => "aborted",
            Self::Unavailable(_) => "unavailable",
            Self::ImplementedElsewhere(_) => "implemented_elsewhere",
            Self::InvalidResponse(_) => "invalid_response",
            Self::Other(_) => "other",
        }
    }

    /// The text for people.
    pub fn message_mut(&mut self) -> &mut String {
        match self {
            Self::NotFound(reason)
            | Self::AlreadyExists(reason)
            | Self::Denied(reason)
            | Self::Invalid(reason)
            | Self::Conflict(reason)
            | Self::Exhausted(reason)
            | Self::OutOfRange(reason)
            | Self::FailedPrecondition(reason)
            | Self::Aborted(reason)
            | Self::Unavailable(reason)
            | Self::ImplementedElsewhere(reason)
            | Self::Other(reason)
            | Self::RateLimited { message: reason, .. } => &mut reason.message,
            Self::InvalidResponse(text) | Self::Pending { message: text, .. } => text,
        }
    }
}

/// How a provider misbehaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It trapped, panicked or exited.
    Trap,
    /// It used more CPU time or wall time than it may.
    Deadline,
    /// It requested more memory than it may have.
    Memory,
    /// Its answer is invalid.
    BadAnswer,
    /// A call of an interface that it does not export.
    NotExported,
    /// The host itself failed (no room for the instance, for example).
    Host,
}

impl FaultKind {
    /// The kind as a metric label; a closed set.
    pub fn label(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::BadAnswer => "bad_answer",
            Self::NotExported => "not_exported",
            Self::Host => "host",
        }
    }
}

/// A provider misbehaved. It costs the one call in which it happened, which is retried with backoff.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("provider {provider:?} {}: {message}{}", kind_text(*kind), output_text(output))]
pub struct ProviderFault {
    /// Name and version of the provider, such as `sim 0.1.0`.
    pub provider: String,
    /// What happened.
    pub kind: FaultKind,
    /// In words.
    pub message: String,
    /// The last lines the guest wrote in this call; empty if it wrote nothing.
    pub output: String,
}

fn kind_text(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Trap => "crashed",
        FaultKind::Deadline => "took too long",
        FaultKind::Memory => "used too much memory",
        FaultKind::BadAnswer => "gave an invalid response",
        FaultKind::NotExported => "does not export the called interface",
        FaultKind::Host => "could not be called",
    }
}

fn output_text(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; its last output: {}", output.trim_end().replace('\n', " | "))
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CloudError {
    /// The provider answered with a failure.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The provider misbehaved.
    #[error(transparent)]
    Fault(#[from] ProviderFault),
    /// The call would have changed the cloud, and a dry run does not ([`ReadOnly`](crate::ReadOnly)).
    #[error("not done: this is a dry run")]
    DryRun,
}

impl CloudError {
    /// Whether a call may have failed because of a single item in it.
    pub fn is_about_items(&self) -> bool {
        use FaultKind::{BadAnswer, Deadline, Memory, Trap};
        matches!(self, Self::Fault(fault) if matches!(fault.kind, Trap | Deadline | Memory | BadAnswer))
    }

    /// Whether the token of an earlier pending answer stays good: the provider only could not be called. Any other failure may be what it fails on.
    pub fn keeps_token(&self) -> bool {
        matches!(
            self,
            Self::Failure(
                Failure::RateLimited { .. } | Failure::Unavailable(_) | Failure::Conflict(_) | Failure::Aborted(_)
            )
        )
    }

    /// Whether nothing has failed: the cloud works on it.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Failure(Failure::Pending { .. }))
    }

    /// When to try again; faults back off, and a dry run has nothing to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Failure(failure) => failure.retry(),
            Self::Fault(_) => Retry::Backoff,
            Self::DryRun => Retry::Never,
        }
    }

    /// The case as a metric label; a closed set.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Failure(failure) => failure.label(),
            Self::Fault(_) => "fault",
            Self::DryRun => "dry_run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_retry_class() {
        let second = Duration::from_secs(1);
        let pending = Failure::Pending {
            after: second,
            token: "t".into(),
            message: "building".into(),
        };
        assert_eq!(pending.retry(), Retry::After(second));
        assert_eq!(
            Failure::RateLimited {
                after: Some(second),
                message: Reason::default()
            }
            .retry(),
            Retry::After(second)
        );
        assert_eq!(
            Failure::RateLimited {
                after: None,
                message: Reason::default()
            }
            .retry(),
            Retry::After(Duration::from_secs(10))
        );
        assert_eq!(Failure::Denied(Reason::default()).retry(), Retry::Slowly);
        assert_eq!(Failure::Invalid(Reason::default()).retry(), Retry::Slowly);
        assert_eq!(Failure::Conflict(Reason::default()).retry(), Retry::Soon);
        assert_eq!(Failure::ImplementedElsewhere(Reason::default()).retry(), Retry::Never);
        assert_eq!(Failure::Unavailable(Reason::default()).retry(), Retry::Backoff);
        assert_eq!(Failure::InvalidResponse(String::new()).retry(), Retry::Backoff);
        assert_eq!(Failure::OutOfRange(Reason::default()).retry(), Retry::Slowly);
        for soon in [Failure::AlreadyExists, Failure::Aborted] {
            assert_eq!(soon(Reason::default()).retry(), Retry::Soon);
        }
        // A quota is raised, or something is freed, where Kubernetes does not see it.
        for backoff in [Failure::Exhausted, Failure::FailedPrecondition] {
            assert_eq!(backoff(Reason::default()).retry(), Retry::Backoff);
        }
    }

    #[test]
    fn code_is_shown_once() {
        let with_code = |message: &str| {
            Failure::Exhausted(Reason {
                message: message.into(),
                code: Some("OverQuota".into()),
            })
        };
        assert_eq!(with_code("no more").to_string(), "exhausted: no more (OverQuota)");
        assert_eq!(
            with_code("OverQuota: no more").to_string(),
            "exhausted: OverQuota: no more"
        );
    }

    #[test]
    fn a_fault_names_provider_kind_and_last_output() {
        let fault = ProviderFault {
            provider: "sim 0.1.0".into(),
            kind: FaultKind::Trap,
            message: "unreachable".into(),
            output: "thread panicked at src/lib.rs:3\nno machine\n".into(),
        };
        assert_eq!(
            fault.to_string(),
            "provider \"sim 0.1.0\" crashed: unreachable; its last output: thread panicked at src/lib.rs:3 | no machine"
        );
    }
}
