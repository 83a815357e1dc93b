//! Lives without accidents.

use cloudwit_model::{Cloud, Failure, TrafficPolicy};
use serde_json::{Value, json};

use crate::stand::{KINDS, Stand, annotate, hostname, name, port, service, target, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ensure_reads_a_few_things_and_writes_nothing() {
    for (kind, reads) in [("classic", 4), ("nlb", 7)] {
        let stand = Stand::new(&format!("steady-{kind}")).await;
        let service = service(&format!("steady-{kind}"), kind);
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(None));
        let made = stand.ensure(&service).await.unwrap();
        assert!(hostname(&made).starts_with(&name(&service)), "{made:?}");
        let before = stand.actions().await.len();
        assert_eq!(stand.ensure(&service).await.as_ref(), Ok(&made));
        let actions = stand.actions().await;
        assert!(
            actions[before..].iter().all(|action| action.starts_with("Describe")),
            "{:?}",
            &actions[before..]
        );
        assert_eq!(actions.len() - before, reads, "{kind}: {:?}", &actions[before..]);
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(Some(made)));
        stand.delete(&service).await.unwrap();
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_services_share_what_is_known_of_instances_and_subnets() {
    let stand = Stand::new("twenty").await;
    let services: Vec<_> = (0..20)
        .map(|number| service(&format!("twenty-{number}"), KINDS[number % 2]))
        .collect();
    for service in &services {
        stand.ensure(service).await.unwrap();
    }
    let actions = stand.actions().await;
    for shared in [
        "DescribeInstances",
        "DescribeSubnets",
        "DescribeRouteTables",
        "DescribeAvailabilityZones",
    ] {
        assert_eq!(actions.iter().filter(|action| *action == shared).count(), 1, "{shared}");
    }
    for service in &services {
        stand.delete(service).await.unwrap();
    }
    stand.nothing_left(&services.iter().collect::<Vec<_>>()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go() {
    for kind in KINDS {
        let stand = Stand::new(&format!("nodes-{kind}")).await;
        let service = service(&format!("nodes-{kind}"), kind);
        let missing = stand.provider.update_targets(&service, &stand.targets(), None).await;
        assert!(format!("{missing:?}").contains("NotFound"), "{missing:?}");
        stand.ensure(&service).await.unwrap();
        let further = stand.cluster.machines(stand.moto, 1, 1).await.unwrap();
        let now = [target(&stand.machines[0]), target(&further[0])];
        stand.provider.update_targets(&service, &now, None).await.unwrap();
        let mut expected = vec![stand.machines[0].id.clone(), further[0].id.clone()];
        expected.sort();
        assert_eq!(members(&stand, &service, kind).await, expected);
        let (done, writes) = stand.writes(stand.provider.update_targets(&service, &now, None)).await;
        assert_eq!((done.map(drop), writes), (Ok(()), Vec::new()));

        // A mistake in an annotation, or another kind, does not keep new Nodes out.
        let mut mistaken = service.clone();
        annotate(&mut mistaken, "healthcheck-interval", "often");
        annotate(&mut mistaken, "type", if kind == "nlb" { "classic" } else { "nlb" });
        let (rules, first) = (
            stand.rules(&stand.cluster.security_group).await,
            [target(&stand.machines[0])],
        );
        stand.provider.update_targets(&mistaken, &first, None).await.unwrap();
        assert_eq!(members(&stand, &service, kind).await, [stand.machines[0].id.clone()]);
        assert_eq!(stand.rules(&stand.cluster.security_group).await, rules);

        // An instance that the cloud does not know is no target, and holds up nobody.
        let mut gone = stand.machines[0].clone();
        gone.id = "i-0123456789abcdef0".into();
        let both = [target(&gone), target(&stand.machines[1])];
        stand.provider.update_targets(&service, &both, None).await.unwrap();
        assert_eq!(members(&stand, &service, kind).await, [stand.machines[1].id.clone()]);
        stand.provider.update_targets(&service, &[], None).await.unwrap();
        assert_eq!(members(&stand, &service, kind).await, Vec::<String>::new());
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

/// A second pool of Nodes has a security group of its own. When its last target goes, its group is as the operator left it.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_former_targets_leave_their_security_group() {
    let stand = Stand::new("pools").await;
    let mut pool = stand.cluster.clone();
    let group = json!({
        "VpcId": pool.vpc, "GroupName": "pools-second", "Description": "Nodes", "TagSpecifications": [{
            "ResourceType": "security-group", "Tags": [{ "Key": "kubernetes.io/cluster/pools", "Value": "owned" }],
        }],
    });
    pool.security_group = text(&stand.ask("ec2", "create_security_group", group).await["GroupId"]);
    let ssh = json!([{ "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{ "CidrIp": "10.0.0.0/8" }] }]);
    let ssh = json!({ "GroupId": pool.security_group, "IpPermissions": ssh });
    stand.ask("ec2", "authorize_security_group_ingress", ssh).await;
    let by_operator = stand.rules(&pool.security_group).await;
    let machine = pool.machines(stand.moto, 1, 1).await.unwrap().remove(0);
    let first = target(&stand.machines[0]);
    let both = [first.clone(), target(&machine)];
    let (web, mut mail) = (service("pools-web", "nlb"), service("pools-mail", "nlb"));
    mail.ports = vec![port(25, 30025)];
    let told_of = |rules: Vec<Value>, service| rules.iter().any(|rule| rule.to_string().contains(&name(service)));

    stand.ensure_on(&web, &both).await.unwrap();
    stand.ensure_on(&mail, &both).await.unwrap();
    let at_first = stand.rules(&stand.cluster.security_group).await;
    stand
        .provider
        .update_targets(&web, std::slice::from_ref(&first), None)
        .await
        .unwrap();
    assert!(!told_of(stand.rules(&pool.security_group).await, &web));
    let others = told_of(stand.rules(&pool.security_group).await, &mail);
    assert!(others, "another Service's stay");
    stand.ensure_on(&mail, std::slice::from_ref(&first)).await.unwrap();
    assert_eq!(stand.rules(&pool.security_group).await, by_operator);
    assert_eq!(stand.rules(&stand.cluster.security_group).await, at_first);
    let (done, writes) = stand.writes(stand.ensure_on(&mail, &[first])).await;
    assert_eq!((done.map(drop), writes), (Ok(()), Vec::new()));

    for service in [&web, &mail] {
        stand.delete(service).await.unwrap();
    }
    assert_eq!(stand.rules(&pool.security_group).await, by_operator);
    assert_eq!(stand.rules(&stand.cluster.security_group).await, Vec::<Value>::new());
}

/// The ids of the registered instances, sorted.
async fn members(stand: &Stand, service: &cloudwit_model::Service, kind: &str) -> Vec<String> {
    let mut ids: Vec<String> = if kind == "classic" {
        let balancer = stand.classic(service).await.unwrap();
        balancer["Instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["InstanceId"]))
            .collect()
    } else {
        let group = stand.target_groups().await.remove(0);
        let health = stand
            .ask(
                "elbv2",
                "describe_target_health",
                json!({ "TargetGroupArn": group["TargetGroupArn"] }),
            )
            .await;
        let all = health["TargetHealthDescriptions"].as_array().unwrap().clone();
        all.iter().map(|one| text(&one["Target"]["Id"])).collect()
    };
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn classic_service_changes_apply_and_revert() {
    let stand = Stand::new("changed-classic").await;
    let plain = service("changed-classic", "classic");
    let made = stand.ensure(&plain).await.unwrap();
    let before = stand.classic(&plain).await;

    let mut changed = plain.clone();
    changed.ports = vec![port(80, 30081), port(443, 30443)];
    changed.source_ranges = vec!["192.0.2.0/24".into()];
    changed.traffic_policy = TrafficPolicy::Local;
    changed.health_check_node_port = Some(32000);
    for (key, value) in [
        ("additional-resource-tags", "team=web,empty"),
        ("backend-protocol", "http"),
        ("access-log-enabled", "true"),
        ("access-log-emit-interval", "5"),
        ("access-log-s3-bucket-name", "logs"),
        ("access-log-s3-bucket-prefix", "web"),
        ("connection-draining-enabled", "true"),
        ("connection-draining-timeout", "30"),
        ("connection-idle-timeout", "90"),
        ("cross-zone-load-balancing-enabled", "true"),
        ("healthcheck-interval", "20"),
        ("subnets", &stand.cluster.subnets[0].id.clone()),
    ] {
        annotate(&mut changed, key, value);
    }
    assert_eq!(stand.ensure(&changed).await.as_ref(), Ok(&made));
    let now = stand.classic(&changed).await.unwrap();
    let listeners = now["ListenerDescriptions"].as_array().unwrap();
    let mut ports: Vec<(u64, u64, String)> = listeners
        .iter()
        .map(|one| &one["Listener"])
        .map(|one| {
            (
                one["LoadBalancerPort"].as_u64().unwrap(),
                one["InstancePort"].as_u64().unwrap(),
                text(&one["Protocol"]),
            )
        })
        .collect();
    ports.sort();
    assert_eq!(ports, [(80, 30081, "HTTP".into()), (443, 30443, "HTTP".into())]);
    assert_eq!(now["HealthCheck"]["Target"], "HTTP:32000/healthz");
    assert_eq!(now["HealthCheck"]["Interval"], 20);
    assert_eq!(now["Subnets"], json!([stand.cluster.subnets[0].id]));
    let attributes = stand
        .ask(
            "elb",
            "describe_load_balancer_attributes",
            json!({ "LoadBalancerName": name(&plain) }),
        )
        .await;
    let attributes = &attributes["LoadBalancerAttributes"];
    assert_eq!(attributes["ConnectionSettings"]["IdleTimeout"], 90);
    assert_eq!(
        attributes["ConnectionDraining"],
        json!({ "Enabled": true, "Timeout": 30 })
    );
    assert_eq!(attributes["AccessLog"]["S3BucketName"], "logs");
    assert_eq!(attributes["CrossZoneLoadBalancing"]["Enabled"], true);
    let tags = stand
        .ask("elb", "describe_tags", json!({ "LoadBalancerNames": [name(&plain)] }))
        .await
        .to_string();
    assert!(
        tags.contains("\"team\"") && tags.contains("kubernetes.io/service-name"),
        "{tags}"
    );
    let group = text(&now["SecurityGroups"][0]);
    let rules = Value::from(stand.rules(&group).await).to_string();
    assert!(
        rules.contains("192.0.2.0/24") && !rules.contains("0.0.0.0/0") && rules.contains("443"),
        "{rules}"
    );

    let (again, writes) = stand.writes(stand.ensure(&changed)).await;
    assert_eq!((again.as_ref(), writes), (Ok(&made), Vec::new()));

    // One port after the other: moto deletes none of two listeners that it is told to delete at once.
    let mut one_port = changed.clone();
    one_port.ports.truncate(1);
    stand.ensure(&one_port).await.unwrap();
    assert_eq!(stand.ensure(&plain).await.as_ref(), Ok(&made));
    let after = stand.classic(&plain).await;
    for part in ["HealthCheck", "SecurityGroups", "Instances"] {
        assert_eq!(after.as_ref().unwrap()[part], before.as_ref().unwrap()[part], "{part}");
    }
    let (_, writes) = stand.writes(stand.ensure(&plain)).await;
    assert_eq!(writes, Vec::<String>::new());
    stand.delete(&plain).await.unwrap();
    stand.nothing_left(&[&plain]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_protocol_is_switched_on_and_off() {
    // On the ports of its creation: moto drops the policies of ports that came later.
    let stand = Stand::new("proxied").await;
    let plain = service("proxied", "classic");
    let mut proxied = plain.clone();
    annotate(&mut proxied, "proxy-protocol", "*");
    stand.ensure(&plain).await.unwrap();
    for (service, policies) in [(&proxied, json!([["k8s-proxyprotocol-enabled"]])), (&plain, json!([]))] {
        stand.ensure(service).await.unwrap();
        let balancer = stand.classic(service).await.unwrap();
        let backends = balancer["BackendServerDescriptions"].as_array().unwrap();
        let seen: Vec<&Value> = backends
            .iter()
            .map(|one| &one["PolicyNames"])
            .filter(|one| *one != &json!([]))
            .collect();
        assert_eq!(json!(seen), policies);
        let (_, writes) = stand.writes(stand.ensure(service)).await;
        assert_eq!(writes, Vec::<String>::new());
    }
    stand.delete(&plain).await.unwrap();
    stand.nothing_left(&[&plain]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn network_service_changes_apply_and_revert() {
    let stand = Stand::new("changed-nlb").await;
    let plain = service("changed-nlb", "nlb");
    let made = stand.ensure(&plain).await.unwrap();
    let arn = stand.network(&plain).await.unwrap()["LoadBalancerArn"].clone();
    let certificate = stand
        .ask("acm", "request_certificate", json!({ "DomainName": "web.test" }))
        .await;

    let mut changed = plain.clone();
    changed.ports = vec![port(80, 30081), port(443, 30443)];
    changed.source_ranges = vec!["192.0.2.0/24".into()];
    changed.traffic_policy = TrafficPolicy::Local;
    changed.health_check_node_port = Some(32000);
    for (key, value) in [
        ("additional-resource-tags", "team=web"),
        ("cross-zone-load-balancing-enabled", "true"),
        ("ssl-cert", certificate["CertificateArn"].as_str().unwrap()),
        ("ssl-ports", "443"),
        ("ssl-negotiation-policy", "ELBSecurityPolicy-TLS13-1-2-2021-06"),
        ("healthcheck-healthy-threshold", "4"),
        (
            "target-group-attributes",
            "preserve_client_ip.enabled=false,proxy_protocol_v2.enabled=true",
        ),
    ] {
        annotate(&mut changed, key, value);
    }
    assert_eq!(stand.ensure(&changed).await.as_ref(), Ok(&made));
    assert_eq!(
        stand.network(&changed).await.unwrap()["LoadBalancerArn"],
        arn,
        "it is the same one"
    );
    let listeners = stand
        .ask("elbv2", "describe_listeners", json!({ "LoadBalancerArn": arn }))
        .await;
    let mut seen: Vec<(u64, String)> = listeners["Listeners"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["Port"].as_u64().unwrap(), text(&one["Protocol"])))
        .collect();
    seen.sort();
    assert_eq!(seen, [(80, "TCP".into()), (443, "TLS".into())]);
    let groups = stand.target_groups().await;
    assert_eq!(groups.len(), 2, "the old one is gone: {groups:?}");
    for group in &groups {
        assert_eq!(
            (&group["HealthCheckProtocol"], &group["HealthCheckPort"]),
            (&json!("HTTP"), &json!("32000"))
        );
        assert_eq!(
            (&group["HealthyThresholdCount"], &group["HealthCheckPath"]),
            (&json!(4), &json!("/healthz"))
        );
        let arguments = json!({ "TargetGroupArn": group["TargetGroupArn"] });
        let attributes = stand
            .ask("elbv2", "describe_target_group_attributes", arguments)
            .await
            .to_string();
        assert!(
            attributes.contains(r#""Key":"preserve_client_ip.enabled","Value":"false""#)
                || attributes.contains(r#""Key": "preserve_client_ip.enabled", "Value": "false""#),
            "{attributes}"
        );
    }
    let rules = Value::from(stand.rules(&stand.cluster.security_group).await).to_string();
    for part in [
        "192.0.2.0/24",
        "30081",
        "30443",
        "32000",
        "rule/nlb/client",
        "rule/nlb/health",
        "rule/nlb/mtu",
    ] {
        assert!(rules.contains(part), "{part} is not in {rules}");
    }
    assert!(!rules.contains("0.0.0.0/0") && !rules.contains("30080"), "{rules}");

    let (again, writes) = stand.writes(stand.ensure(&changed)).await;
    assert_eq!((again.as_ref(), writes), (Ok(&made), Vec::new()));
    assert_eq!(stand.ensure(&plain).await.as_ref(), Ok(&made));
    let (_, writes) = stand.writes(stand.ensure(&plain)).await;
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(stand.target_groups().await.len(), 1);
    stand.delete(&plain).await.unwrap();
    stand.nothing_left(&[&plain]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_managed_group_guards_a_network_load_balancer() {
    let stand = Stand::with("managed", "NLBSecurityGroupMode = Managed").await;
    let mut service = service("managed", "nlb");
    service.source_ranges = vec!["192.0.2.0/24".into()];
    stand.ensure(&service).await.unwrap();
    let groups = stand.network(&service).await.unwrap()["SecurityGroups"].clone();
    let group = text(&groups[0]);
    let rules = Value::from(stand.rules(&group).await).to_string();
    assert!(rules.contains("192.0.2.0/24") && rules.contains("80"), "{rules}");
    service.source_ranges = vec!["198.51.100.0/24".into()];
    stand.ensure(&service).await.unwrap();
    let rules = Value::from(stand.rules(&group).await).to_string();
    assert!(
        rules.contains("198.51.100.0/24") && !rules.contains("192.0.2.0/24"),
        "{rules}"
    );
    let (_, writes) = stand.writes(stand.ensure(&service)).await;
    assert_eq!(writes, Vec::<String>::new());
    stand.delete(&service).await.unwrap();
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_ones_are_internal_and_stay_so() {
    for kind in KINDS {
        let stand = Stand::new(&format!("internal-{kind}")).await;
        let mut service = service(&format!("internal-{kind}"), kind);
        annotate(&mut service, "internal", "true");
        stand.ensure(&service).await.unwrap();
        let seen = if kind == "classic" {
            stand.classic(&service).await
        } else {
            stand.network(&service).await
        };
        assert_eq!(seen.unwrap()["Scheme"], "internal");
        annotate(&mut service, "internal", "false");
        let (refused, writes) = stand.writes(stand.ensure(&service)).await;
        assert!(
            matches!(&refused, Err(Failure::Invalid(text)) if text.message.contains("internal")),
            "{refused:?}"
        );
        assert_eq!(writes, Vec::<String>::new());
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}
