//! Recording of calls or of a conformance run: calls, answers, HTTP exchanges. Without secrets.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use cloudwit_host::grants::SecretUse;
use cloudwit_host::{Grants, ProviderSettings};
use cloudwit_model::{Address, NodeRef, Tags, VolumeSecrets};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::commands::calls::function::{Function, FunctionCall};
use crate::commands::calls::small::SmallInput;
use crate::commands::calls::volumes::VolumeInput;
use crate::commands::recordings::exchanges::Exchange;

/// Version of the format.
const VERSION: u32 = 1;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Cassette {
    /// Version of the format.
    cassette: u32,
    /// When it was made, in seconds since 1970: what expires is in force in a replay.
    recorded_at: u64,
    /// What the provider was set to.
    pub settings: RecordedSettings,
    /// The calls, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RecordedCall>,
    /// What `conformance` was run with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<RecordedTrial>,
}

/// What `conformance` was run with, and what went over the wire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordedTrial {
    nodes: Vec<RecordedNode>,
    /// The manifest of the Service.
    pub service: Value,
    /// The Pod range.
    pub route: String,
    /// What went over the wire; not what the trial answered itself.
    pub exchanges: Vec<Exchange>,
}

impl RecordedTrial {
    /// One that was made.
    pub fn of(nodes: &[NodeRef], service: Value, route: &str, exchanges: Vec<Exchange>) -> Self {
        Self {
            nodes: nodes.iter().map(RecordedNode::of).collect(),
            service,
            route: route.to_owned(),
            exchanges,
        }
    }

    /// The machines that the cloud had.
    pub fn nodes(&self) -> Vec<NodeRef> {
        self.nodes.iter().map(RecordedNode::node).collect()
    }
}

/// What the provider was set to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordedSettings {
    cloud_config: String,
    values: Vec<(String, String)>,
    cluster_name: String,
    grants: Grants,
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecordedCall {
    function: Function,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<RecordedNode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    create: Vec<(String, RecordedNode)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    delete: Vec<String>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    tags: Tags,
    #[serde(default, skip_serializing_if = "is_default")]
    volume: VolumeInput,
    /// Keys of the secrets of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    small: SmallInput,
    /// What was answered, or with which failure.
    pub answer: Value,
    /// What went over the wire.
    pub exchanges: Vec<Exchange>,
}

fn is_default<T: Default + PartialEq>(input: &T) -> bool {
    *input == T::default()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RecordedNode {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<Address>,
}

impl Cassette {
    /// An empty one. `hide` takes secrets out of a text.
    pub fn new(settings: &ProviderSettings, hide: impl Fn(&str) -> String) -> Self {
        let values = settings.values.iter();
        Self {
            cassette: VERSION,
            recorded_at: unix_seconds(SystemTime::now()),
            settings: RecordedSettings {
                cloud_config: hide(&settings.config_text),
                values: values.map(|(key, value)| (key.clone(), hide(value))).collect(),
                cluster_name: settings.cluster_name.clone(),
                grants: settings.grants.clone(),
            },
            calls: Vec::new(),
            trial: None,
        }
    }

    /// Reads a file.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let origin = || format!("{}: cannot be read as a recording", file.display());
        let bytes = std::fs::metadata(file).with_context(origin)?.len();
        if bytes > LARGEST {
            bail!("{}: it has {bytes} bytes, at most {LARGEST} are read", origin());
        }
        let text = std::fs::read_to_string(file).with_context(origin)?;
        let cassette: Self = serde_json::from_str(&text).with_context(origin)?;
        if cassette.cassette != VERSION {
            bail!(
                "{}: it has format {}, this Cloudwit reads {VERSION}; record it again",
                origin(),
                cassette.cassette
            );
        }
        Ok(cassette)
    }

    /// When it was made.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.recorded_at)
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        let beside = file.with_extension("part");
        std::fs::write(&beside, text + "\n")
            .and_then(|()| std::fs::rename(&beside, file))
            .with_context(|| format!("{}: cannot be written", file.display()))
    }
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Signs in calls that are answered from a recording: a private key has to be one, whichever it is.
const REPLAY_KEY: &str = include_str!("replay-key.pem");

impl RecordedSettings {
    /// The settings for calls that are answered from the recording. Secrets are texts in files of this folder: what the cloud said to the real ones
    /// is recorded.
    pub fn for_replay(&self, folder: &Path) -> anyhow::Result<ProviderSettings> {
        let mut grants = self.grants.clone();
        for (at, secret) in grants.secrets.iter_mut().enumerate() {
            let file = folder.join(at.to_string());
            if secret.volume_key().is_some() {
                continue;
            }
            let digest = stand_in(&secret.name);
            let signs = secret.uses.contains(&SecretUse::Sign);
            std::fs::write(&file, if signs { REPLAY_KEY } else { digest.as_str() })?;
            secret.file = file;
        }
        for grant in &mut grants.http {
            // Nothing is sent.
            (grant.ca, grant.proxy) = (None::<PathBuf>, None);
            (grant.client_certificate, grant.client_key) = (None, None);
            grant.thumbprints.clear();
        }
        Ok(ProviderSettings {
            name: "replayed".into(),
            config_text: self.cloud_config.clone(),
            values: self.values.clone(),
            cluster_name: self.cluster_name.clone(),
            cluster_cidrs: Vec::new(),
            grants,
            limits: cloudwit_host::Limits::default(),
        })
    }
}

/// A text in the place of the secret of this name. No words: they would be hidden wherever they stand in a message.
fn stand_in(name: &str) -> String {
    format!("{:x}", Sha256::digest(name))
}

impl RecordedCall {
    /// A call that was made.
    pub fn of(question: &FunctionCall, answer: Value, exchanges: Vec<Exchange>) -> Self {
        let create = question.create.iter();
        Self {
            function: question.function,
            nodes: question.nodes.iter().map(RecordedNode::of).collect(),
            service: question.service.clone(),
            token: question.token.clone(),
            create: create
                .map(|(destination, node)| (destination.clone(), RecordedNode::of(node)))
                .collect(),
            delete: question.delete.clone(),
            tags: question.tags.clone(),
            volume: question.volume.clone(),
            secrets: question.secrets.keys().map(str::to_owned).collect(),
            small: question.small.clone(),
            answer,
            exchanges,
        }
    }

    /// The call, with other texts in the place of the secrets of its request.
    pub fn question(&self) -> anyhow::Result<FunctionCall> {
        let create = self.create.iter();
        let secrets = self.secrets.iter().map(|key| (key.clone(), stand_in(key)));
        Ok(FunctionCall {
            function: self.function,
            nodes: self.nodes.iter().map(RecordedNode::node).collect(),
            service: self.service.clone(),
            token: self.token.clone(),
            create: create
                .map(|(destination, node)| (destination.clone(), node.node()))
                .collect(),
            delete: self.delete.clone(),
            tags: self.tags.clone(),
            volume: self.volume.clone(),
            secrets: VolumeSecrets::new(secrets).context("secrets of a recorded call")?,
            small: self.small.clone(),
        })
    }
}

impl RecordedNode {
    fn of(node: &NodeRef) -> Self {
        Self {
            name: node.name.clone(),
            provider_id: node.provider_id.clone(),
            system_uuid: node.system_uuid.clone(),
            addresses: node.addresses.clone(),
        }
    }

    fn node(&self) -> NodeRef {
        NodeRef {
            name: self.name.clone(),
            provider_id: self.provider_id.clone(),
            system_uuid: self.system_uuid.clone(),
            addresses: self.addresses.clone(),
            provider: None,
        }
    }
}
