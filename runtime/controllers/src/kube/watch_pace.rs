//! Backoff between watches that end at once and without an error.
//!
//! ```text
//!   kube's watcher --request--> paced client --(is it a watch? then wait)--> the client below
//!                                    ^ a watch was opened, an object came
//! ```
//!
//! kube's watcher backs off after errors alone: a watch that ends regularly is reopened at once, so an API server, or a proxy before it,
//! that closes each watch as soon as it is open would get hundreds of requests a second. The reopening happens inside the watcher,
//! so the pause is put before the request. [`WatchPace`] decides and is pure; the clock is passed in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, sleep};

use crate::ambient::jitter;
use crate::sync::lock;

/// A watch that lasted this long was a good one. The API server ends watches after 5 to 10 minutes by itself.
const LONG_ENOUGH: Duration = Duration::from_secs(10);
/// The first pause; doubles with each further watch that was short. Up to half as much is added, so that replicas do not come together.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// No pause is longer, but for the addition: what is missed meanwhile is seen this much later.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Also watches that brought something are not opened more often than this.
const DISTANCE: Duration = Duration::from_millis(100);

/// How soon the next watch may be opened.
#[derive(Debug, Default)]
pub struct WatchPace {
    /// When the last watch was opened; none before the first.
    opened: Option<Instant>,
    delivered: bool,
    /// Watches in a row that were short and brought nothing.
    short: u32,
}

impl WatchPace {
    /// A watch was opened.
    pub fn opened(&mut self, now: Instant) {
        (self.opened, self.delivered) = (Some(now), false);
    }

    /// The watch brought an object that changed.
    pub fn delivered(&mut self) {
        self.delivered = true;
    }

    /// How long to wait before the next watch. `jitter` is between 0 and 1.
    pub fn pause(&mut self, now: Instant, jitter: f64) -> Duration {
        let Some(opened) = self.opened.take() else {
            return Duration::ZERO;
        };
        let lasted = now - opened;
        if lasted >= LONG_ENOUGH || self.delivered {
            self.short = 0;
            return DISTANCE.saturating_sub(lasted);
        }
        self.short = self.short.saturating_add(1);
        let pause = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(self.short - 1));
        pause.min(LONGEST_PAUSE).mul_f64(1.0 + jitter / 2.0)
    }
}

/// The same client, whose watches keep this pace. For one watch at a time.
pub fn paced(client: Client, pace: Arc<Mutex<WatchPace>>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, pace) = (client.clone(), pace.clone());
        async move {
            if !is_watch(&request) {
                return client.send(request).await;
            }
            let pause = lock(&pace).pause(Instant::now(), jitter(0.0..1.0));
            if !pause.is_zero() {
                tracing::debug!(
                    pause_seconds = pause.as_secs_f64(),
                    "watch ended at once; waiting before reopening"
                );
                sleep(pause).await;
            }
            let response = client.send(request).await?;
            // Of those that were refused the watcher takes care.
            if response.status().is_success() {
                lock(&pace).opened(Instant::now());
            }
            Ok(response)
        }
    });
    Client::new(service, namespace)
}

fn is_watch(request: &Request<Body>) -> bool {
    let parameters = request.uri().query().unwrap_or_default().split('&');
    parameters
        .into_iter()
        .any(|parameter| parameter == "watch=true" || parameter == "watch=1")
}

#[cfg(test)]
mod tests {
    use http::Response;
    use kube::Api;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use crate::kube::cache::Cache;
    use crate::kube::node::Node;
    use crate::metrics::Metrics;

    #[test]
    fn pauses_double_and_end_with_a_watch_that_was_of_use() {
        let (mut pace, start) = (WatchPace::default(), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut pause = |opened: f64, lasted: f64, delivered: bool| {
            pace.opened(at(opened));
            if delivered {
                pace.delivered();
            }
            pace.pause(at(opened + lasted), 0.0).as_millis()
        };
        let short: Vec<u128> = (0..10).map(|second| pause(f64::from(second), 0.001, false)).collect();
        assert_eq!(short, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(pause(20.0, 10.0, false), 0, "it lasted");
        assert_eq!(pause(40.0, 1.0, false), 200, "from the beginning");
        assert_eq!(pause(50.0, 1.0, true), 0, "it brought something");
        assert_eq!(pause(60.0, 0.04, true), 60, "but not without end");
        assert_eq!(WatchPace::default().pause(start, 1.0), Duration::ZERO);
    }

    /// An API server that answers each list, and each watch with nothing or with the same change of the Node. Counts watches.
    fn server(watches: Arc<Mutex<u32>>, change: bool) -> Client {
        let server = tower::service_fn(move |request: Request<Body>| {
            let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7" });
            let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata });
            let query = request.uri().query().unwrap_or_default().to_owned();
            let answer = match is_watch(&request) {
                true if query.contains("sendInitialEvents=true") => {
                    *lock(&watches) += 1;
                    let annotations = json!({ "k8s.io/initial-events-end": "true" });
                    let mark = json!({ "apiVersion": "v1", "kind": "Node",
                        "metadata": { "resourceVersion": "7", "annotations": annotations } });
                    format!("{}\n{}\n", json!({ "type": "ADDED", "object": node }), json!({ "type": "BOOKMARK", "object": mark }))
                }
                true => {
                    *lock(&watches) += 1;
                    match change {
                        true => format!("{}\n", json!({ "type": "MODIFIED", "object": node })),
                        false => String::new(),
                    }
                }
                false => json!({ "apiVersion": "v1", "kind": "NodeList", "metadata": { "resourceVersion": "7" }, "items": [node] })
                    .to_string(),
            };
            async move { Ok::<_, kube::Error>(Response::new(Body::from(answer.into_bytes()))) }
        });
        Client::new(server, "default")
    }

    async fn watches_in(seconds: u64, change: bool) -> u32 {
        let watches = Arc::<Mutex<u32>>::default();
        let (client, cache) = (server(watches.clone(), change), Arc::<Cache<Node>>::default());
        let (running, metrics) = (cache.clone(), Metrics::new(&mut Registry::default()));
        let task = tokio::spawn(async move { running.run(client, Api::all, metrics).await });
        cache.synced().await;
        sleep(Duration::from_secs(seconds)).await;
        task.abort();
        *lock(&watches)
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_at_once_is_reopened_a_few_times() {
        let watches = watches_in(10, false).await;
        assert!((4..=8).contains(&watches), "{watches} watches in ten seconds");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_ends_after_each_change_is_bounded_too() {
        let watches = watches_in(10, true).await;
        assert!((50..=105).contains(&watches), "{watches} watches in ten seconds");
    }
}
