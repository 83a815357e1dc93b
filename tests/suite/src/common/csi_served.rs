//! A driver of a provider on a socket, in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cloudwit_csi::proto::controller_client::ControllerClient;
use cloudwit_csi::{Driver, Metrics, server};
use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::wait;
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::hosting::{Hosting, LONG, settings};

/// A client of the controller service.
pub type Controller = ControllerClient<Channel>;

/// The driver; it goes when this is dropped.
pub struct Served {
    pub driver: Driver,
    pub registry: Registry,
    folder: tempfile::TempDir,
    end: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Result<(), server::ServeError>>>,
}

impl Served {
    /// Of this provider, under its own name.
    pub async fn start(provider: Arc<Provider>) -> Self {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let driver = Driver::new(provider, None, "0.0.0".into(), metrics).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let (serving, path) = (driver.clone(), folder.path().join("csi.sock"));
        let socket = path.clone();
        let served = tokio::spawn(async move {
            let ended = async {
                let _ = ended.await;
            };
            server::serve(serving, &socket, ended).await
        });
        wait::eventually(LONG, "the socket", async || path.exists()).await;
        Self {
            driver,
            registry,
            folder,
            end: Some(end),
            served: Some(served),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.folder().join("csi.sock")
    }

    /// A client of the controller service.
    pub async fn controller(&self) -> Controller {
        ControllerClient::new(dial(self.socket()).await)
    }

    /// Ends the server, as a process does that does not lead any more.
    pub async fn end(&mut self) {
        drop(self.end.take());
        self.served.take().unwrap().await.unwrap().unwrap();
    }
}

/// The component of this name in the real host.
pub async fn load(name: &'static str, config_text: String, grants: Grants) -> Provider {
    let settings = ProviderSettings {
        config_text,
        grants,
        ..settings()
    };
    let component = tokio::task::spawn_blocking(move || guests::provider(name))
        .await
        .unwrap();
    let hosting = Hosting::new(HostOptions::default());
    hosting.load_file(&component, settings).await.unwrap()
}

/// Lets a provider ask the server at this URL, on loopback and without TLS.
pub fn granted(url: &str) -> HttpGrant {
    let (host, port) = url.strip_prefix("http://").unwrap().rsplit_once(':').unwrap();
    HttpGrant {
        scheme: Scheme::Http,
        host: host.to_owned(),
        port: Some(port.parse().unwrap()),
        allow_loopback: true,
        ..HttpGrant::default()
    }
}

/// A connection to a unix socket.
pub async fn dial(path: PathBuf) -> Channel {
    // The address is not looked at.
    connect(Endpoint::from_static("http://csi"), path).await
}

/// The same by this endpoint.
pub async fn connect(endpoint: Endpoint, path: PathBuf) -> Channel {
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    endpoint.connect_with_connector(connector).await.unwrap()
}
