//! Sentences about a PersistentVolume, a claim, and the operations on a volume. Pure.
//!
//! All of them continue `PersistentVolume NAME ` or `PersistentVolumeClaim NAMESPACE/NAME `.

use cloudwit_controllers::report::explain::{span, times};
use cloudwit_csi::{FailedOperation, Operation, Subject};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::ObjectMeta;

/// What the object of a PersistentVolume shows by itself.
pub fn volume(volume: &PersistentVolume) -> Vec<String> {
    let (spec, status) = (volume.spec.as_ref(), volume.status.as_ref());
    let claim = spec.and_then(|spec| spec.claim_ref.as_ref()).map(|claim| {
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}/{}", part(&claim.namespace), part(&claim.name))
    });
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let mut said = vec![match (phase, claim) {
        ("Bound", Some(claim)) => format!("is bound to claim {claim}."),
        ("Released", Some(claim)) => format!("is released: claim {claim} is gone."),
        (phase, _) => match status.and_then(|status| status.message.as_deref()) {
            Some(message) => format!("is {phase}: {}.", message.trim_end_matches('.')),
            None => format!("is {phase}."),
        },
    }];
    said.push(match of_driver(volume) {
        Some((driver, handle)) => format!("is volume {handle} of driver {driver}."),
        None => "is not a CSI volume: Cloudwit has nothing to do with it.".into(),
    });
    said.extend(deletion(&volume.metadata));
    said
}

/// The CSI driver of a volume, and the volume's id there.
pub fn of_driver(volume: &PersistentVolume) -> Option<(&str, &str)> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    Some((&csi.driver, &csi.volume_handle))
}

/// What the object of a claim shows by itself.
pub fn claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let (spec, status) = (claim.spec.as_ref(), claim.status.as_ref());
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let class = spec
        .and_then(|spec| spec.storage_class_name.as_deref())
        .filter(|class| !class.is_empty());
    let mut said = vec![match (phase, bound_to(claim), class) {
        ("Bound", Some(volume), _) => format!("is bound to PersistentVolume {volume}."),
        ("Lost", Some(volume), _) => format!("has lost PersistentVolume {volume}."),
        (_, Some(volume), _) => format!("waits for PersistentVolume {volume}."),
        (_, None, Some(class)) => format!("has no volume yet; StorageClass {class} says who makes it, and when."),
        (_, None, None) => "has no volume yet, and no StorageClass.".into(),
    }];
    let conditions = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    for condition in conditions.iter().filter(|condition| condition.status == "True") {
        let message = condition.message.as_deref().filter(|message| !message.is_empty());
        said.push(match message {
            Some(message) => format!(
                "has the condition {}: {}.",
                condition.type_,
                message.trim_end_matches('.')
            ),
            None => format!("has the condition {}.", condition.type_),
        });
    }
    said.extend(deletion(&claim.metadata));
    said
}

/// The PersistentVolume that a claim has or waits for.
pub fn bound_to(claim: &PersistentVolumeClaim) -> Option<&str> {
    let volume = claim.spec.as_ref()?.volume_name.as_deref()?;
    (!volume.is_empty()).then_some(volume)
}

fn deletion(metadata: &ObjectMeta) -> Option<String> {
    metadata.deletion_timestamp.as_ref()?;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    Some(format!(
        "is being deleted and goes when its finalizers do: {}.",
        finalizers.join(", ")
    ))
}

/// Whether an operation is about the volume with this id.
pub fn is_about(subject: &Subject, handle: &str) -> bool {
    matches!(subject, Subject::Volume(id) if id == handle)
}

/// Whether an operation makes the volume of the claim with this uid: the provisioner names it `PREFIX-UID`
/// (`external-provisioner`, `makeVolumeName`).
pub fn makes(subject: &Subject, uid: &str) -> bool {
    matches!(subject, Subject::NewVolume(name) if !uid.is_empty() && name.strip_suffix(uid).is_some_and(|rest| rest.ends_with('-')))
}

/// What the operations on a volume wait for, and the last failure.
pub fn operations(
    running: &[Operation],
    failed: &[FailedOperation],
    is_about: impl Fn(&Subject) -> bool,
) -> Vec<String> {
    let running = running
        .iter()
        .filter(|operation| is_about(&operation.subject))
        .map(under_way);
    let failed = failed.iter().filter(|failed| is_about(&failed.subject)).map(failure);
    let mut said: Vec<String> = running.chain(failed).collect();
    if said.is_empty() {
        said.push("has no operation under way, and none has failed.".into());
    }
    said
}

fn under_way(operation: &Operation) -> String {
    let (work, since) = (&operation.work, span(operation.age));
    let why = operation.waits_for.as_deref();
    let state = match (why, operation.next) {
        (Some(why), Some(next)) => format!(
            "waits for the cloud since {since} ({work}): {why}; next call in {}.",
            span(next)
        ),
        _ => format!("is being worked on since {since} ({work}): a call to the cloud is in flight."),
    };
    match operation.waiting {
        0 => format!("{state} No request waits for it; the sidecar retries."),
        1 => format!("{state} 1 request waits for it."),
        many => format!("{state} {many} requests wait for it."),
    }
}

fn failure(failed: &FailedOperation) -> String {
    format!(
        "had a failure {} ago ({}){}: {}. The sidecar retries within five minutes.",
        span(failed.age),
        failed.work,
        times(failed.times),
        failed.error.trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn of_volume(value: serde_json::Value) -> Vec<String> {
        volume(&serde_json::from_value(value).unwrap())
    }

    fn of_claim(value: serde_json::Value) -> Vec<String> {
        claim(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_volume_says_whose_it_is_and_what_holds_it() {
        let spec = json!({
            "csi": { "driver": "disks.sim", "volumeHandle": "vol-1" },
            "claimRef": { "namespace": "default", "name": "data" },
        });
        let said = of_volume(json!({ "metadata": {}, "spec": spec, "status": { "phase": "Bound" } }));
        assert_eq!(
            said,
            [
                "is bound to claim default/data.",
                "is volume vol-1 of driver disks.sim."
            ]
        );
        let said = of_volume(json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["external-attacher/x"] },
            "spec": { "hostPath": { "path": "/x" } },
            "status": { "phase": "Failed", "message": "no." },
        }));
        assert_eq!(
            said,
            [
                "is Failed: no.",
                "is not a CSI volume: Cloudwit has nothing to do with it.",
                "is being deleted and goes when its finalizers do: external-attacher/x.",
            ]
        );
    }

    #[test]
    fn a_claim_says_what_it_has_or_who_makes_it() {
        let said = of_claim(json!({ "metadata": {}, "spec": { "storageClassName": "fast" } }));
        assert_eq!(
            said,
            ["has no volume yet; StorageClass fast says who makes it, and when."]
        );
        let conditions = json!([{ "type": "Resizing", "status": "True", "message": "in the cloud" }]);
        let said = of_claim(json!({
            "metadata": {},
            "spec": { "volumeName": "pv-1" },
            "status": { "phase": "Bound", "conditions": conditions },
        }));
        assert_eq!(
            said,
            [
                "is bound to PersistentVolume pv-1.",
                "has the condition Resizing: in the cloud."
            ]
        );
    }

    #[test]
    fn a_new_volume_belongs_to_the_claim_whose_uid_it_ends_with() {
        let new = |name: &str| Subject::NewVolume(name.into());
        assert!(makes(&new("pvc-1234"), "1234") && makes(&new("team-a-1234"), "1234"));
        assert!(!makes(&new("pvc-01234"), "1234") && !makes(&new("1234"), "1234") && !makes(&new("pvc-"), ""));
        assert!(!makes(&Subject::Volume("pvc-1234".into()), "1234"));
        assert!(is_about(&Subject::Volume("vol-1".into()), "vol-1") && !is_about(&new("vol-1"), "vol-1"));
    }

    #[test]
    fn operations_state_reason_and_next_attempt() {
        let subject = Subject::Volume("vol-1".into());
        let running = Operation {
            work: "attach volume vol-1 to node-1".into(),
            subject: subject.clone(),
            age: Duration::from_secs(42),
            waits_for: Some("the machine is being changed".into()),
            next: Some(Duration::from_secs(3)),
            waiting: 1,
        };
        let failed = FailedOperation {
            work: "attach volume vol-1 to node-1".into(),
            subject: subject.clone(),
            age: Duration::from_secs(190),
            error: "exhausted: 25 volumes are attached.".into(),
            label: "exhausted",
            times: 4,
        };
        let about = |subject: &Subject| is_about(subject, "vol-1");
        assert_eq!(
            operations(std::slice::from_ref(&running), std::slice::from_ref(&failed), about),
            [
                "waits for the cloud since 42 s (attach volume vol-1 to node-1): the machine is being changed; next call in 3 s. \
                 1 request waits for it.",
                "had a failure 3 m 10 s ago (attach volume vol-1 to node-1) (4 tries): exhausted: 25 volumes are attached. The sidecar \
                 retries within five minutes.",
            ]
        );
        let other = |subject: &Subject| is_about(subject, "vol-2");
        assert_eq!(
            operations(&[running], &[failed], other),
            ["has no operation under way, and none has failed."]
        );
    }
}
