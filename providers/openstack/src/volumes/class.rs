//! Parameters of a StorageClass and a VolumeSnapshotClass, under upstream's names (`using-cinder-csi-plugin.md`, "Supported Parameters"). Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{known_parameters, parameter};

use crate::api::wire::{entries, parse};
use crate::volumes::CLUSTER;

/// Parameters of a StorageClass.
const CLASS: [&str; 4] = [TYPE, "availability", MKFS, METADATA];

/// Cinder's type of a volume; of a VolumeAttributesClass too.
pub(crate) const TYPE: &str = "type";

/// Parameters of a VolumeSnapshotClass.
const SNAPSHOT_CLASS: [&str; 3] = ["type", FORCE, METADATA];

/// How the file system is made: passed to upstream's plugin on the machine.
const MKFS: &str = "mkfs-options";

/// Further metadata, as JSON.
const METADATA: &str = "appendVolumeMetadata";

/// Whether attached volumes may be copied; `false` by default, as upstream.
pub(crate) const FORCE: &str = "force-create";

/// Most characters of a key and of a value (`cinder/api/validation/parameter_types.py`).
const LONGEST: usize = 255;

/// What a class requests.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Class {
    /// Cinder's type, by name or id; empty for its default.
    pub kind: String,
    /// Cinder's availability zone; empty for that of the Pod.
    pub zone: String,
    /// For the plugin on the machine.
    pub context: Vec<Pair>,
    /// Further metadata.
    pub metadata: Vec<Pair>,
}

impl Class {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid` with those that are wrong.
    pub(crate) fn read(parameters: &[Pair]) -> Result<Self, Failure> {
        known_parameters(parameters, &CLASS)?;
        let text = |name| parameter(parameters, name).unwrap_or_default();
        let mkfs = parameter(parameters, MKFS).filter(|options| !options.is_empty());
        Ok(Self {
            kind: text(TYPE).into(),
            zone: text("availability").into(),
            context: mkfs.map(|options| Pair::new(MKFS, options)).into_iter().collect(),
            metadata: more_metadata(text(METADATA))?,
        })
    }
}

/// What a class of snapshots requests.
#[derive(Debug, PartialEq)]
pub(crate) struct SnapshotClass {
    /// Whether attached volumes may be copied.
    pub force: bool,
    /// Further metadata.
    pub metadata: Vec<Pair>,
}

impl SnapshotClass {
    /// Reads the parameters.
    ///
    /// # Errors
    /// `invalid` with those that are wrong.
    pub(crate) fn read(parameters: &[Pair]) -> Result<Self, Failure> {
        known_parameters(parameters, &SNAPSHOT_CLASS)?;
        match parameter(parameters, "type") {
            None | Some("" | "snapshot") => {}
            Some(other) => {
                return Err(Failure::invalid(format!(
                    "parameter type is \"{other}\"; only snapshot is possible, Cinder's backups are not made"
                )));
            }
        }
        Ok(Self {
            force: match parameter(parameters, FORCE) {
                None | Some("" | "false") => false,
                Some("true") => true,
                Some(other) => {
                    return Err(Failure::invalid(format!(
                        "parameter {FORCE} is \"{other}\"; it can be true or false"
                    )));
                }
            },
            metadata: more_metadata(parameter(parameters, METADATA).unwrap_or_default())?,
        })
    }
}

fn more_metadata(text: &str) -> Result<Vec<Pair>, Failure> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |why: &str| Failure::invalid(format!("parameter {METADATA} is \"{text}\"; {why}"));
    let json = parse(text).map_err(|_| wrong("it has to be a JSON object of texts, such as {\"team\": \"shop\"}"))?;
    if !json.is_object() {
        return Err(wrong(
            "it has to be a JSON object of texts, such as {\"team\": \"shop\"}",
        ));
    }
    let one = |(key, value): (&String, &serde_json::Value)| {
        let value = value.as_str().ok_or_else(|| wrong("each value has to be a text"))?;
        let fits = |text: &str| text.chars().count() <= LONGEST;
        match key {
            key if key.is_empty() || !fits(key) || !fits(value) => {
                Err(wrong("keys have 1 to 255 characters, values at most 255"))
            }
            key if key == CLUSTER => Err(wrong("the driver writes this key itself")),
            key => Ok(Pair::new(key.as_str(), value)),
        }
    };
    entries(&json).map(one).collect()
}

/// All metadata of something: the cluster, what is known of the claim under upstream's keys, and what the class requests.
pub(crate) fn metadata_of(cluster: &str, about: &[Pair], own: &[Pair]) -> Vec<Pair> {
    let mut all = vec![Pair::new(CLUSTER, cluster)];
    all.extend(about.iter().map(|pair| {
        let key = match pair.key.strip_prefix("kubernetes.io/created-for/") {
            Some(rest) => format!("csi.storage.k8s.io/{rest}"),
            None => pair.key.clone(),
        };
        Pair::new(key, pair.value.as_str())
    }));
    all.extend(own.iter().cloned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<Pair> {
        pairs.iter().map(|(key, value)| Pair::new(*key, *value)).collect()
    }

    #[test]
    fn parameters_of_upstreams_classes_are_read() {
        let class = Class::read(&pairs(&[
            ("type", "ssd"),
            ("availability", "nova"),
            ("mkfs-options", "-O ^has_journal"),
            ("appendVolumeMetadata", "{\"team\": \"shop\"}"),
        ]));
        let expected = Class {
            kind: "ssd".into(),
            zone: "nova".into(),
            context: pairs(&[("mkfs-options", "-O ^has_journal")]),
            metadata: pairs(&[("team", "shop")]),
        };
        assert_eq!(class, Ok(expected));
        assert_eq!(Class::read(&[]), Ok(Class::default()));
        assert!(!SnapshotClass::read(&[]).unwrap().force);
        assert!(SnapshotClass::read(&pairs(&[("force-create", "true")])).unwrap().force);
    }

    #[test]
    fn wrong_parameters_are_refused_by_name() {
        let long = format!("{{\"k\": \"{}\"}}", "x".repeat(256));
        for (key, value) in [
            ("tpye", "ssd"),
            ("appendVolumeMetadata", "team=shop"),
            ("appendVolumeMetadata", "[\"team\"]"),
            ("appendVolumeMetadata", "{\"team\": 1}"),
            ("appendVolumeMetadata", "{\"\": \"x\"}"),
            ("appendVolumeMetadata", "{\"cinder.csi.openstack.org/cluster\": \"x\"}"),
            ("appendVolumeMetadata", &long),
        ] {
            let refused = Class::read(&pairs(&[(key, value)])).unwrap_err();
            assert!(
                refused.kind == FailureKind::Invalid && refused.message.contains(key),
                "{refused:?}"
            );
        }
        for (key, value) in [("type", "backup"), ("force-create", "yes"), ("availability", "nova")] {
            let refused = SnapshotClass::read(&pairs(&[(key, value)])).unwrap_err();
            assert!(
                refused.kind == FailureKind::Invalid && refused.message.contains(key),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn claims_are_written_under_upstreams_keys() {
        let about = pairs(&[("kubernetes.io/created-for/pvc/name", "data")]);
        let all = metadata_of("kubernetes", &about, &pairs(&[("team", "shop")]));
        let expected = [
            ("cinder.csi.openstack.org/cluster", "kubernetes"),
            ("csi.storage.k8s.io/pvc/name", "data"),
            ("team", "shop"),
        ];
        assert_eq!(all, pairs(&expected));
    }
}
