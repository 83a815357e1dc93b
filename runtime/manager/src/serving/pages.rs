//! Routes of both servers: health, metrics, configuration, explanations, status.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Extension, Json, Router};
use prometheus_client::registry::Registry;

use crate::process::work_runtime::WorkRuntime;
use crate::serving::explain_pages::{self, ExplainSource};
use crate::serving::health::checks::{Checks, Page, Wish};
use crate::status::pages;
use crate::status::source::StatusSource;
use crate::telemetry::logs::Verbosity;
use crate::telemetry::metrics_page;

/// Marks a request whose sender may see the reasons of failures.
#[derive(Debug, Clone, Copy)]
pub struct Trusted;

/// What the pages show; clones share it.
#[derive(Debug, Clone)]
pub struct Pages {
    /// All metrics.
    pub registry: Arc<Registry>,
    /// All checks.
    pub checks: Checks,
    /// What objects wait for.
    pub explain: ExplainSource,
    /// Where the status is computed.
    pub work: WorkRuntime,
    /// What the status page shows.
    pub status: StatusSource,
    /// The answer of `/configz`.
    pub configz: Arc<serde_json::Value>,
    /// The switch behind `/debug/flags/v`; none without `--profiling`.
    pub verbosity: Option<Verbosity>,
}

/// What is said instead of a page whose data the working thread does not give.
pub fn stalled() -> Response {
    let text = "working thread stalled; see /livez?verbose and the metric cloudwit_working_thread_stalled_seconds\n";
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

/// All pages.
pub fn router(pages: Pages) -> Router {
    let explain = explain_pages::router(pages.explain.clone());
    let status = pages::router(pages.status.clone(), pages.work.clone());
    let mut router = Router::new()
        .route("/healthz", get(|s, q, t| health(Page::Healthz, s, q, t)))
        .route("/livez", get(|s, q, t| health(Page::Livez, s, q, t)))
        .route("/readyz", get(|s, q, t| health(Page::Readyz, s, q, t)))
        .route("/healthz/{name}", get(|s, p, t| one_check(Page::Healthz, s, p, t)))
        .route("/livez/{name}", get(|s, p, t| one_check(Page::Livez, s, p, t)))
        .route("/readyz/{name}", get(|s, p, t| one_check(Page::Readyz, s, p, t)))
        .route("/metrics", get(metrics))
        .route("/metrics/slis", get(slis).delete(reset_slis))
        .route(
            "/configz",
            get(|State(pages): State<Pages>| async move { Json((*pages.configz).clone()) }),
        );
    if pages.verbosity.is_some() {
        router = router.route("/debug/flags/v", any(verbosity));
    }
    router
        .route("/debug/pprof", any(pprof))
        .route("/debug/pprof/{*rest}", any(pprof))
        .fallback(|| async { (StatusCode::NOT_FOUND, "404 page not found\n") })
        .with_state(pages)
        .merge(explain)
        .merge(status)
}

type Trust = Option<Extension<Trusted>>;

async fn health(page: Page, State(pages): State<Pages>, RawQuery(query): RawQuery, trusted: Trust) -> Response {
    let mut wish = Wish {
        reasons: trusted.is_some(),
        ..Wish::default()
    };
    for pair in query.as_deref().unwrap_or_default().split('&') {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("verbose", _) => wish.verbose = true,
            ("exclude", name) => wish.exclude.push(name.to_owned()),
            _ => {}
        }
    }
    plain(pages.checks.look(page, &wish).await)
}

async fn one_check(page: Page, State(pages): State<Pages>, Path(name): Path<String>, trusted: Trust) -> Response {
    let wish = Wish {
        only: Some(name),
        reasons: trusted.is_some(),
        ..Wish::default()
    };
    plain(pages.checks.look(page, &wish).await)
}

/// Text that no cache keeps and no browser takes for something else.
fn plain((code, text): (StatusCode, String)) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache, private"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (code, headers, text).into_response()
}

async fn metrics(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    metrics_page::answer(pages.registry, &headers).await
}

async fn slis(State(pages): State<Pages>) -> Response {
    ([(header::CONTENT_TYPE, metrics_page::TEXT)], pages.checks.slis().text()).into_response()
}

async fn reset_slis(State(pages): State<Pages>) -> &'static str {
    pages.checks.slis().reset();
    "metrics reset\n"
}

async fn pprof() -> Response {
    let text = "there are no Go profiles here: use perf on the process; its metrics show CPU time and memory\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

/// The largest body that can be a number.
const NUMBER: usize = 64;

async fn verbosity(State(pages): State<Pages>, request: Request<Body>) -> Response {
    if request.method() != http::Method::PUT {
        return (StatusCode::NOT_ACCEPTABLE, "unrecognized method: PUT a number\n").into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), NUMBER)
        .await
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let (Ok(level), Some(switch)) = (text.trim().parse::<u8>(), &pages.verbosity) else {
        return (
            StatusCode::BAD_REQUEST,
            format!(
                "{:?} is not a valid verbosity; PUT a number from 0 to 255\n",
                text.trim()
            ),
        )
            .into_response();
    };
    match switch.set(level) {
        Ok(()) => plain((
            StatusCode::OK,
            format!("successfully set klog.logging.verbosity to {level}"),
        )),
        Err(why) => (StatusCode::CONFLICT, format!("{why}\n")).into_response(),
    }
}
