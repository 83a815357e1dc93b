//! The plugin: its settings and its socket.

use std::path::{Path, PathBuf};

use cloudwit_csi::proto::identity_server::IdentityServer;
use cloudwit_csi::proto::node_server::NodeServer;
use cloudwit_csi::server::{self, ServeError};
use tonic::transport::Server;

use crate::device::Devices;
use crate::filesystem::EmptyCheck;
use crate::info::NodeInfo;
use crate::locks::Locks;

/// RPCs of one connection at once. A machine has some tens of volumes.
const REQUESTS: u32 = 256;

/// Its settings.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the driver.
    pub driver: String,
    /// Version of the process.
    pub version: String,
    /// The kubelet's folder: nothing is mounted elsewhere.
    pub kubelet_dir: PathBuf,
    /// `/sys`.
    pub sysfs: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
    /// What counts as an empty device.
    pub empty: EmptyCheck,
}

/// The node service of one driver; clones are the same.
#[derive(Debug, Clone)]
pub struct Plugin {
    pub(crate) options: Options,
    pub(crate) info: NodeInfo,
    pub(crate) devices: Devices,
    /// Changes under way.
    pub(crate) changes: Locks,
    /// Looks under way: one that hangs holds up no change.
    pub(crate) looks: Locks,
}

impl Plugin {
    /// The plugin of this machine.
    pub fn new(options: Options, info: NodeInfo) -> Self {
        Self {
            devices: Devices {
                sysfs: options.sysfs.clone(),
                dev: options.dev.clone(),
            },
            options,
            info,
            changes: Locks::default(),
            looks: Locks::default(),
        }
    }

    /// Waits until no volume is being changed.
    pub async fn idle(&self) {
        self.changes.idle().await;
    }

    /// Serves it on a socket at this path until `end`.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made, or the server ends by itself.
    pub async fn serve(self, path: &Path, end: impl Future<Output = ()>) -> Result<(), ServeError> {
        let services = Server::builder()
            .max_concurrent_streams(REQUESTS)
            .add_service(IdentityServer::new(self.clone()))
            .add_service(NodeServer::new(self));
        server::serve_services(services, path, end).await
    }
}
