use cloudwit_guest_sdk::testing::FakeHost;

use super::*;
use crate::Alibaba;

fn told(global: &str) -> Vec<(String, Severity)> {
    let host = FakeHost::new();
    host.config(format!("{{\"Global\": {{{global}}}}}"));
    let problems = host.check::<Alibaba>();
    problems
        .into_iter()
        .map(|problem| (problem.at, problem.severity))
        .collect()
}

fn global(text: &str) -> Global {
    let config: Config = serde_json::from_str(&format!("{{\"Global\": {{{text}}}}}")).unwrap();
    config.global
}

#[test]
fn a_file_of_upstream_is_read() {
    let text = r#""uid": "1", "accessKeyID": "TFRBSWtleQ==", "clusterID": "c", "kubernetesClusterTag": "t", "region": "cn-hangzhou", "vpcid": "v", "zoneid": "z",
        "vswitchid": ":vsw-1", "resourceGroupID": "rg", "routeTableIDs": "vtb-1, vtb-2", "disablePublicSLB": true, "serviceBackendType": "ecs",
        "nodeMonitorPeriod": 120, "nodeAddrSyncPeriod": 240, "privateZoneId": "p", "featureGates": "a=true", "nodeMaxConcurrentReconciles": 1,
        "routeMaxConcurrentReconciles": 1, "serviceMaxConcurrentReconciles": 3, "privateZoneRecordTTL": 30"#;
    assert!(
        told(text).iter().all(|(_, severity)| *severity == Severity::Warning),
        "{:?}",
        told(text)
    );
    let read = global(text);
    assert_eq!(
        read.access_key_id().as_deref(),
        Some("LTAIkey"),
        "it is in Base64 there"
    );
    assert_eq!(read.route_tables(), ["vtb-1", "vtb-2"]);
    assert_eq!(
        read.vswitches(),
        [VSwitch {
            id: "vsw-1",
            zone: None
        }]
    );
    assert_eq!(read.endpoint(SLB), "https://slb.cn-hangzhou.aliyuncs.com");
    assert!(read.disable_public_slb);
}

#[test]
fn keys_and_vswitches_are_read_in_all_their_forms() {
    assert_eq!(
        global(r#""accessKeyID": "LTAI5tCloudwitStandInKey1""#)
            .access_key_id()
            .as_deref(),
        Some("LTAI5tCloudwitStandInKey1")
    );
    assert_eq!(global("").access_key_id(), None);
    let vswitches = global(r#""vswitchid": "cn-a:vsw-1, cn-b:vsw-2,vsw-3,,:""#);
    let found: Vec<(Option<&str>, &str)> = vswitches.vswitches().iter().map(|one| (one.zone, one.id)).collect();
    assert_eq!(
        found,
        [(Some("cn-a"), "vsw-1"), (Some("cn-b"), "vsw-2"), (None, "vsw-3")]
    );
}

#[test]
fn mistakes_are_reported_with_their_keys() {
    let wrong =
        told(r#""accessKeySecret": "x", "endpoints": {"ecs": "ecs"}, "serviceBackendType": "eni", "clusterID": "c""#);
    let errors: Vec<&str> = wrong.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(
        errors,
        [
            "Global.region",
            "Global.endpoints.ecs",
            "Global.accessKeySecret",
            "Global.serviceBackendType"
        ]
    );
    assert_eq!(told(r#""region": "cn hangzhou", "clusterID": "c""#).len(), 1);
    assert_eq!(
        told(r#""region": "cn-x""#),
        [("Global.clusterID".to_owned(), Severity::Warning)]
    );
    assert_eq!(
        told(r#""region": "cn-x", "clusterID": "c", "vpcId": "v""#)[0].0,
        "Global.vpcId"
    );
}

#[test]
fn all_keys_are_in_the_readme() {
    let readme = include_str!("../../README.md");
    for key in cloudwit_guest_sdk::testing::keys_of::<Global>() {
        assert!(readme.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn grants_follow_from_the_credentials() {
    let host = FakeHost::new();
    host.config(r#"{"Global": {"region": "cn-x"}}"#);
    let role = host.describe::<Alibaba>();
    assert_eq!(role.secrets.len(), 0);
    assert_eq!(role.http.last().map(|wish| wish.host.as_str()), Some("100.100.100.200"));
    assert_eq!(role.provider_id_prefixes, ["alicloud://", "cn-x."]);
    host.config(r#"{"Global": {"region": "cn-x", "accessKeyID": "LTAI"}}"#);
    let key = host.describe::<Alibaba>();
    assert_eq!((key.secrets.len(), key.http.len()), (1, 4));
}
