use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

use super::*;

const TABLE: &str = "https://management.azure.com/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/routeTables/t?api-version=2025-05-01";
const OPERATION: &str = "https://management.azure.com/subscriptions/s/operations/1?api-version=2025-05-01";

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config(
        r#"{"useManagedIdentityExtension": true, "subscriptionId": "s", "resourceGroup": "rg", "location": "westeurope", "routeTableName": "t"}"#,
    );
    host.cluster("c", &["10.244.0.0/16", "fd01::/48"]);
    host
}

fn token(host: &FakeHost) {
    let url = "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F";
    host.expect("GET", url)
        .answers(200, json!({ "access_token": "t", "expires_in": "9999" }));
}

fn new_route(name: &str, to: &str, ip: &str) -> NewRoute {
    NewRoute {
        name_hint: name.into(),
        destination: to.into(),
        node: NodeRef {
            addresses: vec![Address::new(AddressKind::InternalIp, ip)],
            ..NodeRef::named(name)
        },
    }
}

fn hop(name: &str, to: &str, ip: &str) -> Value {
    json!({ "name": name, "properties": { "addressPrefix": to, "nextHopType": "VirtualAppliance", "nextHopIpAddress": ip } })
}

#[test]
fn all_changes_are_one_conditional_put() {
    let host = host();
    token(&host);
    let internet = json!({ "name": "out", "properties": { "addressPrefix": "0.0.0.0/0", "nextHopType": "Internet" } });
    let there = json!({ "etag": "W/\"1\"", "location": "westeurope", "unknown": 1, "properties": { "odd": 2, "routes": [internet, hop("gone", "10.244.9.0/24", "10.0.0.9")] } });
    host.expect("GET", TABLE).answers(200, there);
    let put = host.expect("PUT", TABLE).with_header("if-match", "W/\"1\"");
    put.gives(FakeAnswer::new(
        200,
        &[("Azure-AsyncOperation", OPERATION), ("Retry-After", "5")],
        "{}",
    ));
    let create = [
        new_route("one", "10.244.1.0/24", "10.0.0.4"),
        new_route("two", "fd01:1::/64", "10.0.0.5"),
    ];
    let delete = [Route {
        id: "gone".into(),
        destination: "10.244.9.0/24".into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    }];
    let outcome = host
        .provider::<Azure>()
        .apply(&create, &delete, &RouteTokens::none())
        .unwrap();
    let operation = FailureKind::Pending("/subscriptions/s/operations/1?api-version=2025-05-01".into());
    let waits = outcome.created[0].clone().unwrap_err();
    assert_eq!((waits.kind, waits.retry_after), (operation.clone(), Some(5_000)));
    assert_eq!(outcome.deleted[0].clone().unwrap_err().kind, operation);
    assert_eq!(
        outcome.created[1].clone().unwrap_err().kind,
        FailureKind::FailedPrecondition,
        "it has no IPv6 address"
    );
    let sent: Value = serde_json::from_slice(&host.requests().last().unwrap().body).unwrap();
    assert_eq!(sent["properties"]["odd"], 2);
    assert_eq!(
        sent["properties"]["routes"],
        json!([internet, hop("one____102441024", "10.244.1.0/24", "10.0.0.4")])
    );
    assert_eq!(sent["unknown"], 1, "what is not known here stays");
}

#[test]
fn operation_that_runs_is_waited_for_and_its_end_is_reported() {
    let host = host();
    token(&host);
    let link = "/subscriptions/s/operations/1?api-version=2025-05-01";
    let tokens = RouteTokens {
        create: vec![Some(link.into())],
        delete: Vec::new(),
    };
    let create = [new_route("one", "10.244.1.0/24", "10.0.0.4")];
    host.expect("GET", OPERATION)
        .answers(200, json!({ "status": "InProgress" }));
    let provider = host.provider::<Azure>();
    let outcome = provider.apply(&create, &[], &tokens).unwrap();
    assert_eq!(
        outcome.created[0].clone().unwrap_err().kind,
        FailureKind::Pending(link.into())
    );
    let failed = json!({ "status": "Failed", "error": { "code": "RouteTableQuotaExceeded", "message": "full" } });
    host.expect("GET", OPERATION).answers(200, failed);
    let outcome = provider.apply(&create, &[], &tokens).unwrap();
    assert_eq!(outcome.created[0].clone().unwrap_err().kind, FailureKind::Exhausted);
    host.expect("GET", OPERATION)
        .answers(200, json!({ "status": "Succeeded" }));
    let table = json!({ "etag": "W/\"2\"", "properties": { "routes": [hop("one", "10.244.1.0/24", "10.0.0.4")] } });
    host.expect("GET", TABLE).answers(200, table);
    assert_eq!(provider.apply(&create, &[], &tokens).unwrap().created, [Ok(())]);
}

#[test]
fn routes_of_others_are_not_listed() {
    let host = host();
    token(&host);
    let internet = json!({ "name": "out", "properties": { "addressPrefix": "10.244.3.0/24", "nextHopType": "None" } });
    let routes = json!([
        internet,
        hop("one", "10.244.1.0/24", "10.0.0.4"),
        hop("far", "192.168.0.0/24", "10.0.0.4"),
        hop("x", "fd01:0:0:2::/64", "fd00::5")
    ]);
    host.expect("GET", TABLE)
        .answers(200, json!({ "properties": { "routes": routes } }));
    let view = |name: &str, ip: &str| ClusterNode {
        ref_: new_route(name, "", ip).node,
        labels: Vec::new(),
        pod_cidrs: Vec::new(),
    };
    host.view(vec![view("One", "10.0.0.4"), view("two", "fd00::5")], Vec::new());
    let listed = host.provider::<Azure>().list().unwrap();
    let told: Vec<_> = listed
        .iter()
        .map(|route| (route.id.as_str(), route.node.as_deref()))
        .collect();
    assert_eq!(told, [("one", Some("One")), ("x", Some("two"))]);
}

#[test]
fn range_routed_elsewhere_is_untouched() {
    let nowhere = json!({ "name": "none", "properties": { "addressPrefix": "10.244.1.0/24", "nextHopType": "None" } });
    let mut table = Table::new(json!({ "properties": { "routes": [nowhere] } }));
    let failure = table
        .add(&new_route("one", "10.244.1.0/24", "10.0.0.4"), false)
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::AlreadyExists);
    let mut table = Table::new(json!({ "properties": { "routes": [hop("old", "10.244.1.0/24", "10.0.0.3")] } }));
    assert_eq!(
        table.add(&new_route("one", "10.244.1.0/24", "10.0.0.4"), false),
        Ok(true)
    );
    assert_eq!(
        table.into_value()["properties"]["routes"],
        json!([hop("one", "10.244.1.0/24", "10.0.0.4")])
    );
}
