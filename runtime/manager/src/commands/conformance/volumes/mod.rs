//! `volumes`: made once, found again, attached and detached in batches, gone.

mod extras;

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_host::Provider;
use cloudwit_model::volume::{
    AccessMode, AttachedVolume, Detachment, NewAttachment, NewVolume, SizeRange, Topology, Volume, VolumeDriver,
    VolumeFeature, VolumeNode, VolumeUse,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{CloudError, Failure, NodeRef, VolumeCloud as _, VolumeSecrets};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::{Trial, repeated};

const PART: &str = "volumes";

/// The name of the volume that is made, and the beginning of those beside it.
pub const NAME: &str = "cloudwit-conformance";

/// An id that no cloud gives out.
pub const FOREIGN: &str = "conformance/no such volume";

/// What everything is tried with.
pub struct VolumeTrial<'t> {
    pub trial: &'t Trial,
    pub driver: VolumeDriver,
    /// Machines that volumes are attached to.
    pub nodes: Vec<VolumeNode>,
    /// The secrets of its requests.
    pub none: VolumeSecrets,
}

/// Tries them. What is made is deleted in the end.
pub async fn run(trial: &Trial, report: &mut Report) {
    let Some(driver) = describe(trial, report).await else {
        return;
    };
    let nodes = nodes(trial, &driver, report).await;
    let none = VolumeSecrets::default();
    let trial = VolumeTrial {
        trial,
        driver,
        nodes,
        none,
    };
    let Some(made) = trial.made(report).await else { return };
    trial.again(&made, report).await;
    trial.found_in_order(&made, report).await;
    trial.unknown_parameter(report).await;
    if !trial.nodes.is_empty() {
        trial.attached(&made, report).await;
        trial.detached(&made, report).await;
    }
    extras::run(&trial, &made, report).await;
    trial.deleted(&made, report).await;
    trial.interrupted(report).await;
}

async fn describe(trial: &Trial, report: &mut Report) -> Option<VolumeDriver> {
    let mut promise = Promise::of(PART, "describe is the same each time and needs no network");
    trial.faults.requests();
    let first = promise.answered(trial.provider.volume_driver().await);
    let second = promise.answered(trial.provider.volume_driver().await);
    promise.holds(first == second, || format!("{first:?} and {second:?}"));
    let requests = trial.faults.requests();
    promise.holds(requests == 0, || format!("it made {requests} requests"));
    report.add(promise);
    first
}

/// The machines for the plugins on them.
async fn nodes(trial: &Trial, driver: &VolumeDriver, report: &mut Report) -> Vec<VolumeNode> {
    let text = "nodes has the order of the request, each with its place, and an unknown one fails alone";
    let mut promise = Promise::of(PART, text);
    let stranger = NodeRef {
        name: "conformance-no-such-machine".into(),
        ..NodeRef::default()
    };
    let asked: Vec<NodeRef> = [stranger].into_iter().chain(trial.nodes.iter().cloned()).collect();
    let answers = promise.answered(trial.provider.volume_nodes(&asked).await);
    let mut answers = answers.unwrap_or_default().into_iter();
    let unknown = answers.next();
    let is_missing = matches!(unknown, Some(Err(Failure::NotFound(_))) | None);
    promise.holds(is_missing, || format!("the unknown one: {unknown:?}"));
    let mut known = Vec::new();
    for (node, answer) in trial.nodes.iter().zip(answers) {
        if let Some(found) = promise.answered(answer) {
            let has = |key: &&String| !found.topology.0.contains_key(*key);
            let lacking: Vec<&String> = driver.topology_keys.iter().filter(has).collect();
            promise.holds(lacking.is_empty(), || {
                format!("{}: no value for {lacking:?}", node.name)
            });
            known.push(found);
        }
    }
    let ids: BTreeSet<&String> = known.iter().map(|node| &node.id).collect();
    promise.holds(ids.len() == known.len(), || {
        format!("an id is answered twice: {known:?}")
    });
    report.add(promise);
    known
}

/// The failure in an answer, by its label.
pub fn label<T>(answer: &Result<T, CloudError>) -> &'static str {
    match answer {
        Ok(_) => "success",
        Err(error) => error.label(),
    }
}

impl VolumeTrial<'_> {
    /// The smallest volume, where the first machine is.
    pub fn wanted(&self, name: &str) -> NewVolume {
        let places: Vec<Topology> = match self.driver.topology_keys.is_empty() {
            true => Vec::new(),
            false => self
                .nodes
                .first()
                .map(|node| node.topology.clone())
                .into_iter()
                .collect(),
        };
        NewVolume {
            name: name.to_owned(),
            size: self.size(self.driver.smallest),
            uses: vec![volume_use()],
            parameters: BTreeMap::new(),
            mutable_parameters: BTreeMap::new(),
            source: None,
            allowed: places.clone(),
            preferred: places,
            tags: BTreeMap::new(),
        }
    }

    /// Sizes from so many bytes.
    pub fn size(&self, at_least: u64) -> SizeRange {
        let sizes = self.driver.size(Some(at_least), None);
        sizes.unwrap_or(SizeRange {
            at_least,
            at_most: None,
        })
    }

    pub async fn create(&self, provider: &Provider, new: &NewVolume) -> Result<Volume, String> {
        let create =
            |token: Option<String>| async move { provider.create_volume(new, token.as_deref(), &self.none).await };
        self.trial.until_done(create).await
    }

    pub async fn delete(&self, id: &str) -> Result<(), String> {
        let delete = |token: Option<String>| async move {
            let token = token.as_deref();
            self.trial.provider.delete_volume(id, token, &self.none).await
        };
        self.trial.until_done(delete).await
    }

    /// The volume as it is now; none where there is none.
    pub async fn get(&self, id: &str, promise: &mut Promise) -> Option<Volume> {
        let ids = [id.to_owned()];
        let mut found = promise.answered(self.trial.provider.get_volumes(&ids).await)?;
        promise.answered(found.pop()?)?
    }

    async fn made(&self, report: &mut Report) -> Option<Volume> {
        let mut promise = Promise::of(
            PART,
            "create makes a volume, and get finds it, also with nothing remembered",
        );
        let made = promise.answered(self.create(&self.trial.provider, &self.wanted(NAME)).await);
        if let (Some(made), Some(fresh)) = (&made, promise.answered(self.trial.anew().await)) {
            for provider in [&self.trial.provider, &fresh] {
                let found = promise.answered(provider.get_volumes(std::slice::from_ref(&made.id)).await);
                let same =
                    |found: &Each<Option<Volume>>| matches!(found.as_slice(), [Ok(Some(found))] if found == made);
                promise.holds(found.as_ref().is_some_and(same), || {
                    format!("made was {made:?}, found is {found:?}")
                });
            }
        }
        report.add(promise);
        made
    }

    async fn again(&self, made: &Volume, report: &mut Report) {
        let mut promise = Promise::of(PART, "creating it again, with nothing remembered, makes no other one");
        if let Some(fresh) = promise.answered(self.trial.anew().await) {
            let again = promise.answered(self.create(&fresh, &self.wanted(NAME)).await);
            let same = again.as_ref().is_none_or(|again| again.id == made.id);
            promise.holds(same, || format!("made was {made:?}, now it is {again:?}"));
        }
        report.add(promise);

        let mut promise = Promise::of(PART, "a volume of the same name and another size is already-exists");
        let other = NewVolume {
            size: self.size(made.size + self.driver.size_step),
            ..self.wanted(NAME)
        };
        let refused = self.trial.provider.create_volume(&other, None, &self.none).await;
        promise.holds(label(&refused) == "already_exists", || format!("{refused:?}"));
        report.add(promise);
    }

    async fn found_in_order(&self, made: &Volume, report: &mut Report) {
        let mut promise = Promise::of(PART, "get has the order of the request, and an unknown id is not found");
        let ids = [FOREIGN, &made.id, "", &made.id].map(str::to_owned);
        if let Some(found) = promise.answered(self.trial.provider.get_volumes(&ids).await) {
            let right = |(id, answer): (&String, &Result<Option<Volume>, Failure>)| match answer {
                Ok(Some(volume)) => volume.id == *id,
                Ok(None) => *id != made.id,
                Err(_) => false,
            };
            promise.holds(ids.iter().zip(&found).all(right), || format!("{found:?}"));
        }
        report.add(promise);
    }

    async fn unknown_parameter(&self, report: &mut Report) {
        let mut promise = Promise::of(PART, "an unknown parameter is invalid, and makes nothing");
        let new = NewVolume {
            parameters: BTreeMap::from([("cloudwit-no-such-parameter".to_owned(), "x".to_owned())]),
            ..self.wanted("cloudwit-conformance-unknown")
        };
        let refused = self.trial.provider.create_volume(&new, None, &self.none).await;
        promise.holds(label(&refused) == "invalid", || format!("{refused:?}"));
        if let Ok(volume) = refused {
            promise.answered(self.delete(&volume.id).await);
        }
        report.add(promise);
    }

    fn attachment(&self, volume: &str, node: &VolumeNode, read_only: bool, token: Option<String>) -> NewAttachment {
        NewAttachment {
            volume: volume.to_owned(),
            node_id: node.id.clone(),
            read_only,
            volume_use: volume_use(),
            token,
        }
    }

    async fn attach(&self, volume: &str, node: &VolumeNode) -> Result<AttachedVolume, String> {
        let attach = |token: Option<String>| async move {
            let one = [self.attachment(volume, node, false, token)];
            only(self.trial.provider.attach_volumes(&one, &self.none).await?)
        };
        self.trial.until_done(attach).await
    }

    async fn detach(&self, volume: &str, node_id: &str) -> Result<(), String> {
        let detach = |token: Option<String>| async move {
            let one = Detachment {
                volume: volume.to_owned(),
                node_id: node_id.to_owned(),
                token,
            };
            only(self.trial.provider.detach_volumes(&[one], &self.none).await?)
        };
        self.trial.until_done(detach).await
    }

    async fn attached(&self, made: &Volume, report: &mut Report) {
        let (id, node) = (&made.id, &self.nodes[0]);
        let mut promise = Promise::of(PART, "attach attaches it, once more is the same, and get says where");
        let first = promise.answered(self.attach(id, node).await);
        let second = promise.answered(self.attach(id, node).await);
        promise.holds(first == second, || format!("{first:?} and {second:?}"));
        let found = self.get(id, &mut promise).await;
        let at = found.iter().flat_map(|found| &found.attachments);
        let at: Vec<&str> = at.map(|one| one.node_id.as_str()).collect();
        promise.holds(at == [node.id.as_str()], || format!("it is attached to {at:?}"));
        report.add(promise);

        let mut promise = Promise::of(
            PART,
            "attach has the order of the request, and a volume that does not exist fails alone",
        );
        let many = [FOREIGN, id].map(|volume| self.attachment(volume, node, false, None));
        if let Some(results) = promise.answered(self.trial.provider.attach_volumes(&many, &self.none).await) {
            let right = matches!(results.as_slice(), [Err(Failure::NotFound(_)), Ok(_)]);
            promise.holds(right, || format!("{results:?}"));
        }
        report.add(promise);

        if self.driver.has(VolumeFeature::ReadOnly) {
            let mut promise = Promise::of(PART, "attaching it there in another way is already-exists");
            let one = [self.attachment(id, node, true, None)];
            if let Some(results) = promise.answered(self.trial.provider.attach_volumes(&one, &self.none).await) {
                let right = matches!(results.as_slice(), [Err(Failure::AlreadyExists(_))]);
                promise.holds(right, || format!("{results:?}"));
            }
            report.add(promise);
        }
        if let Some(other) = self.nodes.get(1) {
            let mut promise = Promise::of(PART, "a volume of one machine is not attached to a second one");
            let one = [self.attachment(id, other, false, None)];
            if let Some(results) = promise.answered(self.trial.provider.attach_volumes(&one, &self.none).await) {
                let refused =
                    matches!(results.as_slice(), [Err(failure)] if !matches!(failure, Failure::Pending { .. }));
                promise.holds(refused, || format!("{results:?}"));
            }
            report.add(promise);
        }
        let mut promise = Promise::of(PART, "an attached volume is not deleted: failed-precondition");
        let refused = self.trial.provider.delete_volume(id, None, &self.none).await;
        promise.holds(label(&refused) == "failed_precondition", || format!("{refused:?}"));
        report.add(promise);
    }

    async fn detached(&self, made: &Volume, report: &mut Report) {
        let (id, node) = (&made.id, &self.nodes[0].id);
        let mut promise = Promise::of(PART, "detach detaches it, and what is not attached is detached");
        for (volume, node) in [
            (id.as_str(), node.as_str()),
            (id, node),
            (id, "conformance-none"),
            (FOREIGN, node),
        ] {
            promise.answered(self.detach(volume, node).await);
        }
        let found = self.get(id, &mut promise).await;
        let free = found.as_ref().is_some_and(|found| found.attachments.is_empty());
        promise.holds(free, || format!("{found:?}"));
        report.add(promise);
    }

    async fn deleted(&self, made: &Volume, report: &mut Report) {
        let mut promise = Promise::of(
            PART,
            "delete takes it away, and deleting what does not exist is success",
        );
        for id in [&made.id, &made.id, FOREIGN] {
            promise.answered(self.delete(id).await);
        }
        let left = self.get(&made.id, &mut promise).await;
        promise.holds(left.is_none(), || format!("left is {left:?}"));
        report.add(promise);
    }

    /// A cloud that refuses one request of seven: what is half made is found again, and what is half deleted goes.
    async fn interrupted(&self, report: &mut Report) {
        let text = "it is made once and deleted on a cloud that refuses one request of seven";
        let mut promise = Promise::of(PART, text);
        let name = format!("{NAME}-interrupted");
        let mut made = BTreeSet::new();
        self.trial.faults.each(7);
        for _ in 0..7 {
            let new = self.wanted(&name);
            let volume = repeated(|| self.create(&self.trial.provider, &new)).await;
            made.extend(promise.answered(volume).map(|volume| volume.id));
        }
        promise.holds(made.len() == 1, || format!("made are {made:?}"));
        for id in &made {
            promise.answered(repeated(|| self.delete(id)).await);
        }
        self.trial.faults.none();
        for id in &made {
            let left = self.get(id, &mut promise).await;
            promise.holds(left.is_none(), || format!("left is {left:?}"));
        }
        report.add(promise);
    }
}

fn volume_use() -> VolumeUse {
    VolumeUse {
        block: false,
        fs_type: None,
        access: AccessMode::OneNode,
    }
}

/// The answer about the only one.
fn only<T>(mut answers: Each<T>) -> Result<T, CloudError> {
    let missing = || Err(Failure::InvalidResponse("no answer for the only one".to_owned()));
    Ok(answers.pop().unwrap_or_else(missing)?)
}
