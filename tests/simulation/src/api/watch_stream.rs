//! The body of a watch: events as they come, bookmarks, cuts and lag.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api::store::Kind;
use crate::faults::{Area, Fault};
use crate::world::World;

/// What a watch asks for.
pub(crate) struct WatchRequest {
    pub(crate) kind: Kind,
    pub(crate) version: u64,
    pub(crate) lasts: Duration,
    /// The objects first, then a bookmark, then events.
    pub(crate) initial: bool,
}

type Chunk = Result<Frame<Bytes>, Infallible>;

fn chunk(text: String) -> Chunk {
    Ok(Frame::data(Bytes::from(text)))
}

fn bookmark(kind: Kind, version: u64, initial: bool) -> String {
    let annotations = if initial {
        json!({ "k8s.io/initial-events-end": "true" })
    } else {
        json!({})
    };
    let metadata =
        json!({ "resourceVersion": version.to_string(), "annotations": annotations, "creationTimestamp": null });
    let object = json!({ "kind": kind.name(), "apiVersion": "v1", "metadata": metadata });
    format!("{}\n", json!({ "type": "BOOKMARK", "object": object }))
}

/// What a watch from a version that is gone begins with, where the API server does not answer 410.
fn expired() -> String {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old resource version" });
    format!("{}\n", json!({ "type": "ERROR", "object": status }))
}

/// The events of one watch until it ends: by its time, by a cut, or because the log does not go back far enough.
pub(crate) fn events(world: Arc<World>, request: WatchRequest) -> impl Stream<Item = Chunk> + Send {
    async_stream::stream! {
        let WatchRequest { kind, mut version, lasts, initial } = request;
        let (ends, cuts) = (Instant::now() + lasts, world.lock().cuts);
        if initial {
            let (text, at) = {
                let inner = world.lock();
                let mut text = String::new();
                for (_, object) in inner.store.all(kind) {
                    text.push_str(&format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
                }
                (text, inner.store.version())
            };
            version = at;
            yield chunk(text + &bookmark(kind, version, true));
        }
        loop {
            let changed = world.changed(kind).notified();
            let news = {
                let inner = world.lock();
                if inner.cuts != cuts {
                    return;
                }
                inner.store.since(kind, version)
            };
            let Ok(news) = news else {
                yield chunk(expired());
                return;
            };
            if news.is_empty() {
                tokio::select! {
                    biased;
                    () = changed => {}
                    () = sleep_until(ends) => {
                        let at = world.lock().store.version();
                        yield chunk(bookmark(kind, at, false));
                        return;
                    }
                }
                let lag = match world.draw(Area::Watches) {
                    Some(Fault::Slow(lag)) => lag,
                    Some(Fault::Hang | Fault::HangAfter) => Duration::from_secs(50),
                    Some(_) => return,
                    None => world.millis(1, 30),
                };
                sleep(lag).await;
                continue;
            }
            let mut text = Vec::new();
            for (at, line) in news {
                version = at;
                text.extend_from_slice(&line);
            }
            yield Ok(Frame::data(Bytes::from(text)));
        }
    }
}
