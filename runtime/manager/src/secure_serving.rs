//! The HTTPS server: it listens, makes TLS connections, and passes each request to `admission.rs`, which lets it through to the pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::access_metrics::AccessMetrics;
use crate::admission::{Admission, Chain};
use crate::args::Args;
use crate::authentication::Authenticator;
use crate::authorization::Authorizer;
use crate::peer_limit::PeerLimit;
use crate::rest_client_metrics::RestClientMetrics;
use crate::reviews::Reviewer;
use crate::secure_serving_args::SecureServingArgs;
use crate::tls_clients::AnyClient;
use crate::tls_options::TlsOptions;
use crate::tls_pairs::Pairs;
use crate::{client_authorities, watched_files};

/// How long a handshake and the head of a request may take; upstream gives 32 s for the latter (`net/http ReadHeaderTimeout`).
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEAD: Duration = Duration::from_secs(32);
/// Connections at a time, and of one peer. Scrapers and probes need a handful.
const CONNECTIONS: usize = 512;
const CONNECTIONS_OF_A_PEER: usize = 64;
/// How long requests under way may take at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// A server that is bound, and serves once it is told what.
pub struct SecureServing {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    admission: Admission,
    http: Builder<TokioExecutor>,
}

impl SecureServing {
    /// Binds the port and prepares who may read; None for `--secure-port=0`.
    pub async fn bind(
        args: &Args,
        requests: &RestClientMetrics,
        registry: &mut Registry,
    ) -> anyhow::Result<Option<Self>> {
        let serving = &args.secure_serving;
        if serving.secure_port == 0 {
            return Ok(None);
        }
        let listener = listen(serving)?;
        // The flags were checked before.
        let options = TlsOptions::new(serving).map_err(|wrong| anyhow::anyhow!(wrong.join("; ")))?;
        let pairs = Pairs::new(serving, options.crypto.clone())?;
        let (watched, files) = (pairs.clone(), pairs.files());
        watched_files::follow(
            move || files.clone(),
            "the serving certificate",
            move || std::future::ready(watched.reload()),
        );
        let admission = admission(args, requests, registry).await?;
        tracing::info!(address = %listener.local_addr()?, "serving HTTPS");
        Ok(Some(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(tls(serving, &options, pairs, &admission.authenticator)?)),
            admission,
            http: http(serving),
        }))
    }

    /// Serves these pages until shutdown.
    pub async fn serve(self, pages: Router, shutdown: CancellationToken) -> anyhow::Result<()> {
        let pages = self.admission.before(pages);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let peers = PeerLimit::new(CONNECTIONS_OF_A_PEER);
        loop {
            let permit = room
                .clone()
                .acquire_owned()
                .await
                .context("the server's room was closed")?;
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, peer)) = stream else {
                // Out of file descriptors, most likely; others will be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(place) = peers.enter(peer.ip().to_canonical()) else {
                tracing::debug!(%peer, "closed an HTTPS connection: its peer has too many");
                continue;
            };
            let (acceptor, http, pages, shutdown) = (
                self.acceptor.clone(),
                self.http.clone(),
                pages.clone(),
                shutdown.clone(),
            );
            tokio::spawn(async move {
                if let Err(error) = connection(stream, acceptor, http, pages, shutdown).await {
                    tracing::debug!(%error, "an HTTPS connection ended");
                }
                drop((place, permit));
            });
        }
        // Connections end by themselves; this waits for them, not for long.
        let _ = tokio::time::timeout(LAST_REQUESTS, room.acquire_many(CONNECTIONS as u32)).await;
        Ok(())
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    http: Builder<TokioExecutor>,
    pages: Router,
    shutdown: CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await??;
    // The handshake has told which one it is. Finding it out from the first bytes would wait for ever for a peer that sends none.
    let http = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => http.http2_only(),
        _ => http.http1_only(),
    };
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let chain = Chain(Arc::new(
        chain
            .iter()
            .map(|certificate| certificate.clone().into_owned())
            .collect(),
    ));
    let service = TowerToHyperService::new(pages.layer(Extension(chain)));
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = served.as_mut() => return ended,
        () = shutdown.cancelled() => {}
    }
    served.as_mut().graceful_shutdown();
    served.await
}

/// Who may read, with the API server of the flags, or of the Pod, behind it.
async fn admission(args: &Args, requests: &RestClientMetrics, registry: &mut Registry) -> anyhow::Result<Admission> {
    let metrics = AccessMetrics::new(registry);
    let kubeconfig = args.authentication.authentication_kubeconfig.clone();
    let reviewer = Reviewer::new("--authentication-kubeconfig", kubeconfig, requests.clone()).await?;
    let authenticator = Arc::new(Authenticator::new(&args.authentication, reviewer, metrics.clone()));
    client_authorities::follow(&authenticator, &args.authentication).await?;
    let kubeconfig = args.authorization.authorization_kubeconfig.clone();
    let reviewer = Reviewer::new("--authorization-kubeconfig", kubeconfig, requests.clone()).await?;
    let authorizer = Authorizer::new(&args.authorization, reviewer, metrics);
    Ok(Admission {
        authenticator,
        authorizer,
    })
}

fn listen(args: &SecureServingArgs) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(args.bind_address, args.secure_port);
    let bind = || {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(args.permit_address_sharing)?;
        socket.set_reuseport(args.permit_port_sharing)?;
        socket.bind(address)?;
        socket.listen(1024)
    };
    bind().with_context(|| format!("cannot listen on {address}; give a free --secure-port, or 0 to serve nothing, and an address of this machine as --bind-address"))
}

fn tls(
    args: &SecureServingArgs,
    options: &TlsOptions,
    pairs: Pairs,
    authenticator: &Authenticator,
) -> anyhow::Result<ServerConfig> {
    let clients = AnyClient {
        crypto: options.crypto.clone(),
        asked_by: [authenticator.clients.clone(), authenticator.proxies.clone()],
    };
    let mut config = ServerConfig::builder_with_provider(options.crypto.clone())
        .with_protocol_versions(options.versions)
        .context("--tls-cipher-suites and --tls-min-version leave nothing to serve with")?
        .with_client_cert_verifier(Arc::new(clients))
        .with_cert_resolver(Arc::new(pairs));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if !args.disable_http2_serving {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(config)
}

fn http(args: &SecureServingArgs) -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(HEAD);
    if args.http2_max_streams_per_connection > 0 {
        http.http2()
            .max_concurrent_streams(args.http2_max_streams_per_connection);
    }
    http
}
