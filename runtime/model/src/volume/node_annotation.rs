//! Annotation of a Node with id and topology of its machine, for the CSI plugin there.
//!
//! The node controller writes it and the plugin reads it, so that no machine needs credentials of the cloud or its metadata service:
//!
//! ```json
//! {"driver":"sim.csi.cloudwit.dev","nodeID":"m-1","topology":{"topology.sim.csi.cloudwit.dev/zone":"a"},"maxVolumes":39}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Topology, VolumeNode};

/// Key of the annotation.
pub const NODE_ANNOTATION: &str = "csi.cloudwit.dev/node";

/// The largest value that is read, in bytes. One that a provider may answer is far below.
const LONGEST: usize = 16 << 10;

/// The longest node id, in bytes (CSI 1.13, `NodeGetInfoResponse.node_id`: 256 at most).
const LONGEST_ID: usize = 256;

/// A machine for a CSI driver: the value of [`NODE_ANNOTATION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAnnotation {
    /// Name of the driver whose volumes are attached to the machine.
    pub driver: String,
    /// As [`VolumeNode::id`].
    #[serde(rename = "nodeID")]
    pub node_id: String,
    /// As [`VolumeNode::topology`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub topology: BTreeMap<String, String>,
    /// As [`VolumeNode::max_volumes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_volumes: Option<u32>,
}

/// Why a value of the annotation says nothing.
#[derive(Debug, Error)]
pub enum NodeAnnotationError {
    /// Longer than any that is written.
    #[error("it has {0} bytes, at most {LONGEST} are read")]
    TooLong(usize),
    /// Not the JSON that is written.
    #[error("it is not what the node controller writes: {0}")]
    Json(#[from] serde_json::Error),
    /// The interface has no such node id.
    #[error("its nodeID has {0} bytes, 1 to {LONGEST_ID} are possible")]
    NodeId(usize),
}

impl NodeAnnotation {
    /// What stands on the Node of this machine.
    pub fn new(driver: String, node: VolumeNode) -> Self {
        let VolumeNode {
            id,
            topology: Topology(topology),
            max_volumes,
        } = node;
        Self {
            driver,
            node_id: id,
            topology,
            max_volumes,
        }
    }

    /// Reads it. Members that are not known are left alone: a newer controller may write more.
    ///
    /// # Errors
    /// When it is not what [`text`](Self::text) makes.
    pub fn parse(text: &str) -> Result<Self, NodeAnnotationError> {
        if text.len() > LONGEST {
            return Err(NodeAnnotationError::TooLong(text.len()));
        }
        let read: Self = serde_json::from_str(text)?;
        match read.node_id.len() {
            1..=LONGEST_ID => Ok(read),
            length => Err(NodeAnnotationError::NodeId(length)),
        }
    }

    /// The annotation's value. The same machine has always the same.
    ///
    /// # Errors
    /// When [`parse`](Self::parse) would refuse it.
    pub fn text(&self) -> Result<String, NodeAnnotationError> {
        let text = serde_json::to_string(self)?;
        Self::parse(&text).map(|_| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> VolumeNode {
        VolumeNode {
            id: "m-1".into(),
            topology: Topology([("zone".to_owned(), "a".to_owned())].into()),
            max_volumes: Some(39),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = NodeAnnotation::new("d".into(), machine());
        let text = written.text().unwrap();
        assert_eq!(
            text,
            r#"{"driver":"d","nodeID":"m-1","topology":{"zone":"a"},"maxVolumes":39}"#
        );
        assert_eq!(NodeAnnotation::parse(&text).unwrap(), written);
    }

    #[test]
    fn inapplicable_is_left_out_and_new_is_left_alone() {
        let bare = VolumeNode {
            topology: Topology::default(),
            max_volumes: None,
            ..machine()
        };
        let bare = NodeAnnotation::new("d".into(), bare);
        assert_eq!(bare.text().unwrap(), r#"{"driver":"d","nodeID":"m-1"}"#);
        let newer = NodeAnnotation::parse(r#"{"driver":"d","nodeID":"m-1","later":[]}"#).unwrap();
        assert_eq!(newer, bare);
    }

    #[test]
    fn what_no_controller_writes_is_an_error() {
        let long = format!(r#"{{"driver":"d","nodeID":"m-1","x":"{}"}}"#, "x".repeat(LONGEST));
        let long_id = format!(r#"{{"driver":"d","nodeID":"{}"}}"#, "x".repeat(LONGEST_ID + 1));
        for wrong in [
            "",
            "{}",
            "[]",
            r#"{"driver":"d","nodeID":""}"#,
            r#"{"driver":"d","nodeID":"a","maxVolumes":-1}"#,
            &long,
            &long_id,
        ] {
            assert!(NodeAnnotation::parse(wrong).is_err(), "{wrong:.60}");
        }
    }
}
