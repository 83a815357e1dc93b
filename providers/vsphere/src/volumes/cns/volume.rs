//! A volume as CNS describes it, and which volumes are requested.

use cloudwit_guest_sdk::xml::Element;

use crate::volumes::MIB;
use crate::volumes::cns::{element, id_element};

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CnsVolume {
    /// Its id: that of its First Class Disk, a UUID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// URL of its datastore, `ds:///vmfs/volumes/UUID/`.
    pub store: String,
    /// Id of its storage policy; empty for none.
    pub policy: String,
    /// Its size in MiB.
    pub mib: u64,
}

impl CnsVolume {
    /// Reads one; none for a file share, and for what has no id.
    pub(crate) fn read(volume: &Element) -> Option<Self> {
        let text = |name: &str| volume.text(name).unwrap_or_default().to_owned();
        let id = volume.at(&["volumeId", "id"])?.own_text();
        let size = volume.at(&["backingObjectDetails", "capacityInMb"])?.own_text();
        let is_block = matches!(volume.text("volumeType"), None | Some("BLOCK"));
        (is_block && !id.is_empty()).then(|| Self {
            id: id.into(),
            name: text("name"),
            store: text("datastoreUrl"),
            policy: text("storagePolicyId"),
            mib: size.parse().unwrap_or_default(),
        })
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.mib.saturating_mul(MIB)
    }
}

/// Whether this can be the id of a volume: a UUID as CNS writes it.
pub(crate) fn is_id(id: &str) -> bool {
    let dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = |(at, byte): (usize, u8)| match dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(fits)
}

/// Which volumes, and which page of them: `CnsQueryFilter`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter<'a> {
    /// With one of these ids; empty for all.
    pub ids: &'a [&'a str],
    /// With this name.
    pub name: Option<&'a str>,
    /// Of this cluster.
    pub cluster: Option<&'a str>,
    /// Where the page begins.
    pub from: u64,
    /// How many at most.
    pub most: u64,
}

impl Filter<'_> {
    /// As XML, in the order of the API.
    pub(super) fn written(&self) -> String {
        let mut text: String = self.ids.iter().map(|id| id_element("volumeIds", id)).collect();
        text.extend(self.name.map(|name| element("names", name)));
        text.extend(self.cluster.map(|cluster| element("containerClusterIds", cluster)));
        text + &cursor(self.from, self.most)
    }
}

/// A page as XML.
pub(crate) fn cursor(from: u64, most: u64) -> String {
    format!("<cursor><offset>{from}</offset><limit>{most}</limit></cursor>")
}

/// Where the next page begins, by the cursor of an answer with so many entries: CNS writes the offset of the next page into it.
pub(crate) fn next(from: u64, entries: usize, cursor: Option<&Element>) -> Option<u64> {
    let number = |name: &str| cursor?.text(name)?.parse::<u64>().ok();
    let entries = u64::try_from(entries).ok().filter(|entries| *entries > 0)?;
    let reached = from.saturating_add(entries).max(number("offset").unwrap_or_default());
    (reached < number("totalRecords").unwrap_or_default()).then_some(reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids() {
        assert!(is_id("5a1b2c3d-0000-4000-8000-00000000000a"));
        for other in [
            "",
            "file:5a1b2c3d-0000-4000-8000-00000000000a",
            "[vsanDatastore] kubevols/disk.vmdk",
            "5a1b2c3d00000-4000-8000-00000000000a",
            "zzzzzzzz-0000-4000-8000-00000000000a",
        ] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn next_page_begins_where_this_one_ended() {
        let of = |text: &str| Element::parse(text).unwrap();
        let more = of("<cursor><offset>2</offset><limit>2</limit><totalRecords>5</totalRecords></cursor>");
        assert_eq!(next(0, 2, Some(&more)), Some(2));
        let last = of("<cursor><offset>5</offset><limit>2</limit><totalRecords>5</totalRecords></cursor>");
        assert_eq!(next(4, 1, Some(&last)), None);
        // An answer without entries ends the list, whatever else is in it.
        assert_eq!(next(2, 0, Some(&more)), None);
        let nothing = of("<cursor><offset>0</offset><limit>0</limit></cursor>");
        assert_eq!(next(0, 7, Some(&nothing)), None);
        assert_eq!(next(0, 7, None), None);
    }
}
