//! Functions about volumes: arguments, and answers as JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use cloudwit_host::Provider;
use cloudwit_model::volume::{
    AccessMode, AttachedVolume, CapacityQuery, Detachment, DeviceHint, NewAttachment, NewSnapshot, NewVolume, Page,
    Snapshot, Topology, Volume, VolumeDriver, VolumeFeature, VolumeNode, VolumeSource, VolumeUse,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    CloudError, Failure, InTreeSource, InTreeVolume, NodeRef, VolumeCloud as _, VolumeLabels as _, VolumeSecrets,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::calls::answer;
use crate::commands::calls::function::Function;

/// What a function about volumes is called with.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct VolumeInput {
    /// The id of a volume or snapshot. May be given again.
    #[arg(long = "id", value_name = "ID")]
    pub id: Vec<String>,

    /// The name of a volume or snapshot to create.
    #[arg(id = "volume_name", long = "name", value_name = "NAME")]
    pub name: Option<String>,

    /// The size of a volume, in bytes; without it the usual one.
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u64>,

    /// The machine that a volume is attached to or detached from, as volumes.nodes answers it.
    #[arg(long, value_name = "ID")]
    pub node_id: Option<String>,

    /// A parameter of a class, KEY=VALUE. May be given again.
    #[arg(long = "parameter", value_name = "KEY=VALUE", value_parser = pair)]
    pub parameter: Vec<(String, String)>,

    /// Where a volume is, KEY=VALUE. May be given again.
    #[arg(long = "topology", value_name = "KEY=VALUE", value_parser = pair)]
    pub topology: Vec<(String, String)>,

    /// The id of the snapshot that a volume is made of.
    #[arg(long, value_name = "ID")]
    pub from_snapshot: Option<String>,

    /// The id of the volume that a volume is made of.
    #[arg(long, value_name = "ID", conflicts_with = "from_snapshot")]
    pub from_volume: Option<String>,

    /// A secret of the request, KEY=FILE: the key by which the provider uses it as volume/KEY, and the file it is in. May be given again.
    #[arg(long = "secret", value_name = "KEY=FILE", value_parser = secret_file)]
    #[serde(skip)]
    pub secret: Vec<(String, PathBuf)>,

    /// Where a page of a list begins: `next` of the page before.
    #[arg(long, value_name = "TEXT")]
    pub after: Option<String>,

    /// The source by which a PersistentVolume names its disk, such as gcePersistentDisk.
    #[arg(long, value_name = "FIELD", value_parser = known_source)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Entries of a page.
const PAGE: u32 = 100;

fn source_named(field: &str) -> Option<InTreeSource> {
    InTreeSource::ALL.into_iter().find(|source| source.field() == field)
}

fn known_source(field: &str) -> Result<String, String> {
    let known = || InTreeSource::ALL.map(InTreeSource::field).join(", ");
    match source_named(field) {
        Some(source) => Ok(source.field().to_owned()),
        None => Err(format!("known: {}", known())),
    }
}

/// A key and a value as they stand on the command line.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn secret_file(text: &str) -> Result<(String, PathBuf), String> {
    let (key, file) = text.split_once('=').ok_or("give KEY=FILE")?;
    Ok((key.to_owned(), file.into()))
}

impl VolumeInput {
    /// Reads the secrets of the request. As in the files of grants one line break at the end is not part of a secret.
    pub fn secrets(&self) -> anyhow::Result<VolumeSecrets> {
        let read = |(key, file): &(String, PathBuf)| {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("--secret={key}={} cannot be read as text", file.display()))?;
            let text = text
                .strip_suffix('\n')
                .map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
            Ok((key.clone(), text.to_owned()))
        };
        let secrets = self.secret.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        VolumeSecrets::new(secrets).context("--secret")
    }

    /// What a function lacks.
    pub fn mistakes(&self, function: Function) -> Vec<String> {
        use Function::{
            AttachVolumes, CreateSnapshot, CreateVolume, DeleteSnapshot, DeleteVolume, DetachVolumes, ExpandVolume,
            GetSnapshots, GetVolumes, ModifyVolume, VolumeLabels,
        };
        let wants = |lacks: bool, what: &str| lacks.then(|| format!("{} needs {what}", function.name()));
        let one = matches!(
            function,
            DeleteVolume | ExpandVolume | CreateSnapshot | DeleteSnapshot | ModifyVolume
        );
        let many = matches!(
            function,
            AttachVolumes | DetachVolumes | GetVolumes | GetSnapshots | VolumeLabels
        );
        let named = matches!(function, CreateVolume | CreateSnapshot);
        let machine = matches!(function, AttachVolumes | DetachVolumes);
        [
            wants(one && self.id.len() != 1, "one id; add --id=ID"),
            wants(many && self.id.is_empty(), "ids; add --id=ID"),
            wants(named && self.name.is_none(), "a name; add --name=NAME"),
            wants(machine && self.node_id.is_none(), "a machine; add --node-id=ID"),
            wants(
                function == ExpandVolume && self.size.is_none(),
                "a size; add --size=BYTES",
            ),
            wants(
                function == VolumeLabels && self.source.as_deref().and_then(source_named).is_none(),
                "a source; add --source=FIELD",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        self.parameter.iter().cloned().collect()
    }

    fn places(&self) -> Option<Topology> {
        (!self.topology.is_empty()).then(|| Topology(self.topology.iter().cloned().collect()))
    }

    fn first_id(&self) -> &str {
        self.id.first().map_or("", String::as_str)
    }

    async fn new_volume(&self, provider: &Provider) -> Result<NewVolume, CloudError> {
        let snapshot = self.from_snapshot.clone().map(VolumeSource::Snapshot);
        let place: Vec<Topology> = self.places().into_iter().collect();
        Ok(NewVolume {
            name: self.name.clone().unwrap_or_default(),
            size: provider.volume_driver().await?.size(self.size, None)?,
            uses: vec![volume_use()],
            parameters: self.parameters(),
            mutable_parameters: BTreeMap::new(),
            source: snapshot.or_else(|| self.from_volume.clone().map(VolumeSource::Volume)),
            allowed: place.clone(),
            preferred: place,
            tags: BTreeMap::new(),
        })
    }

    /// Calls the function; none where it is not about volumes.
    pub async fn call(
        &self,
        function: Function,
        provider: &Provider,
        nodes: &[NodeRef],
        token: Option<&str>,
        secrets: &VolumeSecrets,
    ) -> Result<Option<Value>, CloudError> {
        let (id, node_id) = (self.first_id(), self.node_id.clone().unwrap_or_default());
        Ok(Some(match function {
            Function::VolumeDriver => driver(&provider.volume_driver().await?),
            Function::VolumeNodes => each(provider.volume_nodes(nodes).await?, node),
            Function::GetVolumes => each(provider.get_volumes(&self.id).await?, |found| {
                found.as_ref().map_or(Value::Null, volume)
            }),
            Function::CreateVolume => {
                let new = self.new_volume(provider).await?;
                volume(&provider.create_volume(&new, token, secrets).await?)
            }
            Function::DeleteVolume => provider.delete_volume(id, token, secrets).await.map(|()| json!({}))?,
            Function::AttachVolumes => {
                let one = |volume: &String| NewAttachment {
                    volume: volume.clone(),
                    node_id: node_id.clone(),
                    read_only: false,
                    volume_use: volume_use(),
                    token: token.map(str::to_owned),
                };
                let all: Vec<NewAttachment> = self.id.iter().map(one).collect();
                alone_or_each(provider.attach_volumes(&all, secrets).await?, attached)?
            }
            Function::DetachVolumes => {
                let one = |volume: &String| Detachment {
                    volume: volume.clone(),
                    node_id: node_id.clone(),
                    token: token.map(str::to_owned),
                };
                let all: Vec<Detachment> = self.id.iter().map(one).collect();
                alone_or_each(provider.detach_volumes(&all, secrets).await?, |()| json!({}))?
            }
            Function::ExpandVolume => {
                let size = provider.volume_driver().await?.size(self.size, None)?;
                let grown = provider.expand_volume(id, size, token, secrets).await?;
                json!({"size": grown.size, "onNode": grown.on_node})
            }
            Function::ListVolumes => page(&provider.list_volumes(self.after.as_deref(), PAGE).await?, volume),
            Function::CreateSnapshot => {
                let new = NewSnapshot {
                    name: self.name.clone().unwrap_or_default(),
                    volume: id.to_owned(),
                    parameters: self.parameters(),
                    tags: BTreeMap::new(),
                };
                snapshot(&provider.create_snapshot(&new, token, secrets).await?)
            }
            Function::DeleteSnapshot => provider.delete_snapshot(id, token, secrets).await.map(|()| json!({}))?,
            Function::GetSnapshots => each(provider.get_snapshots(&self.id, secrets).await?, |found| {
                found.as_ref().map_or(Value::Null, snapshot)
            }),
            Function::ListSnapshots => {
                let of = self.id.first().map(String::as_str);
                let after = self.after.as_deref();
                page(&provider.list_snapshots(of, after, PAGE, secrets).await?, snapshot)
            }
            Function::ModifyVolume => {
                let parameters = self.parameters();
                let modified = provider.modify_volume(id, &parameters, token, secrets).await;
                modified.map(|()| json!({}))?
            }
            Function::VolumeCapacity => {
                let query = CapacityQuery {
                    parameters: self.parameters(),
                    at: self.places(),
                    ..CapacityQuery::default()
                };
                let room = provider.volume_capacity(&query).await?;
                json!({"available": room.available, "largest": room.largest})
            }
            Function::LabelSources => {
                let sources = provider.label_sources().await?;
                sources.into_iter().map(InTreeSource::field).collect()
            }
            Function::VolumeLabels => {
                let source = self.source.as_deref().and_then(source_named);
                let one = |(source, id): (InTreeSource, &String)| InTreeVolume {
                    source,
                    id: id.clone(),
                    zone: None,
                };
                let all: Vec<InTreeVolume> = source
                    .iter()
                    .flat_map(|source| self.id.iter().map(|id| one((*source, id))))
                    .collect();
                each(provider.volume_labels(&all).await?, |labels| json!(labels))
            }
            _ => return Ok(None),
        }))
    }
}

fn volume_use() -> VolumeUse {
    VolumeUse {
        block: false,
        fs_type: None,
        access: AccessMode::OneNode,
    }
}

fn each<T>(answers: Each<T>, shown: impl Fn(&T) -> Value) -> Value {
    let one = |answer: &Result<T, Failure>| match answer {
        Ok(found) => shown(found),
        Err(failed) => answer::failure(failed).into(),
    };
    answers.iter().map(one).collect()
}

/// The failure about the only one is that of the call, so that a pending one is waited for.
fn alone_or_each<T>(mut answers: Each<T>, shown: impl Fn(&T) -> Value) -> Result<Value, CloudError> {
    match answers.len() {
        1 => match answers.remove(0) {
            Ok(only) => Ok(shown(&only)),
            Err(failed) => Err(failed.into()),
        },
        _ => Ok(each(answers, shown)),
    }
}

fn driver(driver: &VolumeDriver) -> Value {
    let features: Vec<&str> = driver.features.iter().copied().map(VolumeFeature::as_str).collect();
    json!({
        "name": driver.name, "topologyKeys": driver.topology_keys, "sizeStep": driver.size_step, "smallest": driver.smallest,
        "largest": driver.largest, "usual": driver.usual, "features": features, "batch": driver.batch,
    })
}

fn node(node: &VolumeNode) -> Value {
    json!({"id": node.id, "topology": node.topology.0, "maxVolumes": node.max_volumes})
}

fn volume(volume: &Volume) -> Value {
    let topology: Vec<&BTreeMap<String, String>> = volume.topology.iter().map(|place| &place.0).collect();
    let attachments = volume.attachments.iter();
    let attachments: Vec<Value> = attachments
        .map(|one| json!({"nodeID": one.node_id, "readOnly": one.read_only}))
        .collect();
    let source = volume.source.as_ref().map(|source| match source {
        VolumeSource::Snapshot(id) => json!({"snapshot": id}),
        VolumeSource::Volume(id) => json!({"volume": id}),
    });
    json!({
        "id": volume.id, "size": volume.size, "topology": topology, "source": source, "context": volume.context,
        "attachments": attachments,
    })
}

fn attached(attached: &AttachedVolume) -> Value {
    let device = |hint: &DeviceHint| match hint {
        DeviceHint::Serial(text) => json!({"serial": text}),
        DeviceHint::Wwn(text) => json!({"wwn": text}),
        DeviceHint::ById(text) => json!({"byID": text}),
        DeviceHint::Lun(number) => json!({"lun": number}),
        DeviceHint::Path(text) => json!({"path": text}),
    };
    let devices: Vec<Value> = attached.devices.iter().map(device).collect();
    json!({"context": attached.context, "devices": devices})
}

fn snapshot(snapshot: &Snapshot) -> Value {
    json!({
        "id": snapshot.id, "volume": snapshot.volume, "size": snapshot.size, "createdMilliseconds": snapshot.created,
        "ready": snapshot.ready,
    })
}

fn page<T>(page: &Page<T>, shown: impl Fn(&T) -> Value) -> Value {
    let items: Vec<Value> = page.items.iter().map(shown).collect();
    json!({"items": items, "next": page.next})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_settings_are_reported() {
        let lacks = |function| VolumeInput::default().mistakes(function).len();
        assert_eq!(lacks(Function::VolumeDriver), 0);
        assert_eq!(lacks(Function::CreateVolume), 1);
        assert_eq!(lacks(Function::AttachVolumes), 2);
        assert_eq!(lacks(Function::CreateSnapshot), 2);
        let two = VolumeInput {
            id: vec!["a".into(), "b".into()],
            ..VolumeInput::default()
        };
        assert_eq!(two.mistakes(Function::DeleteVolume).len(), 1);
        assert_eq!(two.mistakes(Function::GetVolumes), Vec::<String>::new());
    }

    #[test]
    fn pending_one_is_that_of_the_call() {
        let pending = || {
            Err(Failure::Pending {
                after: std::time::Duration::from_secs(1),
                token: "t".into(),
                message: "attaching".into(),
            })
        };
        let shown = |_: &()| json!({});
        assert!(alone_or_each(vec![pending()], shown).is_err());
        let both = alone_or_each(vec![pending(), Ok(())], shown).unwrap();
        assert_eq!(both[0]["failure"], "pending");
        assert_eq!(both[1], json!({}));
    }
}
