//! AWS's refusals: which code means what.
//!
//! Three shapes: `Response/Errors/Error` (EC2), `ErrorResponse/Error` (all others), and no XML at all (load balancers and proxies in
//! front of them). The code decides the case of the [`Failure`]; one that is not in the table goes by the HTTP status.

use std::ops::Deref;
use std::time::Duration;

use cloudwit_guest_sdk::classify::{Case, Codes};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

/// Most characters of AWS's own words that are passed on.
const QUOTED: usize = 400;

/// What the codes mean. Order counts: the first that fits. Quotas are no mistake of the caller, though AWS answers 400.
const CODES: Codes = Codes::new(&[
    ("RequestLimitExceeded", Case::RateLimited),
    ("Throttling*", Case::RateLimited),
    ("TooManyRequests*", Case::RateLimited),
    ("SlowDown", Case::RateLimited),
    ("BandwidthLimitExceeded", Case::RateLimited),
    ("AuthFailure", Case::Denied),
    ("UnauthorizedOperation", Case::Denied),
    ("AccessDenied*", Case::Denied),
    ("SignatureDoesNotMatch", Case::Denied),
    ("InvalidSignature*", Case::Denied),
    ("IncompleteSignature", Case::Denied),
    ("InvalidClientTokenId", Case::Denied),
    ("UnrecognizedClient*", Case::Denied),
    ("MissingAuthenticationToken*", Case::Denied),
    ("ExpiredToken*", Case::Denied),
    ("RequestExpired", Case::Denied),
    ("RequestTimeTooSkewed", Case::Denied),
    ("InvalidIdentityToken*", Case::Denied),
    ("IDPRejectedClaim", Case::Denied),
    ("OptInRequired", Case::Denied),
    ("Blocked", Case::Denied),
    ("OperationNotPermitted*", Case::Denied),
    ("PendingVerification", Case::Denied),
    ("InvalidInstanceID.NotFound", Case::NotFound),
    ("InvalidGroup.NotFound", Case::NotFound),
    ("InvalidGroupId.NotFound", Case::NotFound),
    ("InvalidRoute.NotFound", Case::NotFound),
    ("InvalidRouteTableID.NotFound", Case::NotFound),
    ("InvalidSubnetID.NotFound", Case::NotFound),
    ("InvalidVpcID.NotFound", Case::NotFound),
    ("InvalidPermission.NotFound", Case::NotFound),
    ("InvalidAllocationID.NotFound", Case::NotFound),
    ("InvalidNetworkInterfaceID.NotFound", Case::NotFound),
    ("LoadBalancerNotFound", Case::NotFound),
    ("TargetGroupNotFound", Case::NotFound),
    ("ListenerNotFound", Case::NotFound),
    ("PolicyNotFound", Case::NotFound),
    ("SubnetNotFound", Case::NotFound),
    ("CertificateNotFound", Case::NotFound),
    ("InvalidVolume.NotFound", Case::NotFound),
    ("InvalidSnapshot.NotFound", Case::NotFound),
    ("InvalidAttachment.NotFound", Case::NotFound),
    ("VolumeInUse", Case::FailedPrecondition),
    ("InvalidSnapshot.InUse", Case::FailedPrecondition),
    ("IdempotentParameterMismatch", Case::Conflict),
    ("IncorrectModificationState", Case::Conflict),
    ("VolumeModificationRateExceeded", Case::Conflict),
    ("ConcurrentSnapshotLimitExceeded", Case::Conflict),
    ("SnapshotCreationPerVolumeRateExceeded", Case::RateLimited),
    ("DependencyViolation", Case::Conflict),
    ("ResourceInUse", Case::Conflict),
    ("InvalidGroup.InUse", Case::Conflict),
    ("InvalidGroup.Duplicate", Case::AlreadyExists),
    ("InvalidPermission.Duplicate", Case::AlreadyExists),
    ("DuplicateLoadBalancerName", Case::AlreadyExists),
    ("DuplicateTargetGroupName", Case::AlreadyExists),
    ("DuplicateListener", Case::AlreadyExists),
    ("DuplicatePolicyName", Case::AlreadyExists),
    ("RouteAlreadyExists", Case::AlreadyExists),
    ("PriorRequestNotComplete", Case::Conflict),
    ("IncorrectState", Case::Conflict),
    ("IncorrectInstanceState", Case::Conflict),
    ("InternalError", Case::Unavailable),
    ("InternalFailure", Case::Unavailable),
    ("ServiceUnavailable*", Case::Unavailable),
    ("Unavailable", Case::Unavailable),
    ("IDPCommunicationError", Case::Unavailable),
    ("TooMany*", Case::Exhausted),
    ("RouteLimitExceeded", Case::Exhausted),
    ("RulesPerSecurityGroupLimitExceeded", Case::Exhausted),
    ("SecurityGroupLimitExceeded", Case::Exhausted),
    ("SecurityGroupsPerInterfaceLimitExceeded", Case::Exhausted),
    ("SecurityGroupsPerInstanceLimitExceeded", Case::Exhausted),
    ("AddressLimitExceeded", Case::Exhausted),
    ("TagLimitExceeded", Case::Exhausted),
    ("InsufficientFreeAddressesInSubnet", Case::Exhausted),
    ("AttachmentLimitExceeded", Case::Exhausted),
    ("VolumeLimitExceeded", Case::Exhausted),
    ("MaxIOPSLimitExceeded", Case::Exhausted),
    ("SnapshotLimitExceeded", Case::Exhausted),
    ("VolumeModificationSizeLimitExceeded", Case::Exhausted),
    ("InsufficientVolumeCapacity", Case::Exhausted),
    ("VolumeTypeNotAvailableInZone", Case::Exhausted),
    ("VolumeTypeNotAvailableInRegion", Case::Exhausted),
]);

/// A call that did not succeed. Boxed: it is on the way out of every call, and moving it about would be a good part of the component.
#[derive(Debug, Clone, PartialEq)]
pub struct AwsError(Box<Refusal>);

/// What is known of a call that did not succeed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// AWS's code; empty when there was no answer, or one without a code.
    pub code: String,
    /// The first line of AWS's own words, which may name a thousand ids.
    pub message: String,
    /// AWS's time when it answered, in seconds since 1970.
    pub date: Option<u64>,
    failure: Failure,
}

impl AwsError {
    /// The answer's XML, or why there is none. `action` is only for messages.
    ///
    /// # Errors
    /// For every answer that is no success, and for one that is cut.
    pub fn check(action: &str, response: Response) -> Result<Element, Self> {
        if (200..300).contains(&response.status) {
            return response.xml().map_err(|failure| Self::from(failure.context(action)));
        }
        let date = response.date();
        let answer = response.xml().ok();
        let error = answer.as_ref().and_then(|answer| {
            let error = answer.child("Error").or_else(|| answer.at(&["Errors", "Error"]))?;
            Some((error.text("Code")?, error.text("Message").unwrap_or_default()))
        });
        let Some((code, message)) = error else {
            let failure = response.success().err().unwrap_or_else(|| Failure::other("no error"));
            let mut error = Self::from(failure.context(action));
            error.0.date = date;
            return Err(error);
        };
        // Below its first line `SignatureDoesNotMatch` quotes the whole signed request, session token and all.
        let message = message.lines().next().unwrap_or_default();
        Err(Self(Box::new(Refusal {
            code: code.into(),
            message: message.into(),
            date,
            failure: CODES.failure(&response, code, beginning(message)).context(action),
        })))
    }

    /// What the operator has to mend: as [`Failure::invalid`].
    pub(crate) fn invalid(message: String) -> Self {
        Failure::invalid(message).into()
    }

    /// Not finished: as [`Failure::pending`], without a token.
    pub(crate) fn pending(after: Duration, message: String) -> Self {
        Failure::pending(after, "", message).into()
    }

    /// As [`Failure::not_found`].
    pub(crate) fn not_found(message: String) -> Self {
        Failure::not_found(message).into()
    }

    /// As [`Failure::conflict`].
    pub(crate) fn conflict(message: String) -> Self {
        Failure::conflict(message).into()
    }

    /// As [`Failure::other`].
    pub(crate) fn other(message: String) -> Self {
        Failure::other(message).into()
    }

    /// As [`Failure::unavailable`].
    pub(crate) fn unavailable(message: String) -> Self {
        Failure::unavailable(message).into()
    }

    /// What it is as a failure.
    pub(crate) fn kind(&self) -> &FailureKind {
        &self.failure.kind
    }

    /// Whether its code is one of these.
    pub fn is(&self, codes: &[&str]) -> bool {
        codes.contains(&self.code.as_str())
    }

    /// Whether a wrong clock can be the reason. EC2 returns `AuthFailure` for one that is far off.
    pub(crate) fn may_be_skew(&self) -> bool {
        self.is(&[
            "RequestExpired",
            "SignatureDoesNotMatch",
            "RequestTimeTooSkewed",
            "InvalidSignatureException",
            "AuthFailure",
        ])
    }

    /// Whether temporary credentials that ended can be the reason. EC2 returns `RequestExpired`.
    pub(crate) fn may_be_expiry(&self) -> bool {
        self.is(&[
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "InvalidClientTokenId",
            "AuthFailure",
        ])
    }
}

fn beginning(message: &str) -> &str {
    let end = message.char_indices().nth(QUOTED).map_or(message.len(), |(at, _)| at);
    message.get(..end).unwrap_or(message)
}

impl Deref for AwsError {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl From<Failure> for AwsError {
    fn from(failure: Failure) -> Self {
        Self(Box::new(Refusal {
            code: String::new(),
            message: String::new(),
            date: None,
            failure,
        }))
    }
}

impl From<AwsError> for Failure {
    fn from(error: AwsError) -> Self {
        error.0.failure
    }
}

#[cfg(test)]
mod tests;
