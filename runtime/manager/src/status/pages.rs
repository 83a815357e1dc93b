//! Handlers of `/` and `/status.json`.
//!
//! They name Nodes, Services, hosts and the provider's last words, so they are for those who have said who they are, also where somebody
//! opened these paths with `--authorization-always-allow-paths`.

use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};

use crate::process::work_runtime::WorkRuntime;
use crate::serving::pages::{Trusted, stalled};
use crate::status::facts::Status;
use crate::status::page;
use crate::status::source::StatusSource;

/// Nobody keeps these pages, frames them or takes them for something else.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// The pages.
pub fn router(source: StatusSource, work: WorkRuntime) -> Router {
    Router::new()
        .route("/", get(people))
        .route("/status.json", get(programs))
        .with_state(StatusOfWork { source, work })
}

/// The facts, and where they are collected.
#[derive(Clone)]
struct StatusOfWork {
    source: StatusSource,
    work: WorkRuntime,
}

impl StatusOfWork {
    /// How it is now; none while the working thread stands still.
    async fn look(self) -> Option<Status> {
        let checks = self.source.checks.states().await;
        let source = self.source;
        self.work.query(move || source.look(checks)).await
    }
}

type Trust = Option<Extension<Trusted>>;

async fn people(State(status): State<StatusOfWork>, RawQuery(query): RawQuery, trusted: Trust) -> Response {
    if trusted.is_none() {
        return unknown();
    }
    let Some(status) = status.look().await else {
        return stalled();
    };
    let nonce = format!("{:032x}", rand::random::<u128>());
    let renews = query.as_deref() != Some("renew=off");
    let page = page::page(&status, &nonce, renews);
    let policy = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, page::policy(&nonce)),
    ];
    (HEADERS, policy, page).into_response()
}

async fn programs(State(status): State<StatusOfWork>, trusted: Trust) -> Response {
    if trusted.is_none() {
        return unknown();
    }
    match status.look().await {
        Some(status) => (HEADERS, Json(status)).into_response(),
        None => stalled(),
    }
}

fn unknown() -> Response {
    (StatusCode::FORBIDDEN, HEADERS, "authentication required\n").into_response()
}
