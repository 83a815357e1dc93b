//! `/healthz`, `/readyz`, `/metrics` and `/explain` over plain HTTP on one address, meant for loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cloudwit_controllers::Explain;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::explain_pages;

/// What the pages show.
#[derive(Debug, Clone)]
pub struct Admin {
    registry: Arc<Registry>,
    explain: Explain,
}

impl Admin {
    /// Pages over these metrics. To be made once the provider is loaded: that the pages answer is what `/readyz` says.
    pub fn new(registry: Registry, explain: Explain) -> Self {
        Self {
            registry: Arc::new(registry),
            explain,
        }
    }

    /// Serves until shutdown.
    pub async fn serve(self, address: Option<SocketAddr>, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Some(address) = address else {
            shutdown.cancelled().await;
            return Ok(());
        };
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("--admin-address={address}: cannot listen there; give a free address"))?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
        let router = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(|| async { "ok" }))
            .route("/metrics", get(metrics))
            .with_state(self.registry)
            .merge(explain_pages::router(self.explain));
        axum::serve(listener, router)
            .with_graceful_shutdown(shutdown.cancelled_owned())
            .await?;
        Ok(())
    }
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
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
