//! Volumes grow, attached ones too: Cinder's `os-extend`.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::api::Endpoint;
use crate::api::wire::Object;
use crate::volumes::disk::{Status, volume_path};
use crate::volumes::{GIB, waits};

impl VolumeExpansion for OpenStack {
    fn expand_volume(&self, id: &str, size: SizeRange, _: Option<&str>) -> Result<Expanded, Failure> {
        let disk = self.disk(id)?;
        if disk.bytes() >= size.at_least {
            return Ok(Expanded {
                size: disk.bytes(),
                on_node: true,
            });
        }
        let gib = size.at_least.div_ceil(GIB);
        if size.at_most.is_some_and(|most| gib.saturating_mul(GIB) > most) {
            return Err(Failure::out_of_range(
                "volumes have whole GiB, of which there are none in this range",
            ));
        }
        match &disk.status {
            Status::Free | Status::Attached => {}
            Status::Broken(word) => {
                return Err(Failure::other(format!(
                    "volume {id} is in status {word}; an administrator of the cloud has to reset it (openstack volume set --state)"
                )));
            }
            Status::Failed | Status::Deleting => {
                return Err(Failure::failed_precondition(format!(
                    "volume {id} is in status {}",
                    disk.status.word()
                )));
            }
            passing => return Err(waits(format!("volume {id} is in status {}", passing.word()))),
        }
        let new = Object::new().number("new_size", i64::try_from(gib).unwrap_or(i64::MAX));
        let call = self
            .api
            .post(Endpoint::BlockStorage, &format!("{}/action", volume_path(id)));
        match call.body(Object::new().object("os-extend", new)).send() {
            Ok(_) => Err(waits(format!("Cinder extends volume {id} to {gib} GiB"))),
            // Some backends extend no attached volumes.
            Err(failure) if failure.kind == FailureKind::Invalid && disk.status == Status::Attached => {
                Err(Failure::failed_precondition(failure.message))
            }
            Err(failure) => Err(failure),
        }
    }
}
