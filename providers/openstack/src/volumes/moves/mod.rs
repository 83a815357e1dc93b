//! Volumes come to servers and leave them, many in a call: Nova does it, Cinder's status shows how far it is.
//!
//! ```text
//!   attach   the volumes once, then POST /servers/ID/os-volume_attachments for each that is nowhere   -> pending until Cinder shows it there
//!   detach   the volumes once, then DELETE for each that is there                                     -> pending until it is not there any more
//! ```
//!
//! What is to be done about one is decided from its description, and from Nova's where Cinder's lacks the server it comes to, so a lost token loses nothing.

mod coming;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::api::wire::Object;
use crate::api::{Endpoint, SHARED_VOLUMES};
use crate::volumes::disk::find::no_volume;
use crate::volumes::disk::{Disk, DiskAttachment, Status};
use crate::volumes::moves::coming::comes;
use crate::volumes::{BEGUN, waits};

/// When changes without time left are continued.
const NEXT: Duration = Duration::from_millis(100);

/// What is to be done for an attachment. Pure.
#[derive(Debug, PartialEq)]
enum Step {
    /// It is attached, with this name.
    Done(String),
    /// Cinder or Nova works on it.
    Wait(String),
    /// Cinder holds it for a server, and does not show for which.
    Reserved,
    /// It has to be requested.
    Attach,
}

/// What is to be done so that this server has the volume.
///
/// # Errors
/// `failed-precondition` when it cannot be attached as it is.
fn step(disk: &Disk, server: &str) -> Result<Step, Failure> {
    let (id, word) = (disk.id.as_str(), disk.status.word());
    let refused = |why: String| Err(Failure::failed_precondition(format!("volume {id} {why}")));
    match (&disk.status, disk.at(server)) {
        (Status::Detaching, Some(_)) => Ok(Step::Wait(format!("Nova still detaches volume {id} from {server}"))),
        // Whatever else is done to it, it is there.
        (_, Some(here)) => Ok(Step::Done(here.device.clone())),
        (Status::Free, None) => Ok(Step::Attach),
        (Status::Attached, None) if disk.shared => Ok(Step::Attach),
        (Status::Attached | Status::Detaching, None) if !disk.shared => match disk.attachments.first() {
            Some(elsewhere) => refused(format!("is attached to {}", elsewhere.server)),
            // Attached to no server, so to something of the cloud's own.
            None => refused(format!("is {word}, and no server has it")),
        },
        (Status::Failed | Status::Broken(_) | Status::Deleting, None) => refused(format!("is in status {word}")),
        (Status::Attaching, None) => Ok(Step::Reserved),
        (Status::Creating | Status::Attached | Status::Detaching | Status::Busy(_), None) => {
            Ok(Step::Wait(format!("volume {id} is in status {word}")))
        }
    }
}

fn attached(disk: &Disk, device: String) -> Attached {
    Attached {
        // Read by upstream's node plugin.
        context: vec![Pair::new("DevicePath", device)],
        // What the hypervisor gives the device; virtio shows the first 20 characters.
        devices: vec![Device::Serial(disk.id.clone())],
    }
}

fn attaches(disk: &Disk, server: &str) -> String {
    format!("Nova attaches volume {} to {server}", disk.id)
}

/// Where a server's volumes are.
pub(super) fn path(server: &str) -> String {
    format!("/servers/{}/os-volume_attachments", percent_encode(server))
}

/// Ends a series of changes in time: once a service throttles, or most of the call's time is over, nothing more is requested.
struct Brake {
    context: Context,
    reserve: Duration,
    stopped: Option<Failure>,
}

impl Brake {
    /// A third of the time is kept: Nova takes a second for some changes.
    fn new(context: Context) -> Self {
        Self {
            context,
            reserve: context.time_left() / 3,
            stopped: None,
        }
    }

    fn run<T>(&mut self, step: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        if self.stopped.is_none() && self.context.time_left() <= self.reserve {
            let what = "there were more volumes than fit into one call; the next one goes on";
            self.stopped = Some(Failure::pending(NEXT, BEGUN, what));
        }
        if let Some(failure) = &self.stopped {
            return Err(failure.clone());
        }
        step().inspect_err(|failure| {
            if failure.kind == FailureKind::RateLimited {
                self.stopped = Some(failure.clone());
            }
        })
    }
}

impl OpenStack {
    pub(super) fn attach(&self, attachments: &[NewAttachment]) -> Result<Each<Attached>, Failure> {
        let disks = self.disks(attachments.iter().map(|one| one.volume.as_str()))?;
        let mut brake = Brake::new(self.context);
        let mut one = |wanted: &NewAttachment| {
            let disk = disks.get(&wanted.volume)?.ok_or_else(|| no_volume(&wanted.volume))?;
            if wanted.read_only {
                return Err(Failure::invalid("Nova attaches no volume for reading only"));
            }
            match step(disk, &wanted.node_id)? {
                Step::Done(device) => Ok(attached(disk, device)),
                Step::Wait(what) => Err(waits(what)),
                Step::Reserved => Err(brake.run(|| self.reserved(disk, wanted))?),
                Step::Attach => {
                    brake.run(|| self.attach_one(disk, &wanted.node_id))?;
                    Err(comes(self.context.now(), attaches(disk, &wanted.node_id)))
                }
            }
        };
        Ok(attachments.iter().map(&mut one).collect())
    }

    /// What a volume waits for that Cinder holds for a server.
    ///
    /// # Errors
    /// `failed-precondition` when it does not come to this one; Nova's error.
    fn reserved(&self, disk: &Disk, wanted: &NewAttachment) -> Result<Failure, Failure> {
        let (id, server) = (disk.id.as_str(), wanted.node_id.as_str());
        match self.coming(id, server, wanted.token.as_deref())? {
            Some(since) => Ok(comes(since, attaches(disk, server))),
            // It may be attached to this one beside another.
            None if disk.shared => Ok(waits(format!("volume {id} is reserved for another server"))),
            None => Err(Failure::failed_precondition(format!(
                "volume {id} is reserved, but not for {server}: it comes to another server, or an attachment failed and left it so; an administrator of the cloud sets \
                 that back (openstack volume set --state available)"
            ))),
        }
    }

    fn attach_one(&self, disk: &Disk, server: &str) -> Result<(), Failure> {
        let volume = Object::new().text("volumeId", &disk.id);
        let mut call = self.api.post(Endpoint::Compute, &path(server));
        if disk.shared {
            call = call.header(SHARED_VOLUMES.0, SHARED_VOLUMES.1);
        }
        let sent = call.body(Object::new().object("volumeAttachment", volume)).send();
        sent.map(drop).map_err(|mut failure| {
            failure.kind = match failure.kind {
                FailureKind::NotFound => {
                    return Failure::not_found(format!("there is no server {server}: {}", failure.message));
                }
                // The volume was free a moment ago, or its zone is not the server's: Nova reports which.
                FailureKind::Invalid => FailureKind::FailedPrecondition,
                FailureKind::Denied if is_full(&failure.message) => FailureKind::Exhausted,
                kind => kind,
            };
            failure
        })
    }

    pub(super) fn detach(&self, detachments: &[Detachment]) -> Result<Each<()>, Failure> {
        let disks = self.disks(detachments.iter().map(|one| one.volume.as_str()))?;
        let mut brake = Brake::new(self.context);
        let mut one = |unwanted: &Detachment| {
            let Some(disk) = disks.get(&unwanted.volume)? else {
                return Ok(());
            };
            match disk.at(&unwanted.node_id) {
                Some(there) => self.detach_one(disk, there, &mut brake),
                None if disk.status == Status::Attaching => {
                    let token = unwanted.token.as_deref();
                    match brake.run(|| self.coming(&disk.id, &unwanted.node_id, token))? {
                        Some(since) => Err(comes(
                            since,
                            format!("{}; it is detached once it is there", attaches(disk, &unwanted.node_id)),
                        )),
                        None => Ok(()),
                    }
                }
                None => Ok(()),
            }
        };
        Ok(detachments.iter().map(&mut one).collect())
    }

    fn detach_one(&self, disk: &Disk, there: &DiskAttachment, brake: &mut Brake) -> Result<(), Failure> {
        let (id, server) = (disk.id.as_str(), there.server.as_str());
        let what = format!("Nova detaches volume {id} from {server}");
        match &disk.status {
            Status::Detaching | Status::Attaching => return Err(waits(what)),
            Status::Busy(word) => return Err(waits(format!("{what} once it is not {word} any more"))),
            _ => {}
        }
        let call = self.api.delete(Endpoint::Compute, &format!("{}/{id}", path(server)));
        match brake.run(|| call.send_present()) {
            Ok(Some(_)) => Err(waits(what)),
            // Nova has no such server, or no such volume at it: nothing uses it there.
            Ok(None) => Ok(()),
            Err(failure) if failure.kind == FailureKind::Invalid => Err(Failure::failed_precondition(failure.message)),
            Err(failure) => Err(failure),
        }
    }
}

/// Whether a refusal means that the server takes no further volume: Nova has no code for it (`TooManyDiskDevices`).
fn is_full(refusal: &str) -> bool {
    const WORDS: &[u8] = b"number of disk devices";
    refusal.as_bytes().windows(WORDS.len()).any(|part| part == WORDS)
}

#[cfg(test)]
mod tests;
