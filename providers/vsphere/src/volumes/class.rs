//! What a StorageClass requests of a volume. Pure.
//!
//! Parameters are upstream's (`pkg/csi/service/common/constants.go`, `ParseStorageClassParams`), in whatever case.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

/// URL of a datastore, `ds:///vmfs/volumes/UUID/`; its name does here as well.
const STORE: &str = "datastoreurl";

/// Name of a storage policy.
const POLICY: &str = "storagepolicyname";

/// Id of a storage policy.
const POLICY_ID: &str = "storagepolicyid";

/// The file system, as old classes name it. The sidecar sets it; upstream takes it and logs so.
const FILE_SYSTEM: &str = "fstype";

/// A storage policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Policy {
    /// By its name.
    Name(String),
    /// By its id.
    Id(String),
}

/// What a class requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// On this datastore: its URL or name.
    pub store: Option<String>,
    /// With this storage policy.
    pub policy: Option<Policy>,
}

impl Class {
    /// Reads parameters.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    pub(crate) fn read(parameters: &[Pair]) -> Result<Self, Failure> {
        let lower = |pair: &Pair| Pair::new(pair.key.to_ascii_lowercase(), pair.value.trim());
        let parameters: Vec<Pair> = parameters.iter().map(lower).collect();
        known_parameters(&parameters, &[STORE, POLICY, POLICY_ID, FILE_SYSTEM])?;
        let given = |name: &str| parameter(&parameters, name).filter(|value| !value.is_empty());
        let policy = match (given(POLICY), given(POLICY_ID)) {
            (Some(_), Some(_)) => {
                let text = format!("parameters {POLICY} and {POLICY_ID} say the same; write one of them");
                return Err(Failure::invalid(text));
            }
            (Some(name), None) => Some(Policy::Name(name.into())),
            (None, Some(id)) => Some(Policy::Id(id.into())),
            (None, None) => None,
        };
        Ok(Self {
            store: given(STORE).map(str::to_owned),
            policy,
        })
    }
}

/// Refuses what a disk cannot be used for.
///
/// # Errors
/// `invalid` with the file system.
pub(crate) fn check_uses(uses: &[VolumeUse]) -> Result<(), Failure> {
    let share = uses.iter().filter_map(|one| one.fs_type.as_deref());
    match share.into_iter().find(|kind| kind.starts_with("nfs")) {
        Some(kind) => Err(Failure::invalid(format!(
            "file system {kind}: file volumes of vSAN are not offered; a disk takes ext4 or xfs"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parameters: &[(&str, &str)]) -> Result<Class, Failure> {
        let parameters: Vec<Pair> = parameters.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        Class::read(&parameters)
    }

    #[test]
    fn parameters_are_upstreams() {
        let class = read(&[
            ("DatastoreURL", " ds:///vmfs/volumes/1/ "),
            ("storagePolicyName", "vSAN Default Storage Policy"),
            ("fstype", "xfs"),
        ])
        .unwrap();
        assert_eq!(class.store.as_deref(), Some("ds:///vmfs/volumes/1/"));
        assert_eq!(class.policy, Some(Policy::Name("vSAN Default Storage Policy".into())));
        assert_eq!(
            read(&[("storagepolicyid", "1")]).unwrap().policy,
            Some(Policy::Id("1".into()))
        );
        assert_eq!(read(&[("storagepolicyname", "")]).unwrap(), Class::default());
    }

    #[test]
    fn wrong_parameter_is_named() {
        for parameters in [
            &[("tpye", "thin")][..],
            &[("datastore-migrationparam", "x")],
            &[("storagepolicyname", "a"), ("storagepolicyid", "b")],
        ] {
            let refused = read(parameters).unwrap_err();
            let named = refused.message.contains(parameters[0].0);
            assert!(refused.kind == FailureKind::Invalid && named, "{refused:?}");
        }
    }

    #[test]
    fn share_is_refused() {
        let uses = |kind: &str| {
            [VolumeUse {
                block: false,
                fs_type: Some(kind.into()),
                access: AccessMode::OneNode,
            }]
        };
        assert!(check_uses(&uses("ext4")).is_ok());
        assert_eq!(check_uses(&uses("nfs4")).unwrap_err().kind, FailureKind::Invalid);
    }
}
