//! Tags of disks and snapshots: upstream's, those of the class, and what is kept with a disk for its attachment. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;

/// Who made it (`CreatedByTag` of cloud-provider-azure).
pub(crate) const CREATED_BY: &str = "k8s-azure-created-by";

/// Upstream's driver, and so this one.
pub(crate) const OURS: &str = "kubernetes-azure-dd";

/// The cache that the class requests. Upstream's driver reads it in the PersistentVolume, which an attachment does not come with here.
pub(crate) const CACHING: &str = "cloudwit-caching-mode";

/// Whether the class requests the accelerator for writes, as upstream keeps it.
pub(crate) const WRITE_ACCELERATOR: &str = "writeacceleratorenabled";

/// Most tags of a resource, and the longest key and value of one (Microsoft, "Use tags to organize your Azure resources", limitations).
const MOST: usize = 50;
const LONGEST_KEY: usize = 512;
const LONGEST_VALUE: usize = 256;

/// What no key can have, there.
const NOT_IN_KEYS: &str = "<>%&?\\/";

/// Upstream's words in values, and the contract's tag for each.
const TEMPLATES: [(&str, &str); 3] = [
    ("${pvc.metadata.name}", "kubernetes.io/created-for/pvc/name"),
    ("${pvc.metadata.namespace}", "kubernetes.io/created-for/pvc/namespace"),
    ("${pv.metadata.name}", "kubernetes.io/created-for/pv/name"),
];

/// Whose it is: for which objects it is made, under upstream's keys.
pub(crate) fn of_objects(about: &[Pair]) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::from([(CREATED_BY.to_owned(), OURS.to_owned())]);
    for tag in about
        .iter()
        .filter(|tag| tag.key.starts_with("kubernetes.io/created-for/"))
    {
        let key = tag.key.replace("/volumesnapshot/", "/snapshot/").replace('/', "-");
        let end = tag.value.floor_char_boundary(LONGEST_VALUE);
        tags.insert(key, tag.value.get(..end).unwrap_or_default().to_owned());
    }
    tags
}

/// `key=value,key=value` of a class, with upstream's words replaced, beside those of the objects.
///
/// # Errors
/// `invalid` with the tag that cannot be one.
pub(crate) fn with_class(
    about: &[Pair],
    tags: Option<&str>,
    delimiter: Option<&str>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = of_objects(about);
    let delimiter = delimiter.unwrap_or(",");
    for tag in tags.into_iter().flat_map(|tags| tags.split(delimiter)) {
        let (key, value) = tag.split_once('=').unwrap_or_default();
        let mut value = value.trim().to_owned();
        for (word, key) in TEMPLATES {
            let found = about.iter().find(|pair| pair.key == key);
            value = value.replace(word, found.map_or("", |pair| &pair.value));
        }
        let key = key.trim();
        let is_key = (1..=LONGEST_KEY).contains(&key.len()) && !key.contains(|sign| NOT_IN_KEYS.contains(sign));
        if !is_key || value.len() > LONGEST_VALUE {
            return Err(Failure::invalid(format!(
                "parameter tags: \"{tag}\" is no tag; write key=value{delimiter}key=value, at most {LONGEST_KEY} and {LONGEST_VALUE} bytes, and none \
                 of {NOT_IN_KEYS} in keys"
            )));
        }
        all.insert(key.to_owned(), value);
    }
    if all.len() > MOST {
        return Err(Failure::invalid(format!(
            "parameter tags: there would be more than {MOST} tags"
        )));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_upstreams_and_templates_are_filled() {
        let about = [
            Pair::new("kubernetes.io/created-for/pvc/name", "data"),
            Pair::new("kubernetes.io/created-for/volumesnapshot/name", "n".repeat(300)),
            Pair::new("cluster", "blue"),
        ];
        let tags = with_class(
            &about,
            Some("team = shop;of=${pvc.metadata.name}-${pv.metadata.name}"),
            Some(";"),
        )
        .unwrap();
        assert_eq!(tags[CREATED_BY], OURS);
        assert_eq!(tags["kubernetes.io-created-for-pvc-name"], "data");
        assert_eq!(tags["kubernetes.io-created-for-snapshot-name"].len(), LONGEST_VALUE);
        assert_eq!((tags["team"].as_str(), tags["of"].as_str()), ("shop", "data-"));
        assert_eq!(tags.len(), 5);
    }

    #[test]
    fn what_is_no_tag_is_named() {
        let many = (0..60)
            .map(|number| format!("k{number}=v"))
            .collect::<Vec<_>>()
            .join(",");
        for tags in ["team", "=x", "a/b=c", &format!("a={}", "v".repeat(257)), &many] {
            let refused = with_class(&[], Some(tags), None).unwrap_err();
            assert!(
                refused.kind == FailureKind::Invalid && refused.message.contains("tags"),
                "{refused:?}"
            );
        }
    }
}
