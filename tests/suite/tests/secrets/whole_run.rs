//! The whole job of the provider `sim`: Nodes, a Service, routes, faults, swaps, strangers, the end; in text and in JSON; and a dry run.

use cloudwit_sim_cloud::{Fault, FaultKind};

use crate::stage::{BEARER, COLLECTOR, PASSWORD, ROTATED, Stage, TOKEN};

/// Objects that are asked about.
const OBJECTS: [&str; 3] = ["node node-1", "node node-2", "service default/web"];

async fn whole_run(format: &str) {
    let mut stage = Stage::sim(&["-v=10", format, "--use-service-account-credentials"]).await;
    stage.joins("node-1").await;
    stage.until_initialised("node-1").await;
    stage.serves("web").await;
    stage.request_of_other_host().await;
    faults(&stage).await;
    swaps(&stage).await;
    stage.search_everything(&OBJECTS).await;

    // The canaries were there: in what was sent, and in what nobody should see.
    let uses = stage.cloud.token_uses();
    assert!(
        uses.contains_key(TOKEN) && uses.contains_key(ROTATED),
        "{:?}",
        uses.keys()
    );
    assert_eq!(stage.collector.credentials().as_deref(), Some(COLLECTOR));
    assert!(stage.log().contains("[secret token]"), "a cloud sent the token back");
    assert!(
        stage.log().contains("[secret password]"),
        "a provider quoted the password"
    );
    stage.stop().await;
    stage.search_log();
}

/// A cloud that sends the token back, that fails, and that talks nonsense.
async fn faults(stage: &Stage) {
    for (number, fault) in [FaultKind::Echo, FaultKind::Garbage, FaultKind::Cut]
        .into_iter()
        .enumerate()
    {
        stage.cloud.set_faults([Fault::new(fault)]);
        stage.joins(&format!("node-{}", number + 2)).await;
        let event = format!("node-{}", number + 2);
        stage
            .until("it is told", || async {
                stage
                    .log()
                    .lines()
                    .any(|line| line.contains("not initialised") && line.contains(&event))
            })
            .await;
        stage.search_everything(&OBJECTS[..1]).await;
    }
    stage.collector.answers(401);
    stage.until_logged("trace export failed").await;
    stage.collector.answers(200);
    stage.cloud.set_faults([]);
    stage.until_initialised("node-3").await;
}

/// Another token; then a cloud config whose mistake is the password itself, and settings that are no YAML around a secret.
async fn swaps(stage: &Stage) {
    stage.cloud.set_tokens([TOKEN, ROTATED]);
    stage.files.write("token", ROTATED);
    stage.until_logged("swapped").await;
    // What was denied is tried again at once with the new token.
    stage.until_initialised("node-2").await;
    let end = format!(", \"password\": \"{PASSWORD}\", \"pageSize\": \"{PASSWORD}\"");
    stage.files.configure(&stage.cloud.url(), &end);
    stage.until_logged("pageSize").await;
    stage
        .files
        .write("settings.yaml", &format!("grants: [\npassword: {BEARER}\n"));
    stage.until_logged("settings.yaml: ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_contains_a_secret_during_the_whole_job() {
    whole_run("--logging-format=text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported_in_json_either() {
    whole_run("--logging-format=json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported_by_a_dry_run() {
    let mut stage = Stage::sim(&["-v=10", "--dry-run"]).await;
    stage.cloud.set_faults([Fault::new(FaultKind::Echo).times(3)]);
    stage.joins("node-1").await;
    stage.until_logged("dry run").await;
    stage.until_logged("[secret token]").await;
    stage.search_everything(&OBJECTS[..1]).await;
    stage.stop().await;
    stage.search_log();
}
