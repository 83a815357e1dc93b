//! Annotations, each as moto shows what became of it; `life` changes the others.

use serde_json::{Value, json};

use crate::stand::{KINDS, Stand, annotate, service, text};

/// A security group of a user's own.
async fn own_group(stand: &Stand, name: &str) -> String {
    let arguments = json!({ "GroupName": name, "Description": "a user's own", "VpcId": stand.cluster.vpc });
    text(&stand.ask("ec2", "create_security_group", arguments).await["GroupId"])
}

async fn delete_group(stand: &Stand, id: &str) {
    stand
        .ask("ec2", "delete_security_group", json!({ "GroupId": id }))
        .await;
}

fn strings(value: &Value) -> Vec<String> {
    let mut all: Vec<String> = value.as_array().unwrap().iter().map(text).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn classic_security_groups_are_those_of_the_annotations() {
    let stand = Stand::new("own-groups").await;
    let plain = service("own-groups", "classic");
    stand.ensure(&plain).await.unwrap();
    let managed = text(&stand.classic(&plain).await.unwrap()["SecurityGroups"][0]);
    let (own, extra) = (own_group(&stand, "own").await, own_group(&stand, "extra").await);
    let groups = async || strings(&stand.classic(&plain).await.unwrap()["SecurityGroups"]);
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };

    let mut with_extra = plain.clone();
    annotate(&mut with_extra, "extra-security-groups", &extra);
    stand.ensure(&with_extra).await.unwrap();
    assert_eq!(groups().await, sorted(vec![managed.clone(), extra.clone()]));

    let mut replaced = with_extra.clone();
    annotate(&mut replaced, "security-groups", &own);
    stand.ensure(&replaced).await.unwrap();
    assert_eq!(groups().await, sorted(vec![own.clone(), extra.clone()]));
    let trusted = Value::from(stand.rules(&stand.cluster.security_group).await).to_string();
    assert!(trusted.contains(&own), "the Nodes let it in: {trusted}");
    let (_, writes) = stand.writes(stand.ensure(&replaced)).await;
    assert_eq!(writes, Vec::<String>::new());

    stand.ensure(&plain).await.unwrap();
    let trusted = Value::from(stand.rules(&stand.cluster.security_group).await).to_string();
    assert!(
        !trusted.contains(&own),
        "a group that is in use no more is trusted no more: {trusted}"
    );
    stand.delete(&plain).await.unwrap();
    for group in [own, extra] {
        delete_group(&stand, &group).await;
    }
    stand.nothing_left(&[&plain]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotated_nlb_security_groups_replace_the_managed() {
    let stand = Stand::with("own-groups-nlb", "NLBSecurityGroupMode = Managed").await;
    let own = own_group(&stand, "own").await;
    let mut service = service("own-groups-nlb", "nlb");
    annotate(&mut service, "security-groups", &own);
    stand.ensure(&service).await.unwrap();
    let groups = stand.network(&service).await.unwrap()["SecurityGroups"].clone();
    assert_eq!(strings(&groups), [own.as_str()]);
    let (_, writes) = stand.writes(stand.ensure(&service)).await;
    assert_eq!(writes, Vec::<String>::new());
    stand.delete(&service).await.unwrap();
    assert!(stand.groups().await.contains(&own), "a user's group is never deleted");
    delete_group(&stand, &own).await;
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_checks_are_those_of_the_annotations() {
    for kind in KINDS {
        let name = format!("health-{kind}");
        let stand = Stand::new(&name).await;
        let plain = service(&name, kind);
        let mut checked = plain.clone();
        for (key, value) in [
            ("protocol", "http"),
            ("port", "8081"),
            ("path", "/ready"),
            ("healthy-threshold", "3"),
            ("unhealthy-threshold", "4"),
            ("timeout", "7"),
            ("interval", "15"),
        ] {
            annotate(&mut checked, &format!("healthcheck-{key}"), value);
        }
        let check = async || match kind {
            "classic" => {
                let check = stand.classic(&plain).await.unwrap()["HealthCheck"].clone();
                [
                    "Target",
                    "HealthyThreshold",
                    "UnhealthyThreshold",
                    "Timeout",
                    "Interval",
                ]
                .map(|key| check[key].clone())
            }
            _ => {
                let group = stand.target_groups().await.remove(0);
                let target =
                    ["HealthCheckProtocol", "HealthCheckPort", "HealthCheckPath"].map(|key| group[key].clone());
                let [healthy, unhealthy, timeout, interval] = [
                    "HealthyThresholdCount",
                    "UnhealthyThresholdCount",
                    "HealthCheckTimeoutSeconds",
                    "HealthCheckIntervalSeconds",
                ]
                .map(|key| group[key].clone());
                [json!(target), healthy, unhealthy, timeout, interval]
            }
        };
        let target = match kind {
            "classic" => json!("HTTP:8081/ready"),
            _ => json!(["HTTP", "8081", "/ready"]),
        };
        stand.ensure(&plain).await.unwrap();
        let before = check().await;
        stand.ensure(&checked).await.unwrap();
        assert_eq!(
            check().await,
            [target, json!(3), json!(4), json!(7), json!(15)],
            "{kind}"
        );
        let (_, writes) = stand.writes(stand.ensure(&checked)).await;
        assert_eq!(writes, Vec::<String>::new(), "{kind}");
        stand.ensure(&plain).await.unwrap();
        assert_eq!(check().await, before, "{kind}");
        stand.delete(&plain).await.unwrap();
        stand.nothing_left(&[&plain]).await;
    }
}

/// moto takes the addresses and does not show them, so this is about what it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn network_addresses_are_requested_at_creation() {
    let stand = Stand::new("addresses").await;
    let subnets: Vec<String> = stand.cluster.subnets.iter().map(|subnet| subnet.id.clone()).collect();
    let mut elastic = service("addresses-elastic", "nlb");
    annotate(&mut elastic, "eip-allocations", "eipalloc-1,eipalloc-2");
    let mut private = service("addresses-private", "nlb");
    annotate(&mut private, "internal", "true");
    annotate(&mut private, "private-ipv4-addresses", "10.0.0.77,10.0.1.77");
    for (service, field, values) in [
        (&elastic, "AllocationId", ["eipalloc-1", "eipalloc-2"]),
        (&private, "PrivateIPv4Address", ["10.0.0.77", "10.0.1.77"]),
    ] {
        stand.ensure(service).await.unwrap();
        let mut asked = crate::stand::point("CreateLoadBalancer");
        for (at, (subnet, value)) in subnets.iter().zip(values).enumerate() {
            let mapping = format!("SubnetMappings.member.{}", at + 1);
            asked = asked.with(format!("{mapping}.SubnetId={subnet}"));
            asked = asked.with(format!("{mapping}.{field}={value}"));
        }
        assert_eq!(stand.gate.count(&asked), 1, "{field}");
        let (_, writes) = stand.writes(stand.ensure(service)).await;
        assert_eq!(writes, Vec::<String>::new());
        stand.delete(service).await.unwrap();
    }
    let mut few = elastic.clone();
    annotate(&mut few, "eip-allocations", "eipalloc-1");
    let (refused, writes) = stand.writes(stand.ensure(&few)).await;
    assert!(
        refused.is_err() && writes.iter().all(|action| action != "CreateLoadBalancer"),
        "{refused:?} {writes:?}"
    );
    stand.delete(&few).await.unwrap();
    stand.nothing_left(&[&elastic, &private]).await;
}
