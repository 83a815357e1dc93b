//! The unix socket that sidecars dial.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::Router;

use crate::driver::Driver;
use crate::proto::controller_server::ControllerServer;
use crate::proto::identity_server::IdentityServer;

/// The owner and the group may connect: containers of a Pod share a group (`fsGroup`).
const MODE: u32 = 0o660;

/// RPCs of one connection at once. Sidecars have at most 100 workers.
const REQUESTS: u32 = 1024;

/// How long RPCs under way may take to end when the socket goes.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Why a driver cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Something else is there.
    #[error("{0} exists and is no socket; remove it, or choose another path")]
    Occupied(PathBuf),
    /// The socket cannot be made.
    #[error("cannot listen on {path}: {error}")]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The server ended.
    #[error("the server ended: {0}")]
    Ended(#[from] tonic::transport::Error),
}

/// Serves the driver on a socket at this path until `end`; then the socket is removed, and connected clients get no answers. What is under way ends by itself: the
/// leadership check is in front of the cloud.
///
/// # Errors
///
/// When the socket cannot be made, or the server ends by itself.
pub async fn serve(driver: Driver, path: &Path, end: impl Future<Output = ()>) -> Result<(), ServeError> {
    let services = Server::builder()
        .max_concurrent_streams(REQUESTS)
        .add_service(IdentityServer::new(driver.clone()))
        .add_service(ControllerServer::new(driver));
    serve_services(services, path, end).await
}

/// Serves these services on a socket at this path until `end`, as [`serve`] does.
///
/// # Errors
///
/// When the socket cannot be made, or the server ends by itself.
pub async fn serve_services(services: Router, path: &Path, end: impl Future<Output = ()>) -> Result<(), ServeError> {
    let listener = listen(path)?;
    let (closing, closed) = tokio::sync::oneshot::channel::<()>();
    let server = services.serve_with_incoming_shutdown(UnixListenerStream::new(listener), async {
        // The sender goes when it is time.
        let _ = closed.await;
    });
    let mut server = std::pin::pin!(server);
    tokio::select! {
        ended = &mut server => ended?,
        () = end => {
            // Before the connections end, so that no client dials a socket without answers. It may be gone already.
            let _ = fs::remove_file(path);
            drop(closing);
            if let Ok(ended) = tokio::time::timeout(LAST_REQUESTS, server).await {
                ended?;
            }
        }
    }
    Ok(())
}

fn listen(path: &Path) -> Result<UnixListener, ServeError> {
    let failed = |error| ServeError::Listen {
        path: path.to_owned(),
        error,
    };
    match fs::symlink_metadata(path) {
        // Of a process that was killed.
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path).map_err(failed)?,
        Ok(_) => return Err(ServeError::Occupied(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
    Ok(listener)
}
