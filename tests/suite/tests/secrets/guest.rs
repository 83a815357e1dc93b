//! A provider that was given the secret and says it wherever it can: log, both standard streams, an Event, its panic.

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn secrets_printed_by_a_provider_are_withheld() {
    let mut stage = Stage::guest("blurts", &["-v=10"]).await;
    stage.joins("trigger").await;
    let events: Api<Event> = Api::all(stage.client.clone());
    stage
        .until("an Event says why", || async {
            let found = events.list(&ListParams::default()).await.unwrap().items;
            let waits = |event: &Event| event.reason.as_deref() == Some("InitializationFailed");
            let blurted = |event: &Event| event.reason.as_deref() == Some("Blurted");
            found.iter().any(waits) && found.iter().any(blurted)
        })
        .await;
    // What it said is there, without the secret.
    for said in [
        "the log says [secret token]",
        "out [secret token]",
        "err [secret token]",
        "it is [secret token]",
        "whose reason is not a short CamelCase word",
    ] {
        stage.until_logged(said).await;
    }
    stage.search_everything(&["node trigger"]).await;
    stage.stop().await;
    stage.search_log();
}
