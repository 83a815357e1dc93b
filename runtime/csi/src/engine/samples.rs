//! Requests, answers and failures for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_model::volume::{
    AccessMode, Detachment, NewAttachment, NewVolume, SizeRange, Volume, VolumeDriver, VolumeFeature, VolumeUse,
};
use cloudwit_model::{CloudError, Failure, FaultKind, ProviderFault, VolumeSecrets};

pub(crate) const GIB: u64 = 1 << 30;

pub(crate) fn volume(id: &str, size: u64) -> Volume {
    Volume {
        id: id.into(),
        size,
        topology: Vec::new(),
        source: None,
        context: BTreeMap::new(),
        attachments: Vec::new(),
    }
}

pub(crate) fn driver() -> VolumeDriver {
    VolumeDriver {
        name: "csi.test".into(),
        topology_keys: vec!["zone".into()],
        size_step: GIB,
        smallest: GIB,
        largest: 64 * GIB,
        usual: 8 * GIB,
        features: vec![VolumeFeature::Clone],
        batch: 10,
    }
}

pub(crate) fn new_volume(name: &str) -> NewVolume {
    NewVolume {
        name: name.into(),
        size: SizeRange {
            at_least: 2 * GIB,
            at_most: None,
        },
        uses: vec![volume_use()],
        parameters: BTreeMap::new(),
        mutable_parameters: BTreeMap::new(),
        source: None,
        allowed: Vec::new(),
        preferred: Vec::new(),
        tags: BTreeMap::new(),
    }
}

pub(crate) fn volume_use() -> VolumeUse {
    VolumeUse {
        block: false,
        fs_type: None,
        access: AccessMode::OneNode,
    }
}

pub(crate) fn to(volume: &str, node: &str) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: node.into(),
        read_only: false,
        volume_use: volume_use(),
        token: None,
    }
}

pub(crate) fn from(volume: &str, node: &str) -> Detachment {
    Detachment {
        volume: volume.into(),
        node_id: node.into(),
        token: None,
    }
}

/// Secrets of a request.
pub(crate) fn passphrase(value: &str) -> VolumeSecrets {
    VolumeSecrets::new([("passphrase".to_owned(), value.to_owned())]).unwrap()
}

pub(crate) fn pending(message: &str) -> CloudError {
    Failure::Pending {
        after: Duration::from_secs(1),
        token: format!("token of {message}"),
        message: message.into(),
    }
    .into()
}

pub(crate) fn fault() -> CloudError {
    ProviderFault {
        provider: "fake 0.1.0".into(),
        kind: FaultKind::Trap,
        message: "unreachable".into(),
        output: String::new(),
    }
    .into()
}
