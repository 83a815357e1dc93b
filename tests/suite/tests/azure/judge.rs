//! The stand-in is what it claims: Microsoft's own clients work on it, with the assertion of Microsoft's own login, and are refused as by Azure.

use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::azure::microsofts_clients;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn microsofts_clients_find_azure_in_the_stand_in() {
    let cloud = StandIn::start("azure", &[]).await.unwrap();
    let seen = microsofts_clients(&cloud, "all").await.unwrap();
    let machines = json!({
        "names": ["flexible_1", "judge-0", "judge-1", "judge-2"], "uniform": ["uniform000000", "uniform000001", "uniform000002"],
        "sets": { "flexible": "Flexible", "uniform": "Uniform" }, "size": "Standard_D2s_v3",
        "power": ["ProvisioningState/succeeded", "PowerState/running"], "public": "judge-0-nic-ip", "interfaces": 3, "statuses": 4,
        "missing": [404, "ResourceNotFound"], "group": [404, "ResourceGroupNotFound"],
    });
    assert_eq!(seen["machines"], machines);
    let routes = json!({
        "state": "Succeeded", "busy": [409, "AnotherOperationInProgress"], "stale": [412, "PreconditionFailedEtagMismatch"],
        "wrong": [400, "InvalidRequestFormat"], "unknown": [400, "InvalidRequestFormat"], "seen": ["one"],
    });
    assert_eq!(seen["routes"], routes);
    let balancers = json!({
        "ip": "20.100.0.10", "state": "Succeeded", "rules": ["a"], "behind": ["10.0.0.4"], "nowhere": [400, "InvalidResourceReference"],
        "clash": [400, "InvalidRequestFormat"], "in_use": [400, "PublicIPAddressCannotBeDeleted"], "twice": [400, "SecurityRuleConflict"],
        "gone": [404, "ResourceNotFound"],
    });
    assert_eq!(seen["balancers"], balancers);
    let disks = json!({
        "state": "Succeeded", "held": [0], "holder": "holder", "of_set": [3], "size": [8, 8, 8], "stale": [412, "PreconditionFailedEtagMismatch"],
        "apart": [400, "BadRequest"], "full": [409, "OperationNotAllowed"], "shrunk": [409, "OperationNotAllowed"],
        "in_use": [409, "OperationNotAllowed"], "small": [400, "InvalidParameter"], "unknown": [400, "InvalidRequestFormat"],
        "no_room": [200, "ZonalAllocationFailed"], "failed": "Failed", "seen": ["copy", "far", "nowhere", "one", "other"],
        "gone": [404, "ResourceNotFound"], "most": 4,
    });
    assert_eq!(seen["disks"], disks);
    let links = json!({
        "families": ["10.22", "fd00:"], "alias": "judged", "connected": ["endpoint"], "left": 0,
        "wrong": ["InvalidRequestFormat", "InvalidRequestFormat", "RulesUseSameBackendPortProtocolAndPool", "InvalidRequestFormat", "InvalidRequestFormat"],
        "closed": [400, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled"],
        "in_use": [400, "InUseFrontendIPConfigurationCannotBeDeleted"], "kept": [400, "PrivateLinkServiceInUse"],
    });
    assert_eq!(seen["links"], links);
    assert_eq!(seen["token"], json!([401, "ExpiredAuthenticationToken"]));
    let calls = cloud.calls().await.unwrap();
    let by_microsoft = calls
        .iter()
        .filter(|call| call.agent.contains("azsdk-python-mgmt-"))
        .count();
    assert!(by_microsoft > 15, "{by_microsoft} calls by Microsoft's clients");
    assert!(
        calls.iter().all(|call| call.status != 599),
        "the stand-in made a mistake"
    );
}
