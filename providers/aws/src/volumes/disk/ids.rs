//! Ids of volumes and snapshots, in the forms that PersistentVolumes have them.

use crate::api::by_ids::is_plain;

/// How ids of volumes begin.
const VOLUME: &str = "vol-";

/// How ids of snapshots begin.
const SNAPSHOT: &str = "snap-";

/// The volume's id in a PersistentVolume's handle: `vol-...`, and what the in-tree plugin wrote and took, `aws://ZONE/vol-...`, `aws:///vol-...`. None for
/// what AWS cannot have given out, so that nothing has to be requested for it.
pub(crate) fn volume_id(handle: &str) -> Option<&str> {
    let id = match handle.strip_prefix(crate::PROVIDER_ID_PREFIX) {
        // What is before the slash is the zone, which the id does not need.
        Some(rest) => rest.rsplit_once('/')?.1,
        None => handle,
    };
    is_plain(VOLUME, id).then_some(id)
}

/// The snapshot's id; none for what AWS cannot have given out.
pub(crate) fn snapshot_id(handle: &str) -> Option<&str> {
    is_plain(SNAPSHOT, handle).then_some(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_is_found_in_every_form_that_was_ever_written() {
        for handle in [
            "vol-0123456789abcdef0",
            "aws://us-east-1a/vol-0123456789abcdef0",
            "aws:///vol-0123456789abcdef0",
            "aws:///us-east-1a/vol-0123456789abcdef0",
        ] {
            assert_eq!(volume_id(handle), Some("vol-0123456789abcdef0"), "{handle}");
        }
        assert_eq!(volume_id("vol-01234567"), Some("vol-01234567"), "older ids are shorter");
    }

    #[test]
    fn what_aws_cannot_have_given_out_is_none() {
        for handle in [
            "",
            "vol-",
            "vol-1",
            "vol-0123456789abcdefg",
            "aws://vol-0123456789abcdef0",
            "aws://us-east-1a/i-0123456789abcdef0",
            "vol-0123456789abcdef0/x",
            "snap-0123456789abcdef0",
        ] {
            assert_eq!(volume_id(handle), None, "{handle}");
        }
        assert_eq!(snapshot_id("snap-0123456789abcdef0"), Some("snap-0123456789abcdef0"));
        assert_eq!(snapshot_id("vol-0123456789abcdef0"), None);
    }
}
