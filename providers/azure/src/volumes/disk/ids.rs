//! Ids of disks and snapshots: resource ids, in any case. Pure.

use crate::arm::ids::{folded, part};

/// Type of a disk in its id.
pub(crate) const DISK: &str = "disks";

/// Type of a snapshot in its id.
pub(crate) const SNAPSHOT: &str = "snapshots";

/// The longest name of a disk or snapshot (Microsoft, "Naming rules and restrictions for Azure resources").
const LONGEST_NAME: usize = 80;

/// Whether Azure can have given out this id of a resource of Compute: `/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/KIND/N`.
pub(crate) fn is_id(id: &str, kind: &str) -> bool {
    let parts: Vec<&str> = id.split('/').collect();
    let [
        "",
        subscriptions,
        subscription,
        groups,
        group,
        providers,
        namespace,
        type_name,
        name,
    ] = parts.as_slice()
    else {
        return false;
    };
    let words = [
        (subscriptions, "subscriptions"),
        (groups, "resourceGroups"),
        (providers, "providers"),
        (namespace, "Microsoft.Compute"),
        (type_name, kind),
    ];
    words.iter().all(|(part, word)| part.eq_ignore_ascii_case(word))
        && is_plain(subscription)
        && is_group(group)
        && is_name(name)
}

/// Path of the resources of this kind in a resource group.
pub(crate) fn collection(group: &str, kind: &str) -> String {
    format!("{group}/providers/Microsoft.Compute/{kind}")
}

/// The collection that a resource is in.
pub(crate) fn collection_of(id: &str) -> String {
    let folded = folded(id);
    folded
        .rsplit_once('/')
        .map_or(String::new(), |(start, _)| start.to_owned())
}

/// The resource group of an id: `/subscriptions/S/resourceGroups/G`.
pub(crate) fn group_of(id: &str) -> Option<String> {
    let (subscription, group) = (part(id, "subscriptions")?, part(id, "resourceGroups")?);
    Some(format!("/subscriptions/{subscription}/resourceGroups/{group}"))
}

/// Whether a disk or snapshot may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(inner)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.ends_with(['.', '-'])
}

/// Whether it can be the name of a resource group, and is plain enough for a path.
pub(crate) fn is_group(name: &str) -> bool {
    let inner = |sign: char| sign.is_alphanumeric() || "_.-()".contains(sign);
    (1..=90).contains(&name.chars().count()) && name.chars().all(inner) && !name.ends_with('.')
}

/// Whether it can be the id of a subscription.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "/subscriptions/0-a/resourceGroups/my_group(1)/providers/Microsoft.Compute/disks/pvc-1";

    #[test]
    fn ids_are_upstreams_in_any_case() {
        assert!(is_id(ID, DISK) && is_id(&ID.to_ascii_uppercase(), DISK));
        assert!(!is_id(ID, SNAPSHOT));
        assert_eq!(
            group_of(ID).as_deref(),
            Some("/subscriptions/0-a/resourceGroups/my_group(1)")
        );
        assert_eq!(
            collection_of(&ID.to_ascii_uppercase()),
            "/subscriptions/0-a/resourcegroups/my_group(1)/providers/microsoft.compute/disks"
        );
    }

    #[test]
    fn what_azure_cannot_have_given_out_is_no_id() {
        for id in [
            "",
            "pvc-1",
            "https://account.blob.core.windows.net/vhds/disk.vhd",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d/x/y",
            "/subscriptions/s/resourceGroups/../providers/Microsoft.Compute/disks/d",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d?x",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/disks/d",
            "subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
        ] {
            assert!(!is_id(id, DISK), "{id}");
        }
        assert!(is_name("pvc-1_") && is_name("1"));
        for name in ["", "-a", "a-", "a.", "a b", "a/b", &"n".repeat(81)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
