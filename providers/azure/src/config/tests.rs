use cloudwit_guest_sdk::config::parse_any;
use cloudwit_guest_sdk::testing::FakeHost;
use cloudwit_guest_sdk::testing::keys_of;

use super::*;
use crate::Azure;

/// As `aks-engine` and Cluster API write it.
const USUAL: &str = r#"{
    "cloud": "AzureChinaCloud", "tenantId": "t", "subscriptionId": "s", "aadClientId": "c", "resourceGroup": "rg", "securityGroupName": "nsg",
    "location": "chinaeast2", "vmType": "vmss", "vnetName": "v", "vnetResourceGroup": "net", "subnetName": "n", "routeTableName": "r",
    "loadBalancerSku": "Standard", "maximumLoadBalancerRuleCount": 250, "useManagedIdentityExtension": false, "useInstanceMetadata": true,
    "cloudProviderBackoff": true, "cloudProviderRateLimitQPS": 6.5, "excludeMasterFromStandardLB": true, "vmssCacheTTLInSeconds": 60,
    "tags": "a=b, c = d", "tagsMap": {"c": "e"}
}"#;

fn problems(text: &str) -> Vec<String> {
    let host = FakeHost::new();
    host.config(text);
    let problems = host.check::<Azure>();
    problems.into_iter().map(|problem| problem.at).collect()
}

#[test]
fn azure_json_is_read_as_it_is() {
    assert_eq!(problems(USUAL), [""; 0]);
    let config: Config = serde_json::from_value(parse_any(USUAL).unwrap().value).unwrap();
    assert_eq!(config.resource_manager(), "https://management.chinacloudapi.cn");
    assert_eq!(config.active_directory(), "https://login.chinacloudapi.cn");
    assert_eq!(
        config.all_tags(),
        *serde_json::json!({ "a": "b", "c": "e" }).as_object().unwrap()
    );
    assert_eq!(config.network_group(Some("net")), "/subscriptions/s/resourceGroups/net");
    assert!(config.has_scale_sets());
}

#[test]
fn yaml_does_too() {
    let yaml = "tenantId: t\nsubscriptionId: s\naadClientId: c\nresourceGroup: rg\nlocation: westeurope\n";
    assert_eq!(problems(yaml), [""; 0]);
}

#[test]
fn all_mistakes_are_reported_together() {
    let wrong = r#"{
        "cloud": "AzureGermanCloud", "resourceGroup": "a/b", "location": "", "vmType": "vm", "loadBalancerSku": "basic", "tagsMap": {"a": 1},
        "resourceManagerEndpoint": "management", "aadClientCertPath": "/etc/cert.pfx", "networkResourceTenantID": "other", "routeTableNane": "x"
    }"#;
    // Keys first: without types nothing else can be checked.
    assert_eq!(problems(wrong), ["routeTableNane"]);
    let found = problems(&wrong.replace("routeTableNane", "routeTableName"));
    for key in [
        "subscriptionId",
        "resourceGroup",
        "location",
        "resourceManagerEndpoint",
        "cloud",
        "vmType",
        "loadBalancerSku",
        "networkResourceTenantID",
        "tagsMap.a",
        "aadClientCertPath",
        "tenantId",
        "aadClientId",
    ] {
        assert!(found.contains(&key.to_owned()), "{key} is not in {found:?}");
    }
    assert_eq!(found.len(), 12, "{found:?}");
}

#[test]
fn probe_of_all_services_is_a_known_mode() {
    let mode = |mode: &str| {
        let text = format!(
            r#"{{"clusterServiceLoadBalancerHealthProbeMode": "{mode}", "useManagedIdentityExtension": true, "subscriptionId": "s", "resourceGroup": "r",
                "location": "l", "clusterServiceSharedLoadBalancerHealthProbePort": 0}}"#
        );
        let config: Config = serde_json::from_str(&text).unwrap();
        (problems(&text), config.shared_probe())
    };
    assert_eq!(mode("Shared"), (vec![], Some((10_256, "/healthz".to_owned()))));
    assert_eq!(mode("ServiceNodePort"), (vec![], None));
    assert_eq!(mode("own").0, ["clusterServiceLoadBalancerHealthProbeMode"]);
}

#[test]
fn azure_stack_needs_both_endpoints() {
    let stack = r#"{"cloud": "AzureStackCloud", "tenantId": "t", "aadClientId": "c", "subscriptionId": "s", "resourceGroup": "r", "location": "l"}"#;
    assert_eq!(problems(stack), ["resourceManagerEndpoint", "activeDirectoryEndpoint"]);
}

#[test]
fn sovereign_clouds_have_their_own_endpoints() {
    let of = |cloud: &str| Config {
        cloud: Some(cloud.into()),
        ..Config::default()
    };
    for (cloud, arm, login) in [
        ("", "https://management.azure.com", "https://login.microsoftonline.com"),
        (
            "AZUREPUBLICCLOUD",
            "https://management.azure.com",
            "https://login.microsoftonline.com",
        ),
        (
            "AzureUSGovernmentCloud",
            "https://management.usgovcloudapi.net",
            "https://login.microsoftonline.us",
        ),
        (
            "AZUREUSGOVERNMENT",
            "https://management.usgovcloudapi.net",
            "https://login.microsoftonline.us",
        ),
    ] {
        let config = of(cloud);
        assert_eq!(
            (config.resource_manager(), config.active_directory()),
            (arm.into(), login.into()),
            "{cloud}"
        );
        assert_eq!(config.audience(), arm);
    }
}

#[test]
fn readme_has_every_key() {
    let readme = include_str!("../../README.md");
    for key in keys_of::<Config>() {
        assert!(readme.contains(&format!("`{key}`")), "the README does not have `{key}`");
    }
}
