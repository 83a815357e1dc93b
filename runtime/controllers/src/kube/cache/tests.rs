//! What a cache does with news, old news and its own writes.

use std::sync::Mutex;

use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;

use super::*;
use crate::kube::node::Node;
use crate::sync::lock;

fn node(name: &str, uid: &str, version: u64) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..Node::default()
    }
}

/// A cache and what its listener heard, as `+a1`, `a1>2`, `-a2`.
struct Story {
    cache: Cache<Node>,
    heard: Arc<Mutex<Vec<String>>>,
    seen: HashSet<Key>,
}

impl Story {
    fn new() -> Self {
        let (cache, heard) = (Cache::<Node>::default(), Arc::<Mutex<Vec<String>>>::default());
        let log = heard.clone();
        cache.listen(move |key, change| {
            lock(&log).push(match change {
                Change::Added(new) => format!("+{key}{}", version_of(&**new)),
                Change::Updated { old, new } => format!("{key}{}>{}", version_of(&**old), version_of(&**new)),
                Change::Deleted(old) => format!("-{key}{}", version_of(&**old)),
            });
        });
        Self {
            cache,
            heard,
            seen: HashSet::new(),
        }
    }

    fn list(&mut self, nodes: Vec<Node>) {
        self.take(Event::Init);
        nodes.into_iter().for_each(|node| self.take(Event::InitApply(node)));
        self.take(Event::InitDone);
    }

    fn take(&mut self, event: Event<Node>) {
        self.cache.take(event, &mut self.seen);
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.heard))
    }
}

#[test]
fn listeners_hear_each_change_once() {
    let mut story = Story::new();
    story.list(vec![node("a", "1", 1), node("b", "2", 2)]);
    assert_eq!(story.heard(), ["+a1", "+b2"]);
    story.take(Event::Apply(node("a", "1", 3)));
    story.take(Event::Apply(node("a", "1", 3)));
    story.take(Event::Delete(node("b", "2", 4)));
    assert_eq!(story.heard(), ["a1>3", "-b2"]);
}

#[test]
fn new_list_reports_only_what_differs() {
    let mut story = Story::new();
    story.list(vec![node("a", "1", 1), node("b", "2", 2), node("c", "3", 3)]);
    story.heard();
    story.list(vec![node("a", "1", 1), node("b", "2", 9)]);
    assert_eq!(story.heard(), ["b2>9", "-c3"]);
}

#[test]
fn own_write_is_visible_at_once_and_older_events_ignored() {
    let mut story = Story::new();
    story.list(vec![node("a", "1", 1)]);
    story.cache.observe(node("a", "1", 5));
    assert_eq!(version_of(&*story.cache.get("a").unwrap()), 5);
    story.take(Event::Apply(node("a", "1", 3)));
    assert_eq!(
        version_of(&*story.cache.get("a").unwrap()),
        5,
        "the watch lags behind our write"
    );
    story.take(Event::Apply(node("a", "1", 5)));
    story.take(Event::Apply(node("a", "1", 7)));
    assert_eq!(story.heard(), ["+a1", "a1>5", "a5>7"]);
}

#[test]
fn stale_or_foreign_answer_is_ignored() {
    let mut story = Story::new();
    story.list(vec![node("a", "1", 5)]);
    story.cache.observe(node("a", "1", 4));
    story.cache.observe(node("a", "another", 9));
    story.cache.observe(node("gone", "2", 9));
    assert_eq!(story.heard(), ["+a5"]);
    assert!(story.cache.get("gone").is_none());
}

#[test]
fn api_server_restored_from_a_backup_is_accepted() {
    let mut story = Story::new();
    story.list(vec![node("a", "1", 100)]);
    story.cache.observe(node("a", "1", 105));
    story.list(vec![node("a", "1", 50)]);
    story.take(Event::Apply(node("a", "1", 51)));
    assert_eq!(story.heard(), ["+a100", "a100>105", "a105>50", "a50>51"]);
}

#[test]
fn the_deletion_of_a_predecessor_does_not_remove_its_successor() {
    let mut story = Story::new();
    story.list(vec![node("a", "new", 5)]);
    story.take(Event::Delete(node("a", "old", 4)));
    assert!(story.cache.get("a").is_some());
}

/// An answer with this code to a watch, where most API servers send an event with it: kube requests the same version for ever.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_answered_with_410_lists_again() {
    let lists = Arc::<Mutex<u32>>::default();
    let counted = lists.clone();
    let server = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let (code, body) = if query.contains("sendInitialEvents") {
            (400, status(400))
        } else if query.contains("watch=true") {
            (410, status(410))
        } else {
            let mut lists = lock(&counted);
            *lists += 1;
            let item =
                serde_json::json!({ "metadata": { "name": format!("n{lists}"), "uid": "u", "resourceVersion": "1" } });
            let list = serde_json::json!({ "kind": "NodeList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": [item] });
            (200, list)
        };
        let body = kube::client::Body::from(serde_json::to_vec(&body).unwrap());
        let answer = http::Response::builder().status(code).body(body).unwrap();
        async move { Ok::<_, kube::Error>(answer) }
    });
    let cache = Cache::<Node>::default();
    let metrics = Metrics::new(&mut prometheus_client::registry::Registry::default());
    let watching = cache.run(Client::new(server, "default"), Api::all, metrics);
    let _ = tokio::time::timeout(Duration::from_secs(9), watching).await;
    let lists = *lock(&lists);
    assert!((3..=9).contains(&lists), "{lists}");
    assert!(cache.get(&format!("n{lists}")).is_some());
}

fn status(code: u16) -> serde_json::Value {
    serde_json::json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": "no", "reason": "no" })
}
