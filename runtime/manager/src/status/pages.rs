//! Handlers of `/` and `/status.json`.
//!
//! They name Nodes, Services, hosts and the provider's last words, so they are for authenticated users, also where somebody
//! opened these paths with `--authorization-always-allow-paths`.

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde::Deserialize;

use crate::process::work_runtime::WorkRuntime;
use crate::serving::pages::{Trusted, stalled};
use crate::status::facts::Status;
use crate::status::frame::{self, LONGEST_QUERY};
use crate::status::page;
use crate::status::source::StatusSource;

/// Pages are not cached, framed or sniffed.
pub const HEADERS: [(header::HeaderName, &str); 4] = [
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
    async fn look(self, query: Option<String>) -> Option<Status> {
        let checks = self.source.checks.states().await;
        let source = self.source;
        self.work.query(move || source.look(checks, query.as_deref())).await
    }
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize)]
pub struct Wish {
    /// `off` holds it still.
    renew: Option<String>,
    /// A part of the name of Nodes and Services.
    q: Option<String>,
}

impl Wish {
    /// Whether it renews itself.
    pub fn renews(&self) -> bool {
        self.renew.as_deref() != Some("off")
    }

    /// What is looked for; none for nothing but blanks, and never longer than a name.
    fn query(&self) -> Option<String> {
        let query: String = self.q.as_deref()?.trim().chars().take(LONGEST_QUERY).collect();
        (!query.is_empty()).then_some(query)
    }
}

/// A page for people, with what a browser may do with it. `draw` gets the nonce of the style.
pub fn html(draw: impl FnOnce(&str) -> String) -> Response {
    let nonce = format!("{:032x}", rand::random::<u128>());
    let policy = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, frame::policy(&nonce)),
    ];
    (HEADERS, policy, draw(&nonce)).into_response()
}

type Trust = Option<Extension<Trusted>>;

async fn people(State(status): State<StatusOfWork>, Query(wish): Query<Wish>, trusted: Trust) -> Response {
    if trusted.is_none() {
        return unknown();
    }
    match status.look(wish.query()).await {
        Some(status) => html(|nonce| page::page(&status, nonce, wish.renews())),
        None => stalled(),
    }
}

async fn programs(State(status): State<StatusOfWork>, Query(wish): Query<Wish>, trusted: Trust) -> Response {
    if trusted.is_none() {
        return unknown();
    }
    match status.look(wish.query()).await {
        Some(status) => (HEADERS, Json(status)).into_response(),
        None => stalled(),
    }
}

fn unknown() -> Response {
    (StatusCode::FORBIDDEN, HEADERS, "authentication required\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_trimmed_and_has_an_end() {
        let query = |q: &str| {
            Wish {
                renew: None,
                q: Some(q.into()),
            }
            .query()
        };
        assert_eq!(query("  web "), Some("web".into()));
        assert_eq!((query(" "), Wish::default().query()), (None, None));
        assert_eq!(
            query(&"\u{e4}".repeat(1000)).map(|query| query.chars().count()),
            Some(LONGEST_QUERY)
        );
    }
}
