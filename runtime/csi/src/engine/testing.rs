//! A cloud with volumes in memory whose answers a test sets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Volume, VolumeAttachment, VolumeDriver, VolumeNode,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer, CloudError, Failure, NodeRef, VolumeAbilities, VolumeCloud, VolumeSecrets};
use parking_lot::Mutex;
use tokio::time::sleep;

pub(crate) use crate::engine::samples::*;

/// How long a call of the cloud takes.
pub(crate) const LATENCY: Duration = Duration::from_millis(20);

type Script = Box<dyn FnMut(&str, Option<&str>) -> Option<CloudError> + Send>;

#[derive(Default)]
struct State {
    volumes: BTreeMap<String, Volume>,
    names: HashMap<String, String>,
    snapshots: BTreeMap<String, Snapshot>,
    calls: Vec<String>,
    /// Calls that had secrets.
    secret_calls: Vec<(String, VolumeSecrets)>,
    busy_nodes: Vec<String>,
    overlaps: usize,
    script: Option<Script>,
}

/// The cloud.
#[derive(Default)]
pub(crate) struct FakeCloud(Mutex<State>);

impl FakeCloud {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Answers each call that changes something with the result of this; `create vol` and the token it came with.
    pub fn script(&self, script: impl FnMut(&str, Option<&str>) -> Option<CloudError> + Send + 'static) {
        self.0.lock().script = Some(Box::new(script));
    }

    pub fn add(&self, id: &str, attached_to: Option<&str>) {
        let attachment = |node: &str| VolumeAttachment {
            node_id: node.into(),
            read_only: false,
        };
        let volume = Volume {
            attachments: attached_to.map(attachment).into_iter().collect(),
            ..volume(id, 2 * GIB)
        };
        self.0.lock().volumes.insert(id.into(), volume);
    }

    pub fn add_snapshot(&self, id: &str, size: u64) {
        let snapshot = Snapshot {
            id: id.into(),
            volume: "elsewhere".into(),
            size,
            created: 0,
            ready: true,
        };
        self.0.lock().snapshots.insert(id.into(), snapshot);
    }

    pub fn volume(&self, id: &str) -> Option<Volume> {
        self.0.lock().volumes.get(id).cloned()
    }

    pub fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
    }

    /// Calls that had secrets, with the value of their key `passphrase`.
    pub fn secret_calls(&self) -> Vec<(String, String)> {
        let state = self.0.lock();
        let calls = state.secret_calls.iter();
        let one = |(call, secrets): &(String, VolumeSecrets)| {
            let mut values = secrets.expose().filter(|(key, _)| *key == "passphrase");
            (call.clone(), values.next().unwrap_or_default().1.to_owned())
        };
        calls.map(one).collect()
    }

    /// Calls about one machine that were made at the same time.
    pub fn overlaps(&self) -> usize {
        self.0.lock().overlaps
    }

    async fn call(&self, call: String, token: Option<&str>, secrets: &VolumeSecrets) -> Result<(), CloudError> {
        sleep(LATENCY).await;
        let mut state = self.0.lock();
        state.calls.push(call.clone());
        if !secrets.is_empty() {
            state.secret_calls.push((call.clone(), secrets.clone()));
        }
        match state.script.as_mut().and_then(|script| script(&call, token)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn begin(&self, nodes: &[&str]) {
        let mut state = self.0.lock();
        let overlaps = nodes
            .iter()
            .filter(|node| state.busy_nodes.iter().any(|busy| busy == *node))
            .count();
        state.overlaps += overlaps;
        state.busy_nodes.extend(nodes.iter().map(|node| (*node).to_owned()));
    }

    fn end(&self, nodes: &[&str]) {
        self.0.lock().busy_nodes.retain(|busy| !nodes.contains(&busy.as_str()));
    }
}

impl VolumeCloud for FakeCloud {
    fn volume_abilities(&self) -> VolumeAbilities {
        VolumeAbilities {
            basic: true,
            expansion: true,
            listing: true,
            snapshots: true,
            modification: false,
            capacity: false,
        }
    }

    fn volume_driver(&self) -> Answer<'_, VolumeDriver> {
        Box::pin(async { Ok(driver()) })
    }

    fn volume_nodes<'a>(&'a self, _: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn get_volumes<'a>(&'a self, ids: &'a [String]) -> Answer<'a, Each<Option<Volume>>> {
        Box::pin(async move {
            self.call(format!("get {}", ids.join(" ")), None, &VolumeSecrets::default())
                .await?;
            let state = self.0.lock();
            Ok(ids.iter().map(|id| Ok(state.volumes.get(id).cloned())).collect())
        })
    }

    fn create_volume<'a>(
        &'a self,
        new: &'a NewVolume,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Volume> {
        Box::pin(async move {
            self.call(
                format!("create {} {}", new.name, new.size.at_least / GIB),
                token,
                secrets,
            )
            .await?;
            let mut state = self.0.lock();
            let id = format!("id-of-{}", new.name);
            state.names.insert(new.name.clone(), id.clone());
            let made = Volume {
                source: new.source.clone(),
                ..volume(&id, new.size.at_least)
            };
            Ok(state.volumes.entry(id).or_insert(made).clone())
        })
    }

    fn delete_volume<'a>(&'a self, id: &'a str, token: Option<&'a str>, secrets: &'a VolumeSecrets) -> Answer<'a, ()> {
        Box::pin(async move {
            self.call(format!("delete {id}"), token, secrets).await?;
            self.0.lock().volumes.remove(id);
            Ok(())
        })
    }

    fn attach_volumes<'a>(
        &'a self,
        attachments: &'a [NewAttachment],
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Each<AttachedVolume>> {
        Box::pin(async move {
            let nodes: Vec<&str> = attachments.iter().map(|new| new.node_id.as_str()).collect();
            self.begin(&nodes);
            let all: Vec<&str> = attachments.iter().map(|new| new.volume.as_str()).collect();
            let called = self
                .call(
                    format!("attach {}", all.join(" ")),
                    attachments[0].token.as_deref(),
                    secrets,
                )
                .await;
            self.end(&nodes);
            called?;
            let mut state = self.0.lock();
            for new in attachments {
                if let Some(volume) = state.volumes.get_mut(&new.volume) {
                    volume.attachments = vec![VolumeAttachment {
                        node_id: new.node_id.clone(),
                        read_only: new.read_only,
                    }];
                }
            }
            Ok(attachments.iter().map(|_| Ok(AttachedVolume::default())).collect())
        })
    }

    fn detach_volumes<'a>(&'a self, detachments: &'a [Detachment], secrets: &'a VolumeSecrets) -> Answer<'a, Each<()>> {
        Box::pin(async move {
            let nodes: Vec<&str> = detachments.iter().map(|gone| gone.node_id.as_str()).collect();
            self.begin(&nodes);
            let all: Vec<&str> = detachments.iter().map(|gone| gone.volume.as_str()).collect();
            let called = self
                .call(
                    format!("detach {}", all.join(" ")),
                    detachments[0].token.as_deref(),
                    secrets,
                )
                .await;
            self.end(&nodes);
            called?;
            let mut state = self.0.lock();
            let answers = detachments.iter().map(|gone| {
                let missing = || Failure::NotFound("no such volume".into());
                state
                    .volumes
                    .get_mut(&gone.volume)
                    .ok_or_else(missing)?
                    .attachments
                    .clear();
                Ok(())
            });
            Ok(answers.collect())
        })
    }

    fn expand_volume<'a>(
        &'a self,
        id: &'a str,
        size: SizeRange,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume> {
        Box::pin(async move {
            self.call(format!("expand {id}"), token, secrets).await?;
            let size = size.at_least;
            if let Some(volume) = self.0.lock().volumes.get_mut(id) {
                volume.size = size;
            }
            Ok(ExpandedVolume { size, on_node: true })
        })
    }

    fn list_volumes<'a>(&'a self, _: Option<&'a str>, _: u32) -> Answer<'a, Page<Volume>> {
        let items = self.0.lock().volumes.values().cloned().collect();
        Box::pin(async move { Ok(Page { items, next: None }) })
    }

    fn modify_volume<'a>(
        &'a self,
        id: &'a str,
        _: &'a BTreeMap<String, String>,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        Box::pin(async move { self.call(format!("modify {id}"), token, secrets).await })
    }

    fn volume_capacity<'a>(&'a self, _: &'a CapacityQuery) -> Answer<'a, Capacity> {
        Box::pin(async {
            Ok(Capacity {
                available: 0,
                largest: None,
            })
        })
    }

    fn create_snapshot<'a>(
        &'a self,
        new: &'a NewSnapshot,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot> {
        Box::pin(async move {
            self.call(format!("snapshot {}", new.name), token, secrets).await?;
            let id = format!("id-of-{}", new.name);
            let made = Snapshot {
                id: id.clone(),
                volume: new.volume.clone(),
                size: GIB,
                created: 0,
                ready: true,
            };
            Ok(self.0.lock().snapshots.entry(id).or_insert(made).clone())
        })
    }

    fn delete_snapshot<'a>(
        &'a self,
        id: &'a str,
        token: Option<&'a str>,
        secrets: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            self.call(format!("delete snapshot {id}"), token, secrets).await?;
            self.0.lock().snapshots.remove(id);
            Ok(())
        })
    }

    fn get_snapshots<'a>(&'a self, ids: &'a [String], _: &'a VolumeSecrets) -> Answer<'a, Each<Option<Snapshot>>> {
        let state = self.0.lock();
        let found = ids.iter().map(|id| Ok(state.snapshots.get(id).cloned())).collect();
        Box::pin(async move { Ok(found) })
    }

    fn list_snapshots<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Option<&'a str>,
        _: u32,
        _: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>> {
        let items = self.0.lock().snapshots.values().cloned().collect();
        Box::pin(async move { Ok(Page { items, next: None }) })
    }
}
