//! Admin pages over plain HTTP on loopback.

use std::net::{IpAddr, SocketAddr};

use anyhow::Context;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::serving::pages::Trusted;

/// Binds the address, if there is one, and serves until shutdown.
pub async fn serve(pages: Router, address: Option<SocketAddr>, shutdown: CancellationToken) -> anyhow::Result<()> {
    let Some(address) = address else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--admin-address={address}: cannot listen there; give a free address, or off"))?;
    tracing::info!(address = %listener.local_addr()?, "serving admin pages on loopback");
    let pages = pages.layer(Extension(Trusted)).layer(from_fn(only_by_its_own_name));
    axum::serve(listener, pages)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    Ok(())
}

/// A foreign web page can have a browser on this machine send requests here under a foreign name that resolves to 127.0.0.1 (DNS rebinding); such a
/// request names another host.
async fn only_by_its_own_name(request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    if host.is_none_or(is_this_machine) {
        return next.run(request).await;
    }
    let text = "these pages are served under the names of this machine only: 127.0.0.1, [::1], localhost\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

/// Whether a Host header names this machine.
fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_host_names_are_rejected_on_loopback() {
        for good in [
            "127.0.0.1:10268",
            "127.0.0.1",
            "[::1]:10268",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "127.9.9.9:1",
        ] {
            assert!(is_this_machine(good), "{good}");
        }
        for bad in [
            "example.com",
            "example.com:10268",
            "10.0.0.1:10268",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "",
        ] {
            assert!(!is_this_machine(bad), "{bad}");
        }
    }
}
