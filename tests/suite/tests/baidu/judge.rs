//! The stand-in is what it claims: Baidu's own SDK works on it, and is refused as by Baidu.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::own_client;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn baidus_own_sdk_finds_baidu_in_the_stand_in() {
    let cloud = StandIn::start("baidu", &[]).await.unwrap();
    let seen = own_client(&cloud, "baidu.judge").await.unwrap();
    let machines = json!({
        "pages": 3, "machines": 1100, "one": ["judged-7", "Running", "cn-bj-a", "bcc.g5.c2m8", true], "missing": [404, "NoSuchObject"],
        "size": [400, "InappropriateJSON"],
    });
    assert_eq!(seen["machines"], machines);
    let balancers = json!({
        "states": ["creating", "available", "updating", 0, "creating", "binding"], "early": [409, "LastOperationNotFinished"],
        "again": [400, "ListenerAlreadyExist"], "odd": [400, "InappropriateJSON"], "tcp": [80, 30090, "RoundRobin", 5, 3],
        "udp": [53, "Hash", "HealthCheck"], "twice": [400, "BackendServerAlreadyExist"], "nobody": [404, "BackendServerNotFound"],
        "many": [403, "BackendServerQuotaExceeded"], "behind": 2, "soon": [409, "InvalidInstanceStatus"], "public": true, "bandwidth": 20,
        "held": [409, "InvalidInstanceStatus"], "bound": [409, "InvalidInstanceStatus"], "left": [1, 0], "gone": [404, "NoSuchObject"],
    });
    assert_eq!(seen["balancers"], balancers);
    let routes = json!({ "hops": true, "conflict": [409, "RouteRuleConflict"], "gone": [404, "NoSuchObject"] });
    assert_eq!(seen["routes"], routes);
    let refusals = json!({
        "secret": [403, "SignatureDoesNotMatch"], "key": [403, "InvalidAccessKeyId"], "denied": [403, "AccessDenied"],
        "throttled": [429, "RequestLimitExceeded"],
    });
    assert_eq!(seen["refusals"], refusals);
    let calls = cloud.calls().await.unwrap();
    let by_sdk = calls
        .iter()
        .filter(|call| call.agent.starts_with("bce-sdk-python"))
        .count();
    assert!(by_sdk > 50 && by_sdk == calls.len(), "{by_sdk} of {}", calls.len());
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
