//! Registration with the kubelet: a socket in a folder that the kubelet watches.
//!
//! The socket is there as soon as the machine is identified; then the kubelet dials it, calls `GetInfo`, calls the plugin's `NodeGetInfo`, and reports what
//! came of it. A kubelet that was restarted finds the socket again. When the kubelet refuses, the socket goes and comes back a while later, which makes it register again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_csi::server::{self, ServeError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tracing::{error, info};

use crate::info::NodeInfo;
use crate::registration_proto::registration_server::{Registration, RegistrationServer};
use crate::registration_proto::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};

/// What the kubelet calls this kind of plugin (`k8s.io/kubelet`, `pluginregistration/v1`).
const TYPE: &str = "CSIPlugin";

/// The version of the interface between kubelet and CSI drivers; there is no other (`node-driver-registrar` says the same).
const VERSION: &str = "1.0.0";

/// Between a refusal and the next try: the first and the longest time.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// Answers to the kubelet.
#[derive(Debug, Clone)]
pub struct Registrar {
    /// Name of the driver.
    pub driver: String,
    /// The plugin's socket, as the kubelet finds it.
    pub endpoint: PathBuf,
}

/// The socket of a driver in the kubelet's folder.
///
/// Kubelet sends the path as the HTTP/2 authority, with `%2F` in the place of each slash. That is no host name, but what stands before an `@` is a user's
/// name and may have such characters; without it the HTTP library refuses every request with a protocol error. Kubelets before 1.29 send slashes.
pub fn socket(registration_dir: &Path, driver: &str) -> PathBuf {
    registration_dir.join(format!("{driver}@reg.sock"))
}

#[derive(Debug)]
struct Service {
    registrar: Registrar,
    refused: mpsc::Sender<()>,
}

#[tonic::async_trait]
impl Registration for Service {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: TYPE.to_owned(),
            name: self.registrar.driver.clone(),
            endpoint: self.registrar.endpoint.to_string_lossy().into_owned(),
            supported_versions: vec![VERSION.to_owned()],
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let RegistrationStatus {
            plugin_registered,
            error,
        } = request.into_inner();
        let driver = &self.registrar.driver;
        if plugin_registered {
            info!(driver, "registered with the kubelet");
        } else {
            error!(driver, error, "kubelet refused the registration; retrying");
            // One is enough.
            let _ = self.refused.try_send(());
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

/// Registers once the machine is known, and again after each refusal, until `end`.
///
/// # Errors
///
/// When the socket cannot be made, or the server ends by itself.
pub async fn run(
    registrar: Registrar,
    mut info: NodeInfo,
    socket: &Path,
    end: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut end = std::pin::pin!(end);
    let mut again = AGAIN.0;
    loop {
        tokio::select! {
            _ = info.known() => {}
            () = &mut end => return Ok(()),
        }
        let (refused, mut refusal) = mpsc::channel(1);
        let services = Server::builder().add_service(RegistrationServer::new(Service {
            registrar: registrar.clone(),
            refused,
        }));
        let mut ending = false;
        let over = async {
            tokio::select! {
                Some(()) = refusal.recv() => {}
                () = &mut end => ending = true,
            }
        };
        let begun = Instant::now();
        server::serve_services(services, socket, over).await?;
        if ending {
            return Ok(());
        }
        if begun.elapsed() > AGAIN.1 {
            // It was registered meanwhile.
            again = AGAIN.0;
        }
        tokio::select! {
            () = tokio::time::sleep(again) => again = (again * 2).min(AGAIN.1),
            () = &mut end => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::codegen::http::uri::Authority;

    #[test]
    fn kubelets_authority_is_one() {
        let socket = socket(Path::new("/var/lib/kubelet/plugins_registry"), "sim.csi.cloudwit.dev");
        let sent = socket.to_str().unwrap().replace('/', "%2F");
        assert_eq!(sent.parse::<Authority>().unwrap().host(), "reg.sock");
    }
}
