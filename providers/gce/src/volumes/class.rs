//! What a StorageClass requests of a disk, and what is written on one. Pure.
//!
//! Parameters are upstream's (`pkg/common/parameters.go`), in whatever case.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{self, Value};
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::DRIVER;

/// `pd-standard` (the default), `pd-balanced`, `pd-ssd`, `hyperdisk-balanced` and whatever there is.
const TYPE: &str = "type";

/// `none` (the default) or `regional-pd`.
const REPLICATION: &str = "replication-type";

/// Resource name of a key of Cloud KMS.
const KMS_KEY: &str = "disk-encryption-kms-key";

/// `key=value,key=value`, of disks and of snapshots.
pub(crate) const LABELS: &str = "labels";

/// Operations a second, of types that have a number of them.
const IOPS: &str = "provisioned-iops-on-create";

/// Throughput a second in MiB, such as `250Mi`.
const THROUGHPUT: &str = "provisioned-throughput-on-create";

/// Longest key and value of a label (Google Cloud, "Organize resources using labels").
const LONGEST_LABEL: usize = 63;

/// What a class requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Class {
    /// Name of the disk type.
    pub kind: String,
    /// With a replica in a second zone.
    pub is_regional: bool,
    /// Key of Cloud KMS.
    pub kms_key: Option<String>,
    /// Labels of the disk.
    pub labels: BTreeMap<String, String>,
    /// Operations a second.
    pub iops: Option<u64>,
    /// MiB a second.
    pub throughput: Option<u64>,
}

impl Class {
    /// Reads parameters, and the tags that become labels.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    pub(crate) fn read(parameters: &[Pair], tags: &[Pair]) -> Result<Self, Failure> {
        let parameters = lower(parameters);
        known_parameters(&parameters, &[TYPE, REPLICATION, KMS_KEY, LABELS, IOPS, THROUGHPUT])?;
        let given = |name: &str| parameter(&parameters, name).filter(|value| !value.is_empty());
        let kind = given(TYPE).unwrap_or("pd-standard").to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !kind.bytes().all(plain) {
            return Err(Failure::invalid(format!(
                "parameter {TYPE} is \"{kind}\", which is no type of disks"
            )));
        }
        let is_regional = match given(REPLICATION).map(str::to_ascii_lowercase).as_deref() {
            None | Some("none") => false,
            Some("regional-pd") => true,
            Some(other) => {
                let text = format!("parameter {REPLICATION} is \"{other}\"; it can be none or regional-pd");
                return Err(Failure::invalid(text));
            }
        };
        let mut labels = labels_of(tags);
        labels.extend(read_labels(given(LABELS))?);
        Ok(Self {
            kind,
            is_regional,
            kms_key: given(KMS_KEY).map(str::to_owned),
            labels,
            iops: number(IOPS, given(IOPS), &[""])?,
            throughput: number(THROUGHPUT, given(THROUGHPUT), &["Mi", ""])?,
        })
    }
}

/// Parameters under their names in small letters.
pub(crate) fn lower(parameters: &[Pair]) -> Vec<Pair> {
    let lower = |pair: &Pair| Pair::new(pair.key.to_ascii_lowercase(), &pair.value);
    parameters.iter().map(lower).collect()
}

fn number(name: &str, value: Option<&str>, units: &[&str]) -> Result<Option<u64>, Failure> {
    let Some(text) = value else { return Ok(None) };
    let number = units
        .iter()
        .find_map(|unit| text.strip_suffix(unit)?.parse::<u64>().ok());
    let wrong = || {
        let unit = units.first().copied().unwrap_or_default();
        Failure::invalid(format!(
            "parameter {name} is \"{text}\"; write a number, such as 500{unit}"
        ))
    };
    number.filter(|number| *number > 0).map(Some).ok_or_else(wrong)
}

/// `key=value,key=value`.
///
/// # Errors
/// `invalid` with the label that cannot be one.
pub(crate) fn read_labels(text: Option<&str>) -> Result<BTreeMap<String, String>, Failure> {
    let mut labels = BTreeMap::new();
    for label in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        let (key, value) = label.split_once('=').unwrap_or((label, ""));
        let (key, value) = (key.trim(), value.trim());
        if !label.contains('=') || !is_key(key) || !is_value(value) {
            let rule = "up to 63 small letters, digits, dashes and underscores, a letter first in the key";
            return Err(Failure::invalid(format!(
                "parameter {LABELS}: \"{label}\" is no label; write key=value, each of {rule}"
            )));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

/// Upstream's labels: for whom a disk was made. What no label can be is left out.
fn labels_of(tags: &[Pair]) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for tag in tags {
        let key = tag.key.replace(['.', '/', '-'], "_");
        let mut value = tag.value.to_ascii_lowercase();
        if is_key(&key) && tag.key.starts_with("kubernetes.io/created-for/") && is_value_part(&value) {
            value.truncate(LONGEST_LABEL);
            labels.insert(key, value);
        }
    }
    labels
}

fn is_key(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_lowercase()) && is_value(key)
}

fn is_value(value: &str) -> bool {
    value.len() <= LONGEST_LABEL && is_value_part(value)
}

fn is_value_part(value: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    value.bytes().all(plain)
}

/// Upstream's description of what it makes: JSON.
pub(crate) fn description(tags: &[Pair]) -> String {
    let mut all: BTreeMap<&str, &str> = tags.iter().map(|tag| (tag.key.as_str(), tag.value.as_str())).collect();
    all.insert("storage.gke.io/created-by", DRIVER);
    let all = all.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value)));
    Value::Object(all.collect::<serde_json::Map<_, _>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<Class, Failure> {
        let parameters: Vec<Pair> = parameters.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        let tags = [
            Pair::new("kubernetes.io/created-for/pvc/name", "Data.1"),
            Pair::new("kubernetes.io/created-for/pvc/namespace", "shop"),
            Pair::new("kubernetes.io/created-for/pv/name", "n".repeat(70)),
            Pair::new("cluster", "blue"),
        ];
        Class::read(&parameters, &tags)
    }

    #[test]
    fn parameters_are_upstreams() {
        let class = read(&[
            ("Type", "PD-SSD"),
            ("replication-type", "regional-pd"),
            ("labels", "team=shop, tier=a_b"),
            ("provisioned-iops-on-create", "3000"),
            ("provisioned-throughput-on-create", "250Mi"),
            (
                "disk-encryption-kms-key",
                "projects/p/locations/l/keyRings/R/cryptoKeys/K",
            ),
        ])
        .unwrap();
        assert_eq!((class.kind.as_str(), class.is_regional), ("pd-ssd", true));
        assert_eq!((class.iops, class.throughput), (Some(3000), Some(250)));
        assert_eq!(class.labels["team"], "shop");
        // What is no label is left out, what is too long is cut: as upstream.
        assert_eq!(class.labels["kubernetes_io_created_for_pvc_namespace"], "shop");
        assert_eq!(class.labels["kubernetes_io_created_for_pv_name"].len(), 63);
        assert_eq!(class.labels.len(), 4);
        let usual = read(&[]).unwrap();
        assert_eq!((usual.kind.as_str(), usual.is_regional), ("pd-standard", false));
    }

    #[test]
    fn wrong_parameter_is_named() {
        for (key, value) in [
            ("tpye", "pd-ssd"),
            ("type", "pd ssd"),
            ("replication-type", "twice"),
            ("labels", "team"),
            ("labels", "Team=x"),
            ("labels", "team=X"),
            ("provisioned-iops-on-create", "many"),
            ("provisioned-iops-on-create", "0"),
            ("provisioned-throughput-on-create", "250Gi"),
        ] {
            let refused = read(&[(key, value)]).unwrap_err();
            assert!(
                refused.kind == FailureKind::Invalid && refused.message.contains(key),
                "{key}: {refused:?}"
            );
        }
    }

    #[test]
    fn description_says_who_made_it_and_for_what() {
        let text = description(&[Pair::new("kubernetes.io/created-for/pv/name", "pvc-1")]);
        assert_eq!(
            text,
            r#"{"kubernetes.io/created-for/pv/name":"pvc-1","storage.gke.io/created-by":"pd.csi.storage.gke.io"}"#
        );
        assert!(crate::volumes::disk::is_of_kubernetes(&text));
    }
}
