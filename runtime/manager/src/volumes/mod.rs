//! Volumes in words: what a PersistentVolume or a claim waits for.

pub mod explain;
pub mod sentences;

/// The operations of one CSI driver, under way and failed.
#[derive(Debug, Clone)]
pub struct DriverSource {
    /// Its name.
    pub driver: String,
    /// The provider whose volumes it serves.
    pub provider: String,
    /// What it does.
    pub operations: cloudwit_csi::Operations,
}
