//! For tests of volumes: a volume to create, and what an answer is.

use std::fmt::Debug;

use crate::types::{Failure, FailureKind};
use crate::volumes::{NewVolume, SizeRange};

/// A volume of this name and of at least so many bytes, with nothing else requested.
///
/// ```
/// use cloudwit_guest_sdk::testing::volumes::new_volume;
/// use cloudwit_guest_sdk::volumes::{NewVolume, Topology};
///
/// let in_zone = NewVolume { allowed: vec![Topology::of("topology.kubernetes.io/zone", "a")], ..new_volume("pvc-1", 2 << 30) };
/// assert_eq!((in_zone.name.as_str(), in_zone.size.at_least), ("pvc-1", 2 << 30));
/// ```
pub fn new_volume(name: &str, bytes: u64) -> NewVolume {
    NewVolume {
        name: name.into(),
        size: SizeRange {
            at_least: bytes,
            at_most: None,
        },
        uses: Vec::new(),
        parameters: Vec::new(),
        mutable_parameters: Vec::new(),
        source: None,
        allowed: Vec::new(),
        preferred: Vec::new(),
        tags: Vec::new(),
        extra: Vec::new(),
    }
}

/// The kind of the failure.
///
/// # Panics
///
/// When it is a success.
pub fn kind<T: Debug>(answer: Result<T, Failure>) -> FailureKind {
    match answer {
        Err(failure) => failure.kind,
        Ok(success) => panic!("it is no failure: {success:?}"),
    }
}

/// The token of a `pending` answer.
///
/// # Panics
///
/// When it is another answer.
pub fn token<T: Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure {
            kind: FailureKind::Pending(token),
            ..
        }) => token,
        other => panic!("it is not pending: {other:?}"),
    }
}
