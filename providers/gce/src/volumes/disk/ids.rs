//! Ids of disks, snapshots and machines, in the forms of upstream's driver.

use std::fmt;

use crate::instances::parts;

/// What CSI migration writes where a PersistentVolume of the in-tree plugin has none (`csi-translation-lib/plugins/gce_pd.go`).
const UNSPECIFIED: &str = "UNSPECIFIED";

/// The longest name of a resource (RFC 1035).
const LONGEST_NAME: usize = 63;

/// Where a disk is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// In a zone.
    Zone(String),
    /// In two zones of a region.
    Region(String),
}

/// A disk's id: `projects/P/zones/Z/disks/N`, or `projects/P/regions/R/disks/N` of one with replicas.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DiskId {
    /// Project.
    pub project: String,
    /// Zone or region; none where the id has neither.
    pub scope: Option<Scope>,
    /// Name.
    pub name: String,
}

impl DiskId {
    /// Reads one. `project` is used where the id has none. None for what Compute Engine cannot have given out.
    pub(crate) fn read(handle: &str, project: &str) -> Option<Self> {
        let parts: Vec<&str> = handle.split('/').collect();
        let ["projects", own, kind @ ("zones" | "regions"), place, "disks", name] = parts.as_slice() else {
            return None;
        };
        let scope = match (*place, *kind) {
            (UNSPECIFIED, _) => None,
            (zone, "zones") => Some(Scope::Zone(zone.into())),
            (region, _) => Some(Scope::Region(region.into())),
        };
        let sound = is_project(own) && (scope.is_none() || is_name(place)) && is_name(name);
        sound.then(|| Self {
            project: if *own == UNSPECIFIED { project } else { own }.to_owned(),
            scope,
            name: (*name).to_owned(),
        })
    }

    /// The zone or region, as a part of a path.
    pub(crate) fn place(&self) -> String {
        match &self.scope {
            Some(Scope::Zone(zone)) => format!("zones/{zone}"),
            Some(Scope::Region(region)) => format!("regions/{region}"),
            None => format!("zones/{UNSPECIFIED}"),
        }
    }

    /// The name of the disk's device at a machine, upstream's: the node plugin finds it with the prefix `google-`.
    pub(crate) fn device(&self) -> String {
        match &self.scope {
            Some(Scope::Region(_)) => format!("{}_regional", self.name),
            _ => self.name.clone(),
        }
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "projects/{}/{}/disks/{}", self.project, self.place(), self.name)
    }
}

/// A snapshot's id, which is its path. None for what Compute Engine cannot have given out.
pub(crate) fn snapshot_path(id: &str) -> Option<&str> {
    let parts: Vec<&str> = id.split('/').collect();
    match parts.as_slice() {
        ["projects", project, "global", "snapshots", name] if is_project(project) && is_name(name) => Some(id),
        _ => None,
    }
}

/// The id of a machine for the driver: its path.
pub(crate) fn node_id(provider_id: &str) -> Option<String> {
    let (project, zone, name) = parts(provider_id)?;
    Some(format!("projects/{project}/zones/{zone}/instances/{name}"))
}

/// Zone and name of a machine's id. None for what Compute Engine cannot have given out.
pub(crate) fn machine_of(node_id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = node_id.split('/').collect();
    match parts.as_slice() {
        ["projects", project, "zones", zone, "instances", name]
            if is_project(project) && is_name(zone) && is_name(name) =>
        {
            Some((zone, name))
        }
        _ => None,
    }
}

/// Whether a resource can have this name, which then also fits into a filter as it is.
pub(crate) fn is_name(text: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(letters)
}

/// Whether a new resource may be called so.
pub(crate) fn is_new_name(text: &str) -> bool {
    is_name(text) && text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.ends_with('-')
}

/// Projects of a domain are `example.com:name`.
fn is_project(text: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
    (1..=128).contains(&text.len()) && text.bytes().all(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(handle: &str) -> Option<String> {
        DiskId::read(handle, "own").map(|id| id.to_string())
    }

    #[test]
    fn ids_are_upstreams_and_migrated_ones_get_the_project() {
        for (handle, expected) in [
            (
                "projects/p/zones/us-central1-a/disks/d",
                "projects/p/zones/us-central1-a/disks/d",
            ),
            (
                "projects/p/regions/us-central1/disks/d",
                "projects/p/regions/us-central1/disks/d",
            ),
            (
                "projects/UNSPECIFIED/zones/us-central1-a/disks/d",
                "projects/own/zones/us-central1-a/disks/d",
            ),
            (
                "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
                "projects/own/zones/UNSPECIFIED/disks/d",
            ),
        ] {
            assert_eq!(read(handle).as_deref(), Some(expected), "{handle}");
        }
        let unknown = DiskId::read("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", "own");
        assert_eq!(unknown.and_then(|id| id.scope), None);
        let device = |handle: &str| DiskId::read(handle, "own").map(|id| id.device());
        assert_eq!(device("projects/p/zones/z/disks/d").as_deref(), Some("d"));
        assert_eq!(device("projects/p/regions/r/disks/d").as_deref(), Some("d_regional"));
    }

    #[test]
    fn what_compute_engine_cannot_have_given_out_is_none() {
        for handle in [
            "",
            "d",
            "projects/p/zones/z/disks/",
            "projects/p/zones/z/disks/D",
            "projects/p/zones/z/disks/d/x",
            "projects/p/zones/z/instances/d",
            "projects/p/global/disks/d",
            "projects/p?x/zones/z/disks/d",
            "projects/p/zones/z z/disks/d",
        ] {
            assert_eq!(read(handle), None, "{handle}");
        }
        assert_eq!(
            snapshot_path("projects/p/global/snapshots/s"),
            Some("projects/p/global/snapshots/s")
        );
        assert_eq!(snapshot_path("projects/p/global/images/s"), None);
        assert_eq!(machine_of("projects/p/zones/z/instances/i"), Some(("z", "i")));
        assert_eq!(machine_of("projects/p/zones/z/instances/i/x"), None);
        assert_eq!(node_id("p/z/i").as_deref(), Some("projects/p/zones/z/instances/i"));
    }

    #[test]
    fn new_names_begin_with_a_letter() {
        assert!(is_new_name("pvc-1") && is_name("1-x"));
        for wrong in ["1-x", "x-", "X", "", "a_b", &"n".repeat(64)] {
            assert!(!is_new_name(wrong), "{wrong}");
        }
    }
}
