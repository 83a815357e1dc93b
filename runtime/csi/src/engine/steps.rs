//! The cloud calls of an operation.

use std::sync::Arc;

use cloudwit_model::volume::{
    AccessMode, AttachedVolume, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, SizeRange, Snapshot,
    Volume, VolumeAttachment, VolumeSource,
};
use cloudwit_model::{Answer, CloudError, Failure, VolumeCloud, VolumeSecrets};

use crate::engine::batches::{Batches, Calls, Entry};
use crate::engine::work::{Done, Work};

/// The cloud, with calls about many at once where it supports them.
#[derive(Debug)]
pub(crate) struct Steps {
    cloud: Cloud,
    looks: Batches<Look>,
    moves: Batches<Move>,
}

/// A cloud that answers for batches.
#[derive(Clone)]
struct Cloud(Arc<dyn VolumeCloud>);

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cloud")
    }
}

impl Steps {
    /// Over this cloud. Needs a tokio runtime.
    pub fn start(cloud: Arc<dyn VolumeCloud>) -> Self {
        let cloud = Cloud(cloud);
        Self {
            looks: Batches::start(Arc::new(cloud.clone())),
            moves: Batches::start(Arc::new(cloud.clone())),
            cloud,
        }
    }

    /// Begins this work in the cloud with these secrets, or continues it.
    pub async fn perform(&self, work: &Work, secrets: &VolumeSecrets, token: Option<&str>) -> Result<Done, CloudError> {
        let cloud = &*self.cloud.0;
        match work {
            Work::Create(new) => self.create(new, secrets, token).await.map(Done::Created),
            Work::Delete(id) => cloud.delete_volume(id, token, secrets).await.map(|()| Done::Gone),
            Work::Attach(new) => self.attach(new, secrets, token).await.map(Done::Attached),
            Work::Detach(gone) => {
                let gone = Detachment {
                    token: token.map(str::to_owned),
                    ..gone.clone()
                };
                match self.moves.ask(Move::new(Moved::Detach(gone), secrets)).await {
                    // Without the volume or the machine there is nothing to detach.
                    Ok(_) | Err(CloudError::Failure(Failure::NotFound(_))) => Ok(Done::Gone),
                    Err(error) => Err(error),
                }
            }
            Work::Expand { volume, size, online } => self
                .expand(volume, *size, *online, secrets, token)
                .await
                .map(Done::Expanded),
            Work::Modify { volume, parameters } => {
                if token.is_none() {
                    self.existing(volume).await?;
                }
                cloud
                    .modify_volume(volume, parameters, token, secrets)
                    .await
                    .map(|()| Done::Gone)
            }
            Work::CreateSnapshot(new) => self.create_snapshot(new, secrets, token).await.map(Done::Snapshot),
            Work::DeleteSnapshot(id) => cloud.delete_snapshot(id, token, secrets).await.map(|()| Done::Gone),
        }
    }

    /// The volume with this id, if there is one.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>, CloudError> {
        self.looks.ask(Look(id.to_owned())).await
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// `not-found` when there is none.
    pub async fn existing(&self, id: &str) -> Result<Volume, CloudError> {
        let missing = || Failure::NotFound(format!("volume {id} does not exist").into()).into();
        self.volume(id).await?.ok_or_else(missing)
    }

    /// The snapshot with this id, if there is one.
    pub async fn snapshot(&self, id: &str, secrets: &VolumeSecrets) -> Result<Option<Snapshot>, CloudError> {
        let ids = [id.to_owned()];
        let mut found = self.cloud.0.get_snapshots(&ids, secrets).await?;
        Ok(found.pop().unwrap_or(Ok(None))?)
    }

    async fn create(
        &self,
        new: &NewVolume,
        secrets: &VolumeSecrets,
        token: Option<&str>,
    ) -> Result<Volume, CloudError> {
        let created = match &new.source {
            Some(source) => {
                let new = NewVolume {
                    size: self.size_for(source, new.size, secrets).await?,
                    ..new.clone()
                };
                self.cloud.0.create_volume(&new, token, secrets).await?
            }
            None => self.cloud.0.create_volume(new, token, secrets).await?,
        };
        match difference(&created, new) {
            Some(difference) => Err(Failure::AlreadyExists(
                format!(
                    "volume {} has the name {} already, and {difference}",
                    created.id, new.name
                )
                .into(),
            )
            .into()),
            None => Ok(created),
        }
    }

    /// The sizes of a volume that begins with this: at least as large. Without the source, the requested ones: the volume may have been made of it before, and the
    /// provider finds it by its name or returns what is missing.
    async fn size_for(
        &self,
        source: &VolumeSource,
        size: SizeRange,
        secrets: &VolumeSecrets,
    ) -> Result<SizeRange, CloudError> {
        let (what, least) = match source {
            VolumeSource::Snapshot(id) => (
                format!("snapshot {id}"),
                self.snapshot(id, secrets).await?.map(|snapshot| snapshot.size),
            ),
            VolumeSource::Volume(id) => (format!("volume {id}"), self.volume(id).await?.map(|volume| volume.size)),
        };
        let Some(least) = least else { return Ok(size) };
        if size.at_most.is_some_and(|most| most < least) {
            let reason = format!("{what} has {least} bytes, more than the new volume may have");
            return Err(Failure::OutOfRange(reason.into()).into());
        }
        let driver = self.cloud.0.volume_driver().await?;
        Ok(driver.size(Some(size.at_least.max(least)), size.at_most)?)
    }

    async fn attach(
        &self,
        new: &NewAttachment,
        secrets: &VolumeSecrets,
        token: Option<&str>,
    ) -> Result<AttachedVolume, CloudError> {
        if token.is_none() {
            let volume = self.existing(&new.volume).await?;
            may_attach(&volume.attachments, new)?;
        }
        let new = NewAttachment {
            token: token.map(str::to_owned),
            ..new.clone()
        };
        self.moves.ask(Move::new(Moved::Attach(new), secrets)).await
    }

    async fn expand(
        &self,
        id: &str,
        size: SizeRange,
        online: bool,
        secrets: &VolumeSecrets,
        token: Option<&str>,
    ) -> Result<ExpandedVolume, CloudError> {
        if token.is_none() {
            let volume = self.existing(id).await?;
            if volume.size >= size.at_least {
                let (size, on_node) = (volume.size, true);
                return Ok(ExpandedVolume { size, on_node });
            }
            if let (false, Some(attachment)) = (online, volume.attachments.first()) {
                let reason = format!(
                    "volume {id} is attached to {}, and this cloud's volumes grow only while they are not",
                    attachment.node_id
                );
                return Err(Failure::FailedPrecondition(reason.into()).into());
            }
        }
        self.cloud.0.expand_volume(id, size, token, secrets).await
    }

    async fn create_snapshot(
        &self,
        new: &NewSnapshot,
        secrets: &VolumeSecrets,
        token: Option<&str>,
    ) -> Result<Snapshot, CloudError> {
        let snapshot = self.cloud.0.create_snapshot(new, token, secrets).await?;
        if snapshot.volume == new.volume {
            return Ok(snapshot);
        }
        let reason = format!(
            "snapshot {} has the name {} already, and is of volume {}",
            snapshot.id, new.name, snapshot.volume
        );
        Err(Failure::AlreadyExists(reason.into()).into())
    }
}

/// How a volume with the requested name differs from the request.
fn difference(volume: &Volume, new: &NewVolume) -> Option<String> {
    if !new.size.contains(volume.size) {
        return Some(format!("has {} bytes", volume.size));
    }
    // Not every cloud records what a volume was made from.
    (volume.source.is_some() && volume.source != new.source).then(|| "began with something else".to_owned())
}

/// Whether a volume with these attachments can have this one beside them.
fn may_attach(attachments: &[VolumeAttachment], new: &NewAttachment) -> Result<(), Failure> {
    let (here, elsewhere): (Vec<_>, Vec<_>) = attachments
        .iter()
        .partition(|attachment| attachment.node_id == new.node_id);
    if here.iter().any(|attachment| attachment.read_only != new.read_only) {
        let how = if new.read_only {
            "to be written to"
        } else {
            "for reading only"
        };
        let reason = format!("volume {} is attached to {} already, {how}", new.volume, new.node_id);
        return Err(Failure::AlreadyExists(reason.into()));
    }
    match (new.volume_use.access, elsewhere.first()) {
        (AccessMode::OneNode | AccessMode::OneNodeReadOnly, Some(other)) => Err(Failure::FailedPrecondition(
            format!("volume {} is attached to {}", new.volume, other.node_id).into(),
        )),
        _ => Ok(()),
    }
}

/// A read of a volume, by id.
#[derive(Debug, Clone)]
struct Look(String);

impl Entry for Look {
    type Answer = Option<Volume>;
    type Kind = ();

    fn kind(&self) {}

    fn lane(&self) -> Option<&str> {
        None
    }
}

impl Calls<Look> for Cloud {
    async fn most(&self) -> Result<usize, CloudError> {
        Ok(self.0.volume_driver().await?.batch)
    }

    fn call<'a>(&'a self, entries: &'a [Look]) -> Answer<'a, Vec<Result<Option<Volume>, Failure>>> {
        Box::pin(async move {
            let ids: Vec<String> = entries.iter().map(|Look(id)| id.clone()).collect();
            self.0.get_volumes(&ids).await
        })
    }
}

/// A volume that comes to a machine or leaves it, with the secrets of its request.
#[derive(Debug, Clone)]
struct Move {
    moved: Moved,
    secrets: VolumeSecrets,
}

#[derive(Debug, Clone)]
enum Moved {
    Attach(NewAttachment),
    Detach(Detachment),
}

impl Move {
    fn new(moved: Moved, secrets: &VolumeSecrets) -> Self {
        let secrets = secrets.clone();
        Self { moved, secrets }
    }
}

/// Whether it is attached or detached.
#[derive(Debug, PartialEq, Eq)]
enum Direction {
    Attach,
    Detach,
}

impl Entry for Move {
    type Answer = AttachedVolume;
    /// A call has one set of secrets.
    type Kind = (Direction, VolumeSecrets);

    fn kind(&self) -> Self::Kind {
        let direction = match self.moved {
            Moved::Attach(_) => Direction::Attach,
            Moved::Detach(_) => Direction::Detach,
        };
        (direction, self.secrets.clone())
    }

    fn lane(&self) -> Option<&str> {
        match &self.moved {
            Moved::Attach(NewAttachment { node_id, .. }) | Moved::Detach(Detachment { node_id, .. }) => Some(node_id),
        }
    }
}

impl Calls<Move> for Cloud {
    async fn most(&self) -> Result<usize, CloudError> {
        Calls::<Look>::most(self).await
    }

    fn call<'a>(&'a self, entries: &'a [Move]) -> Answer<'a, Vec<Result<AttachedVolume, Failure>>> {
        Box::pin(async move {
            // All are of one kind, so the secrets of the first are those of all.
            let secrets = entries.first().map(|one| one.secrets.clone()).unwrap_or_default();
            let (mut attach, mut detach) = (Vec::new(), Vec::new());
            for entry in entries {
                match &entry.moved {
                    Moved::Attach(new) => attach.push(new.clone()),
                    Moved::Detach(gone) => detach.push(gone.clone()),
                }
            }
            if detach.is_empty() {
                return self.0.attach_volumes(&attach, &secrets).await;
            }
            let answers = self.0.detach_volumes(&detach, &secrets).await?;
            let nothing = |()| AttachedVolume::default();
            Ok(answers.into_iter().map(|answer| answer.map(nothing)).collect())
        })
    }
}

#[cfg(test)]
mod tests;
