//! Webhook `persistent-volume-label`: topology labels and affinity for in-tree PersistentVolumes.
//!
//! A PersistentVolume whose source names a disk of a cloud gets the labels of that disk and the affinity that follows from them, and is
//! refused when the cloud does not have the disk.
//!
//! What upstream's admission plugin PersistentVolumeLabel did (`k8s.io/kubernetes` up to 1.30).

pub mod gather;
pub mod patch;
pub mod question;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt as _;

use crate::webhook::review::{Answer, Request};
use crate::webhook::volume_label::gather::Gatherer;
use crate::webhook::volume_label::question::Question;

/// The PersistentVolume that is created; none when the request is about something else.
///
/// # Errors
/// When the object is no PersistentVolume.
pub fn created(request: &Request<'_>) -> Result<Option<PersistentVolume>, String> {
    let is_volume = request.resource.group.is_empty() && request.resource.resource == "persistentvolumes";
    if !is_volume || !request.sub_resource.is_empty() || request.operation != "CREATE" {
        return Ok(None);
    }
    let Some(object) = request.object else {
        return Ok(None);
    };
    let read = serde_json::from_str(object.get());
    read.map(Some)
        .map_err(|error| format!("the object is not a PersistentVolume: {error}"))
}

/// What becomes of it.
pub async fn review(volume: &PersistentVolume, gatherer: &Gatherer) -> Answer {
    let labels = match question::question(volume) {
        Question::Nothing => return Answer::Allowed(Vec::new()),
        Question::Trusted(labels) => Ok(labels),
        Question::Cloud(asked) => gatherer.labels(asked).await,
        Question::Wrong(why) => Err(why),
    };
    match labels.and_then(|labels| patch::patch(volume, &labels)) {
        Ok(patch) => Answer::Allowed(patch),
        Err(why) => Answer::Forbidden(format!(
            "PersistentVolume {:?} is not created: {why}",
            volume.name_any()
        )),
    }
}

#[cfg(test)]
mod tests;
