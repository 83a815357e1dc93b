//! For tests: Cinder's and Nova's recorded answers (`recorded/record_volumes.py`).

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::recorded::{Stage, answer, json};
use crate::volumes::disk::Disk;
use crate::volumes::{GIB, ZONE_KEY};

pub use cloudwit_guest_sdk::testing::volumes::{kind, token};

/// A recorded file of the folder `volumes` by its name.
macro_rules! volumes_file {
    ($name:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/recorded/volumes/",
            $name,
            ".json"
        ))
    };
}
pub(crate) use volumes_file;

/// A cloud whose catalog has Cinder.
pub fn stage(more: &str) -> Stage {
    let stage = Stage::new(more);
    stage.host.grants("http://cinder.test", &["GET", "POST", "DELETE"]);
    stage.host.cluster("kubernetes", &[]);
    stage.always("POST", "keystone.test/v3/auth/tokens", || {
        answer(volumes_file!("token"))
    })
}

/// The recorded volume, attached to the first server.
pub fn recorded_volume() -> Value {
    json(volumes_file!("volume"))["volume"].clone()
}

/// Its id.
pub fn volume_id() -> String {
    recorded_volume()["id"].as_str().unwrap().into()
}

/// The server that has it.
pub fn server_id() -> String {
    recorded_volume()["attachments"][0]["server_id"]
        .as_str()
        .unwrap()
        .into()
}

/// A volume of two GiB of this name, in the zone `nova`.
pub fn wanted(name: &str) -> NewVolume {
    NewVolume {
        uses: vec![used(AccessMode::OneNode)],
        allowed: vec![Topology::of(ZONE_KEY, "nova")],
        ..new_volume(name, 2 * GIB)
    }
}

/// A file system.
pub fn used(access: AccessMode) -> VolumeUse {
    VolumeUse {
        block: false,
        fs_type: None,
        access,
    }
}

/// To this server.
pub fn attachment(volume: &str, server: &str) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: server.into(),
        read_only: false,
        volume_use: used(AccessMode::OneNode),
        token: None,
    }
}

/// The status of a recorded file.
pub fn status_of(file: &str) -> u16 {
    file.get(2..5).and_then(|status| status.parse().ok()).unwrap()
}

/// The recorded volume, which a server has.
pub fn disk() -> Disk {
    Disk::read(&recorded_volume()).unwrap()
}

/// Whether an answer is.
pub fn is_pending<T: std::fmt::Debug>(answered: Result<T, Failure>) -> bool {
    matches!(kind(answered), FailureKind::Pending(_))
}

/// A cloud whose one volume no server has.
pub fn free() -> Stage {
    stage("").always("GET", "/volumes/", || answer(volumes_file!("volume_free")))
}

/// Of the recorded volume from its server.
pub fn detachment() -> Detachment {
    Detachment {
        volume: volume_id(),
        node_id: server_id(),
        token: None,
    }
}
