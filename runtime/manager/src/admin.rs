//! The pages over plain HTTP on loopback, for `cloudwit explain` and for people on this machine.

use std::net::SocketAddr;

use anyhow::Context;
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::pages::Trusted;

/// Binds the address, if there is one, and serves until shutdown.
pub async fn serve(pages: Router, address: Option<SocketAddr>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let Some(address) = address else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--admin-address={address}: cannot listen there; give a free address, or off"))?;
    tracing::info!(address = %listener.local_addr()?, "serving the admin pages on this machine");
    axum::serve(listener, pages.layer(Extension(Trusted)))
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    Ok(())
}
