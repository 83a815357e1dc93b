//! `/healthz`, `/readyz` and `/metrics` over plain HTTP on one address, meant for loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the pages show.
#[derive(Debug, Clone)]
pub struct Admin {
    registry: Arc<Registry>,
    ready: Arc<AtomicBool>,
}

impl Admin {
    /// Pages over these metrics; not ready yet.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry: Arc::new(registry),
            ready: Arc::default(),
        }
    }

    /// From now on `/readyz` says yes.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Serves until shutdown.
    pub async fn serve(self, address: SocketAddr, shutdown: CancellationToken) -> anyhow::Result<()> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("--admin-address={address}: cannot listen there; give a free address"))?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
        let router = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self);
        axum::serve(listener, router)
            .with_graceful_shutdown(shutdown.cancelled_owned())
            .await?;
        Ok(())
    }
}

async fn readyz(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the controllers have not started yet")
    }
}

async fn metrics(State(admin): State<Admin>) -> axum::response::Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &admin.registry) {
        Ok(()) => (
            [(
                header::CONTENT_TYPE,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            )],
            text,
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
