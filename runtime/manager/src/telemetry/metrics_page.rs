//! `/metrics`, as OpenMetrics or in the text format of Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cloudwit_host::bounded_work::bounded;
use prometheus_client::registry::Registry;

use crate::telemetry::metric_text;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of the older format.
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long writing the page may take; it shares locks with the working thread.
const LIMIT: Duration = Duration::from_secs(5);

/// All metrics. They are written on a thread of the pool.
pub async fn answer(registry: Arc<Registry>, headers: &HeaderMap) -> Response {
    let text = bounded("metrics", LIMIT, move || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).map(|()| text)
    });
    let text = match text.await {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(late) => return (StatusCode::SERVICE_UNAVAILABLE, format!("no metrics: {late}\n")).into_response(),
    };
    let accept = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    if accept
        .into_iter()
        .any(|value| value.contains("application/openmetrics-text"))
    {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], metric_text::open_metrics(&text)).into_response()
    } else {
        ([(header::CONTENT_TYPE, TEXT)], metric_text::prometheus(&text)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_reader_chooses() {
        let of = async |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            answer(Arc::default(), &headers).await.headers()[header::CONTENT_TYPE]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            of("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3").await,
            OPEN_METRICS
        );
        assert_eq!(of("text/plain;version=0.0.4").await, TEXT);
        assert_eq!(of("*/*").await, TEXT);
    }
}
