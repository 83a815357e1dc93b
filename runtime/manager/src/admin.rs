//! `/healthz`, `/readyz`, `/metrics` and `/explain` over plain HTTP on one address, meant for loopback.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use cloudwit_controllers::{Explain, Explanation};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

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
    pub async fn serve(self, address: SocketAddr, shutdown: CancellationToken) -> anyhow::Result<()> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("--admin-address={address}: cannot listen there; give a free address"))?;
        tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
        let router = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/livez", get(|| async { "ok" }))
            .route("/readyz", get(|| async { "ok" }))
            .route("/metrics", get(metrics))
            .route("/explain/node/{name}", get(explain_node))
            .route("/explain/service/{namespace}/{name}", get(explain_service))
            .with_state(self);
        axum::serve(listener, router)
            .with_graceful_shutdown(shutdown.cancelled_owned())
            .await?;
        Ok(())
    }
}

async fn explain_node(State(admin): State<Admin>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    explained(admin.explain.node(&name), &format!("Node {name}"), &headers)
}

async fn explain_service(
    State(admin): State<Admin>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let found = admin.explain.service(&namespace, &name);
    explained(found, &format!("Service {namespace}/{name}"), &headers)
}

/// As text, or as JSON for those who ask for it.
fn explained(found: Option<Explanation>, object: &str, headers: &HeaderMap) -> Response {
    let mark = [("x-cloudwit", "explain")];
    let Some(found) = found else {
        let text = format!("There is no {object} that this process knows of.\n");
        return (StatusCode::NOT_FOUND, mark, text).into_response();
    };
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|value| value.contains("application/json")) {
        (mark, Json(found)).into_response()
    } else {
        (mark, found.to_string()).into_response()
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
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
