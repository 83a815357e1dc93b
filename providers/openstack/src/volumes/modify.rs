//! The type of a volume changes: Cinder's `os-retype`, for VolumeAttributesClasses.
//!
//! The volume's own backend has to be able to (`migration_policy: never`): Cinder would copy it to another one otherwise, which takes hours and is refused for one with
//! snapshots. Cinder accepts the request and may fail later without an error, the volume being as before: the token records that it was sent.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::api::wire::{Fields, Object};
use crate::volumes::class::TYPE;
use crate::volumes::disk::{Disk, Status, is_id, volume_path};
use crate::volumes::{POLL, waits};

/// Cinder's word for a volume whose type changes.
const RETYPING: &str = "retyping";

/// What is to be done for a type. Pure.
#[derive(Debug, PartialEq)]
enum Step {
    Done,
    Wait(String),
    Retype,
}

/// What is to be done so that the volume has this type.
///
/// # Errors
/// `failed-precondition` where Cinder gave it up, and when its type cannot change as it is.
fn step(disk: &Disk, kind: &str, was_asked: bool) -> Result<Step, Failure> {
    let (id, word) = (disk.id.as_str(), disk.status.word());
    match &disk.status {
        Status::Busy(word) if word == RETYPING => Ok(Step::Wait(format!("Cinder changes the type of volume {id}"))),
        _ if disk.kind == kind => Ok(Step::Done),
        Status::Free | Status::Attached if was_asked => Err(Failure::failed_precondition(format!(
            "Cinder did not change the type of volume {id} from {} to {kind}: its backend cannot",
            disk.kind
        ))),
        Status::Free | Status::Attached => Ok(Step::Retype),
        Status::Failed | Status::Broken(_) | Status::Deleting => {
            Err(Failure::failed_precondition(format!("volume {id} is in status {word}")))
        }
        Status::Creating | Status::Attaching | Status::Detaching | Status::Busy(_) => {
            Ok(Step::Wait(format!("volume {id} is in status {word}")))
        }
    }
}

/// The type that a volume is to have; none for the one it has.
///
/// # Errors
/// `invalid` with a parameter that cannot change.
pub(super) fn wanted_type(parameters: &[Pair]) -> Result<Option<&str>, Failure> {
    known_parameters(parameters, &[TYPE])?;
    Ok(parameter(parameters, TYPE).filter(|kind| !kind.is_empty()))
}

impl VolumeModification for OpenStack {
    fn modify_volume(&self, id: &str, parameters: &[Pair], token: Option<&str>) -> Result<(), Failure> {
        let Some(kind) = wanted_type(parameters)? else {
            return Ok(());
        };
        let disk = self.disk(id)?;
        // Cinder describes volumes with the type's name.
        let kind = self.type_name(kind)?;
        match step(&disk, &kind, token == Some(RETYPING))? {
            Step::Done => Ok(()),
            Step::Wait(what) => Err(asked(token, what)),
            Step::Retype => {
                self.retype(&disk, &kind)?;
                Err(asked(
                    Some(RETYPING),
                    format!("Cinder changes the type of volume {id} to {kind}"),
                ))
            }
        }
    }
}

/// Not finished; whether it was requested stays in the token.
fn asked(token: Option<&str>, what: String) -> Failure {
    match token {
        Some(RETYPING) => Failure::pending(POLL, RETYPING, what),
        _ => waits(what),
    }
}

impl OpenStack {
    /// The name of a type that a class has by name or id.
    fn type_name(&self, kind: &str) -> Result<String, Failure> {
        if !is_id(kind) {
            return Ok(kind.into());
        }
        let call = self.api.get(Endpoint::BlockStorage, &format!("/types/{kind}"));
        let missing = || Failure::invalid(format!("parameter {TYPE} is \"{kind}\"; Cinder has no such type"));
        let response = call.send_present()?.ok_or_else(missing)?;
        call.parse(&response, |json| json.need_field("volume_type")?.need("name"))
    }

    fn retype(&self, disk: &Disk, kind: &str) -> Result<(), Failure> {
        let new = Object::new().text("new_type", kind).text("migration_policy", "never");
        let call = self
            .api
            .post(Endpoint::BlockStorage, &format!("{}/action", volume_path(&disk.id)));
        let sent = call.body(Object::new().object("os-retype", new)).send();
        sent.map(drop).map_err(|failure| match failure.kind {
            // No such type (the volume was there a moment ago), or it cannot be that of an attached volume: Cinder reports which.
            FailureKind::Invalid | FailureKind::NotFound => {
                Failure::invalid(format!("parameter {TYPE} is \"{kind}\"; {}", failure.message))
            }
            _ => failure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volumes::testing::recorded_volume;

    #[test]
    fn steps_follow_type_and_status() {
        let disk = Disk::read(&recorded_volume()).unwrap();
        let with = |status: Status| Disk { status, ..disk.clone() };
        assert_eq!(step(&disk, &disk.kind, false), Ok(Step::Done));
        assert_eq!(step(&disk, "fast", false), Ok(Step::Retype));
        assert_eq!(step(&with(Status::Free), "fast", false), Ok(Step::Retype));
        let given_up = step(&disk, "fast", true).unwrap_err();
        assert!(given_up.message.contains("fast"), "{given_up:?}");
        // The type may be shown before the change has ended.
        for kind in ["fast", &disk.kind] {
            let wait = step(&with(Status::Busy("retyping".into())), kind, true);
            assert!(matches!(wait, Ok(Step::Wait(_))), "{kind}");
        }
        for status in [Status::Creating, Status::Attaching, Status::Busy("extending".into())] {
            assert!(matches!(step(&with(status), "fast", false), Ok(Step::Wait(_))));
        }
        for status in [
            Status::Failed,
            Status::Deleting,
            Status::Broken("error_extending".into()),
        ] {
            assert_eq!(
                step(&with(status), "fast", false).unwrap_err().kind,
                FailureKind::FailedPrecondition
            );
        }
    }

    #[test]
    fn only_the_type_can_change() {
        assert_eq!(wanted_type(&[]), Ok(None));
        assert_eq!(wanted_type(&[Pair::new("type", "")]), Ok(None));
        assert_eq!(wanted_type(&[Pair::new("type", "fast")]), Ok(Some("fast")));
        let refused = wanted_type(&[Pair::new("iops", "3000")]).unwrap_err();
        assert!(
            refused.kind == FailureKind::Invalid && refused.message.contains("iops"),
            "{refused:?}"
        );
    }
}
