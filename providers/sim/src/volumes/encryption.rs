//! Encrypted disks: their passphrase is a secret of each request, from the Secret that the StorageClass names.
//!
//! The host writes it into the requests that make, attach and delete a disk; it never comes in here. Whether a disk is encrypted is known when it is made. After that
//! the cloud reports it: a passphrase goes along where the request has one, and where the cloud demands it the failure has the reason why there is none.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Sim;

/// Parameter of a StorageClass: `true`, or `false` (the default).
pub(super) const ENCRYPTED: &str = "encrypted";

/// Key of the passphrase in the Secret.
const PASSPHRASE: &str = "passphrase";

/// What the operator is shown.
pub(crate) fn passphrase_wish() -> SecretWish {
    let reason = "passphrase of encrypted disks, in the Secret that a StorageClass names, for requests to the API only";
    SecretWish::new(secret_name(PASSPHRASE), &[SecretUse::Placeholder], reason).optional()
}

/// Whether disks of the class are encrypted.
pub(super) fn is_encrypted(parameters: &[Pair]) -> Result<bool, Failure> {
    match parameter(parameters, ENCRYPTED) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Failure::invalid(format!(
            "parameter {ENCRYPTED} is \"{other}\"; it can be true or false"
        ))),
    }
}

/// A passphrase, or why there is none.
pub(super) struct Passphrase(Result<Placeholder, Failure>);

impl Sim {
    /// The passphrase of the request that this call belongs to.
    pub(super) fn passphrase(&self) -> Passphrase {
        Passphrase(self.keys.placeholder_as(&secret_name(PASSPHRASE), Encoding::Base64))
    }
}

impl Passphrase {
    /// Where it has to be there.
    pub(super) fn required(self) -> Result<Placeholder, Failure> {
        self.0
    }

    /// Where the cloud may do without it.
    pub(super) fn if_any(&self) -> Option<&Placeholder> {
        self.0.as_ref().ok()
    }

    /// What the cloud denied, with the reason where it is that there is no passphrase.
    pub(super) fn explain(&self, mut failure: Failure) -> Failure {
        if let (FailureKind::Denied, Err(why)) = (&failure.kind, &self.0) {
            failure.message = format!("{}; {}", failure.message, why.message);
        }
        failure
    }
}
