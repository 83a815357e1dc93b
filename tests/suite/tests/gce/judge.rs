//! The stand-in is what it claims: Google's own client, with Google's own login, works on it and is refused as by Compute Engine.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::gce::google_client;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn googles_client_finds_compute_engine_in_the_stand_in() {
    let cloud = StandIn::start("gce", &[]).await.unwrap();
    cloud.call("operations_take", json!({ "seconds": 0.05 })).await.unwrap();
    let seen = google_client(&cloud, &[]).await.unwrap();
    let machines = json!({
        "names": ["judge-0", "judge-1", "judge-2"], "pages": 2, "part": ["name", "networkInterfaces"], "missing": [404, "notFound"],
    });
    assert_eq!(seen["machines"], machines);
    let route = json!({ "again": [409, "alreadyExists"], "wrong": [400, "invalid"], "unknown": [400, "invalid"], "seen": ["judge-route"] });
    assert_eq!(seen["route"], route);
    assert_eq!(seen["balancer"]["used"], json!([400, "resourceInUseByAnotherResource"]));
    assert!(
        seen["balancer"]["address"].as_str().unwrap().starts_with("34.72."),
        "{seen}"
    );
    assert_eq!(seen["fingerprint"], json!([412, "conditionNotMet"]));
    let in_use = json!([400, "resourceInUseByAnotherResource"]);
    let disk = json!({ "used": in_use, "twice": in_use, "smaller": [400, "invalid"], "snapshot": "12" });
    assert_eq!(seen["disk"], disk);
    assert_eq!(
        seen["metadata"],
        json!({"items": ["judge"], "late": [412, "conditionNotMet"]})
    );
    let clusters = json!({"found": [["judge", "203.0.113.7"]], "narrow": [403, "insufficientPermissions"]});
    assert_eq!(seen["clusters"], clusters);
    let calls = cloud.calls().await.unwrap();
    let agent = calls
        .iter()
        .find(|call| call.name == "instances.get")
        .unwrap()
        .agent
        .clone();
    assert_eq!(agent, "(gzip)", "so Google's client calls itself");
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
