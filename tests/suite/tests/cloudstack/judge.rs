//! The stand-in is what it claims: two clients of others work on it with signers of their own, and are refused as by CloudStack.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::cloudstack::clients_of_others;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_others_find_cloudstack_in_the_stand_in() {
    let cloud = StandIn::start("cloudstack", &[]).await.unwrap();
    let seen = clients_of_others(&cloud, "all").await.unwrap();
    let cs = json!({
        "machines": 1100, "details": ["Small Instance", true], "named": 11, "state": "Allocated", "tagged": 1, "during": 0,
        "clash": [537, 537, "The range specified, 80-80, conflicts wi"], "again": [200, 431, "VM judged-0 is already mapped to load ba"],
        "shown": ["Active", "tcp-proxy", "10.0.0.0/8 192.0.2.0/24"], "behind": 2, "opened": "Active",
        "overlaps": [537, 537, "The range specified, 80-80, conflicts wi"], "failed": [200, 530, "the router is away"],
        "missing": [431, 431, "Unable to execute API command deleteload"], "after": {},
    });
    assert_eq!(seen["cs"], cs);
    let unverified = json!([401, 401, "unable to verify user credentials and/or"]);
    let refusals = json!({
        "secret": unverified, "key": unverified, "expired": unverified, "unsigned_end": null,
        "unknown_id": [431, 431, "Unable to execute API command listvirtua"], "page": [431, 431, "Page size can't exceed max allowed page "],
        "command": [432, 432, "The given command:listNothing does not e"], "parameter": [431, 431, "listVirtualMachines has no parameter nma"],
        "throttled": [429, 429, "The given user has reached his/her accou"], "missing": [431, 431, "Unable to execute API command createfire"],
    });
    assert_eq!(seen["refusals"], refusals);
    let libcloud = json!({
        "nodes": [["other", "running", ["10.1.4.77"]]], "balancer": ["libcloud", true, "80"], "members": ["10.1.4.77"], "opened": 1, "left": 0,
        "credentials": "InvalidCredsError",
    });
    assert_eq!(seen["libcloud"], libcloud);
    let calls = cloud.calls().await.unwrap();
    let by = |agent: &str| calls.iter().filter(|call| call.agent.contains(agent)).count();
    assert!(by("cs") > 20 && by("libcloud") > 5, "{} {}", by("cs"), by("libcloud"));
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
