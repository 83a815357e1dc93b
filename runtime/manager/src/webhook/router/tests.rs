//! What comes over HTTP, and what it is answered.

use std::collections::BTreeMap;
use std::future::pending;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer as Answered, InTreeSource, InTreeVolume, VolumeLabels};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::webhook::volume_label::gather::Source;

/// Knows every disk of Cinder, and never answers about those of vSphere.
struct FakeCloud;

impl VolumeLabels for FakeCloud {
    fn label_sources(&self) -> Answered<'_, Vec<InTreeSource>> {
        Box::pin(async { Ok(vec![InTreeSource::Cinder, InTreeSource::VsphereVolume]) })
    }

    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answered<'a, Each<BTreeMap<String, String>>> {
        Box::pin(async move {
            if volumes
                .iter()
                .any(|volume| volume.source == InTreeSource::VsphereVolume)
            {
                return pending().await;
            }
            let labels = || BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), "a".to_owned())]);
            Ok(volumes.iter().map(|_| Ok(labels())).collect())
        })
    }
}

struct Scene {
    router: Router,
    registry: Registry,
}

impl Scene {
    fn start() -> Self {
        let mut registry = Registry::default();
        let metrics = WebhookMetrics::new(&mut registry);
        let source = Source {
            name: "lab".into(),
            cloud: Arc::new(FakeCloud),
        };
        let gatherer = Gatherer::start(vec![source]);
        Self {
            router: router(&Webhook::ALL, &gatherer, &metrics),
            registry,
        }
    }

    async fn ask(&self, path: &str, content_type: &str, body: impl Into<Body>) -> (StatusCode, String) {
        let request = Request::post(path).header(header::CONTENT_TYPE, content_type);
        let response = self
            .router
            .clone()
            .oneshot(request.body(body.into()).unwrap())
            .await
            .unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn review(&self, spec: Value) -> Value {
        let (status, body) = self.ask(PATH, JSON, review(&spec)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["response"].clone()
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}

const PATH: &str = "/persistent-volume-label";
const JSON: &str = "application/json";

fn review(spec: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "persistentvolumes"},
            "object": {"metadata": {"name": "data"}, "spec": spec},
        },
    })
    .to_string()
}

#[tokio::test]
async fn answers_and_refusals_are_counted_by_status() {
    let scene = Scene::start();
    let labelled = scene.review(json!({"cinder": {"volumeID": "c"}})).await;
    assert_eq!((&labelled["uid"], &labelled["allowed"]), (&json!("u-1"), &json!(true)));
    assert_eq!(labelled["patchType"], "JSONPatch");
    let forbidden = scene
        .review(json!({"azureDisk": {"diskName": "d", "diskURI": "/d"}}))
        .await;
    assert_eq!(
        (&forbidden["allowed"], &forbidden["status"]["code"]),
        (&json!(false), &json!(403))
    );
    let good = review(&json!({}));
    for (content_type, body, status) in [
        (JSON, String::new(), StatusCode::BAD_REQUEST),
        ("application/json; charset=utf-8", good.clone(), StatusCode::BAD_REQUEST),
        (JSON, "{}".to_owned(), StatusCode::BAD_REQUEST),
        (JSON, " ".repeat(BODY + 1), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(scene.ask(PATH, content_type, body).await.0, status, "{content_type}");
    }
    assert_eq!(scene.ask("/other", JSON, good).await.0, StatusCode::NOT_FOUND);
    let metrics = scene.metrics();
    for line in [
        "cloud_provider_webhook_request_total{code=\"200\",webhook=\"persistent-volume-label\"} 2",
        "cloud_provider_webhook_request_total{code=\"400\",webhook=\"persistent-volume-label\"} 3",
        "cloud_provider_webhook_request_total{code=\"413\",webhook=\"persistent-volume-label\"} 1",
        "cloud_provider_webhook_request_duration_seconds_count{code=\"200\",webhook=\"persistent-volume-label\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn cloud_that_does_not_answer_forbids_within_the_time() {
    let scene = Scene::start();
    let begun = Instant::now();
    let late = scene.review(json!({"vsphereVolume": {"volumePath": "[ds] d"}})).await;
    assert_eq!(late["allowed"], false);
    let message = late["status"]["message"].as_str().unwrap();
    assert!(message.contains("has not answered within 8s"), "{message}");
    assert_eq!(begun.elapsed().as_secs(), TIME_LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn missing_body_and_excess_requests_are_refused() {
    let scene = Scene::start();
    let never = || Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let slow: Vec<_> = (0..REQUESTS).map(|_| scene.ask(PATH, JSON, never())).collect();
    let all = async {
        // Each of them has its place before this one comes.
        tokio::task::yield_now().await;
        scene.ask(PATH, JSON, review(&json!({}))).await
    };
    let (slow, (status, text)) = tokio::join!(futures::future::join_all(slow), all);
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "too many requests")
    );
    assert!(
        slow.iter()
            .all(|(status, _)| *status == StatusCode::SERVICE_UNAVAILABLE)
    );
    let (status, _) = scene.ask(PATH, JSON, review(&json!({}))).await;
    assert_eq!(status, StatusCode::OK, "their places are free again");
}
