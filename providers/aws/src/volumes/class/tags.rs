//! Tags of volumes and snapshots: upstream's, those of the cluster and the claim, and those of a class. Pure.

use cloudwit_guest_sdk::prelude::*;

use crate::tags::{CLUSTER_PREFIX, ClusterTag};
use crate::volumes::DRIVER;
use crate::volumes::disk::find::VOLUME_NAME;

/// How parameters begin whose value is a tag: `tagSpecification_1: "key=value"`.
pub(crate) const TAG_PARAMETER: &str = "tagSpecification";

/// The tag with the snapshot's name (upstream's `SnapshotNameTagKey`).
pub(crate) const SNAPSHOT_NAME: &str = "CSIVolumeSnapshotName";

/// Most characters of a tag's key and value (EC2).
const LONGEST: (usize, usize) = (128, 256);

/// Most tags of a class; EC2 takes 50 in all.
const MOST: usize = 30;

/// The placeholder of a value in a class's tag, and the tag of the claim or snapshot that has it.
const VARIABLES: [(&str, &str); 5] = [
    (".PVCName", "kubernetes.io/created-for/pvc/name"),
    (".PVCNamespace", "kubernetes.io/created-for/pvc/namespace"),
    (".PVName", "kubernetes.io/created-for/pv/name"),
    (".VolumeSnapshotName", "kubernetes.io/created-for/volumesnapshot/name"),
    (
        ".VolumeSnapshotNamespace",
        "kubernetes.io/created-for/volumesnapshot/namespace",
    ),
];

/// The tag with the operations a second for each GiB, for volumes whose operations grow with them (upstream's `IOPSPerGBKey`).
pub(crate) fn iops_per_gib_key() -> String {
    format!("{DRIVER}/IOPSPerGb")
}

/// The tag that lets them grow (upstream's `AllowAutoIOPSIncreaseOnModifyKey`).
pub(crate) fn grow_key() -> String {
    format!("{DRIVER}/AllowAutoIOPSIncreaseOnModify")
}

/// All tags of something with this name: `name_key` is that of a volume or of a snapshot. `about` is what is known of the claim, `own` the class's.
pub(crate) fn tags_of(name_key: &str, name: &str, cluster: &ClusterTag, about: &[Pair], own: &[Pair]) -> Vec<Pair> {
    let mut tags = vec![
        Pair::new(name_key, name),
        Pair::new(format!("{DRIVER}/cluster"), "true"),
        Pair::new(format!("{DRIVER}/cluster-name"), cluster.id.as_str()),
    ];
    tags.append(&mut cluster.owned());
    tags.extend(about.iter().cloned());
    tags.extend(own.iter().cloned());
    // A class may set another display name.
    if !own.iter().any(|tag| tag.key == "Name") {
        tags.push(Pair::new("Name", format!("{}-dynamic-{name}", cluster.id)));
    }
    tags
}

/// The tags that a class requests.
///
/// # Errors
/// `invalid` for one without a key, with a reserved key, or with something in braces that is no variable.
pub(crate) fn read_tags(parameters: &[Pair], about: &[Pair]) -> Result<Vec<Pair>, Failure> {
    let mut tags: Vec<Pair> = Vec::new();
    for pair in parameters.iter().filter(|pair| pair.key.starts_with(TAG_PARAMETER)) {
        let refused = |wrong: &str| Failure::invalid(format!("parameter {} is \"{}\"; {wrong}", pair.key, pair.value));
        let (key, value) = pair
            .value
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| refused("it has to be like key=value"))?;
        if is_reserved(key) {
            return Err(refused("this tag is written by the driver, or reserved by AWS"));
        }
        let value = filled(value, about).ok_or_else(|| {
            refused("of what stands in {{ }} only .PVCName, .PVCNamespace, .PVName, .VolumeSnapshotName and .VolumeSnapshotNamespace are known")
        })?;
        if key.chars().count() > LONGEST.0 || value.chars().count() > LONGEST.1 {
            return Err(refused(
                "a tag has a key of at most 128 and a value of at most 256 characters",
            ));
        }
        if tags.iter().any(|tag| tag.key == key) {
            return Err(refused("another parameter has a tag with this key"));
        }
        tags.push(Pair::new(key, value));
    }
    if tags.len() > MOST {
        return Err(Failure::invalid(format!(
            "there are {} tags, at most {MOST} are possible",
            tags.len()
        )));
    }
    Ok(tags)
}

fn is_reserved(key: &str) -> bool {
    let of_driver = key.strip_prefix(DRIVER).is_some_and(|rest| rest.starts_with('/'));
    key == VOLUME_NAME
        || key == SNAPSHOT_NAME
        || key.starts_with("kubernetes.io")
        || key.starts_with(CLUSTER_PREFIX)
        || key.to_ascii_lowercase().starts_with("aws:")
        || of_driver
}

/// The text with what its variables stand for; none when there is something else in braces. What is not known is empty, as in upstream's.
fn filled(text: &str, about: &[Pair]) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}")?;
        let (_, tag) = VARIABLES.iter().find(|(variable, _)| *variable == name.trim())?;
        filled.push_str(before);
        let known = about.iter().find(|pair| pair.key == *tag);
        filled.push_str(known.map(|pair| pair.value.as_str()).unwrap_or_default());
        rest = behind;
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> Vec<Pair> {
        vec![
            Pair::new("kubernetes.io/created-for/pvc/name", "data"),
            Pair::new("kubernetes.io/created-for/pvc/namespace", "shop"),
        ]
    }

    fn read(value: &str) -> Result<String, Failure> {
        let tags = read_tags(
            &[Pair::new("tagSpecification_1", value), Pair::new("type", "gp3")],
            &about(),
        )?;
        Ok(tags.iter().map(|tag| format!("{}={}", tag.key, tag.value)).collect())
    }

    #[test]
    fn tags_of_a_class_are_filled_with_what_is_known_of_the_claim() {
        for (value, expected) in [
            ("team=a=b", "team=a=b"),
            ("empty=", "empty="),
            ("for={{ .PVCNamespace }}/{{.PVCName}}", "for=shop/data"),
            ("pv={{ .PVName }}", "pv="),
        ] {
            assert_eq!(read(value).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn tags_that_cannot_be_are_refused_with_their_parameter() {
        let long = format!("k={}", "x".repeat(257));
        for value in [
            "",
            "=x",
            "key",
            "kubernetes.io/cluster/x=owned",
            "CSIVolumeName=x",
            "ebs.csi.aws.com/cluster=false",
            "aws:x=y",
            "k={{ .PVCName | toUpper }}",
            "k={{ .PVCName",
            &long,
        ] {
            let refused = read(value).unwrap_err();
            assert!(
                refused.kind == FailureKind::Invalid && refused.message.contains("tagSpecification_1"),
                "{refused:?}"
            );
        }
    }
}
