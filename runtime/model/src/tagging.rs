//! Tags on the machines behind Nodes, as an operator sets them.

use std::collections::BTreeMap;

/// Nodes in one call of [`Cloud::change_tags`](crate::Cloud::change_tags).
pub const MAX_TAGGED_NODES: usize = 200;

/// Tags by their keys.
pub type Tags = BTreeMap<String, String>;

/// What becomes of the tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagChange {
    /// The machines get them, in place of other values under the same keys.
    Add,
    /// They are taken off where they have these values. Success for a machine that does not exist.
    Remove,
}
