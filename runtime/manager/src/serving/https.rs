//! HTTPS server: listener, TLS, and requests through `admission` to the pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Extension, Router};
use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::api::metrics::RestClientMetrics;
use crate::flags::args::Args;
use crate::flags::groups::serving::SecureServingArgs;
use crate::process::watched_files;
use crate::serving::access::authentication::Authenticator;
use crate::serving::access::authorization::Authorizer;
use crate::serving::access::metrics::{AccessMetrics, DelegatedMetrics};
use crate::serving::access::reviews::Reviewer;
use crate::serving::admission::{Admission, Chain};
use crate::serving::connections::{Connections, Place};
use crate::serving::pages::Trusted;
use crate::serving::tls::client_authorities;
use crate::serving::tls::clients::AnyClient;
use crate::serving::tls::options::TlsOptions;
use crate::serving::tls::pairs::Pairs;

/// How long a handshake and the head of a request may take; upstream gives 32 s for the latter (`net/http ReadHeaderTimeout`).
const HANDSHAKE: Duration = Duration::from_secs(10);
const HEAD: Duration = Duration::from_secs(32);
/// The greatest age of a connection. Its client gets GOAWAY, and opens another one.
const AGE: Duration = Duration::from_secs(600);
/// How long a connection that is ending may take for what is under way.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long requests under way may take at the end.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// A server that is bound, and serves once it gets a router.
pub struct SecureServing {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    /// Authentication and authorization; none for open pages.
    admission: Option<Admission>,
    http: Builder<TokioExecutor>,
}

impl SecureServing {
    /// Binds the port and prepares who may read; None for `--secure-port=0`.
    pub async fn bind(
        args: &Args,
        requests: &RestClientMetrics,
        registry: &mut Registry,
    ) -> anyhow::Result<Option<Self>> {
        if args.secure_serving.secure_port == 0 {
            return Ok(None);
        }
        let admission = admission(args, requests, registry).await?;
        Self::prepare(&args.secure_serving, Some(admission), "the serving certificate")
            .await
            .map(Some)
    }

    /// Binds the port of webhooks, without authentication: the API server has no credentials by default.
    pub async fn bind_for_webhooks(serving: &SecureServingArgs) -> anyhow::Result<Self> {
        Self::prepare(serving, None, "the serving certificate of webhooks").await
    }

    async fn prepare(
        serving: &SecureServingArgs,
        admission: Option<Admission>,
        certificate: &'static str,
    ) -> anyhow::Result<Self> {
        let listener = listen(serving)?;
        // The flags were checked before.
        let options = TlsOptions::new(serving).map_err(|wrong| anyhow::anyhow!(wrong.join("; ")))?;
        let (flags, crypto) = (serving.clone(), options.crypto.clone());
        let pairs = bounded("serving certificate", FILE_LIMIT, move || Pairs::new(&flags, crypto)).await??;
        let (watched, files) = (pairs.clone(), pairs.files());
        watched_files::follow(
            move || files.clone(),
            certificate,
            move || {
                let watched = watched.clone();
                watched_files::read_change(certificate, move || watched.reload())
            },
        );
        let authenticator = admission.as_ref().map(|admission| admission.authenticator.as_ref());
        let tls = tls(serving, &options, pairs, authenticator)?;
        match serving.prefix {
            "" => tracing::info!(address = %listener.local_addr()?, "serving HTTPS"),
            _ => tracing::info!(address = %listener.local_addr()?, "serving webhooks over HTTPS"),
        }
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            admission,
            http: http(serving),
        })
    }

    /// Serves these pages until shutdown.
    pub async fn serve(self, pages: Router, shutdown: CancellationToken) -> anyhow::Result<()> {
        let pages = match self.admission {
            Some(admission) => admission.before(pages),
            None => pages,
        };
        let (open, mut tasks) = (Connections::default(), JoinSet::new());
        loop {
            while tasks.try_join_next().is_some() {}
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, peer)) = stream else {
                // Out of file descriptors, most likely; others will be closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(place) = open.enter(peer.ip()) else {
                tracing::debug!(%peer, "HTTPS connection closed: connection limit reached");
                continue;
            };
            let (acceptor, http, pages, shutdown) = (
                self.acceptor.clone(),
                self.http.clone(),
                pages.clone(),
                shutdown.clone(),
            );
            tasks.spawn(async move {
                let place = Arc::new(place);
                let ended = tokio::select! {
                    () = place.evicted() => Err("its place was needed".into()),
                    ended = connection(stream, acceptor, http, pages, shutdown, place.clone()) => ended,
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "HTTPS connection failed");
                }
            });
        }
        // Connections end by themselves; this waits for them, not for long.
        let last = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_REQUESTS, last).await;
        Ok(())
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    http: Builder<TokioExecutor>,
    pages: Router,
    shutdown: CancellationToken,
    place: Arc<Place>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await??;
    // The handshake has negotiated which one it is. Finding it out from the first bytes would wait for ever for a peer that sends none.
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
    let pages = pages
        .layer(Extension(chain))
        .layer(from_fn_with_state(place.clone(), track));
    let mut served = std::pin::pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages)));
    tokio::select! {
        ended = served.as_mut() => return ended,
        () = shutdown.cancelled() => {}
        () = place.idle_for_long() => {}
        () = tokio::time::sleep(AGE) => {}
    }
    served.as_mut().graceful_shutdown();
    tokio::time::timeout(LAST_ANSWERS, served).await?
}

/// Records on the connection's place that a request is under way, and whether its sender is known.
async fn track(State(place): State<Arc<Place>>, request: Request, next: Next) -> Response {
    let _under_way = place.request();
    let response = next.run(request).await;
    if response.extensions().get::<Trusted>().is_some() {
        place.set_known();
    }
    response
}

/// Authentication and authorization by the API server of the flags, or of the Pod.
async fn admission(args: &Args, requests: &RestClientMetrics, registry: &mut Registry) -> anyhow::Result<Admission> {
    let metrics = AccessMetrics::new(registry);
    let (authn, authz) = (
        DelegatedMetrics::new("authn", registry),
        DelegatedMetrics::new("authz", registry),
    );
    let kubeconfig = args.authentication.authentication_kubeconfig.clone();
    let reviewer = Reviewer::new("--authentication-kubeconfig", kubeconfig, requests.clone(), authn).await?;
    let authenticator = Arc::new(Authenticator::new(&args.authentication, reviewer, metrics.clone()));
    client_authorities::follow(&authenticator, &args.authentication).await?;
    let kubeconfig = args.authorization.authorization_kubeconfig.clone();
    let reviewer = Reviewer::new("--authorization-kubeconfig", kubeconfig, requests.clone(), authz).await?;
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
        // As Go does for every listener (`net/sockopt_linux.go`): else connections of the process before keep the address for a minute.
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(args.permit_port_sharing)?;
        socket.bind(address)?;
        socket.listen(1024)
    };
    let prefix = args.prefix;
    bind().with_context(|| {
        format!(
            "cannot listen on {address}; give a free --{prefix}secure-port, or 0 to serve nothing, and an address of this machine as \
             --{prefix}bind-address"
        )
    })
}

fn tls(
    args: &SecureServingArgs,
    options: &TlsOptions,
    pairs: Pairs,
    authenticator: Option<&Authenticator>,
) -> anyhow::Result<ServerConfig> {
    let prefix = args.prefix;
    let config = ServerConfig::builder_with_provider(options.crypto.clone())
        .with_protocol_versions(options.versions)
        .with_context(|| {
            format!("--{prefix}tls-cipher-suites and --{prefix}tls-min-version leave nothing to serve with")
        })?;
    let config = match authenticator {
        Some(authenticator) => config.with_client_cert_verifier(Arc::new(AnyClient {
            crypto: options.crypto.clone(),
            asked_by: [authenticator.clients.clone(), authenticator.proxies.clone()],
        })),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(Arc::new(pairs));
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
