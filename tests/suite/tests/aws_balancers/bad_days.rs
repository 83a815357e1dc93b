//! Bad input and bad days.

use std::time::Duration;

use cloudwit_model::{Cloud, Failure};
use cloudwit_test_support::gate::fault::Fault;
use serde_json::{Value, json};

use crate::stand::{KINDS, Stand, annotate, name, refusal, service, text};

#[tokio::test(flavor = "multi_thread")]
async fn unknown_annotation_value_is_named_before_any_request() {
    for kind in KINDS {
        let stand = Stand::new(&format!("unknown-{kind}")).await;
        let mut service = service(&format!("unknown-{kind}"), kind);
        annotate(&mut service, "cross-zone-load-balancing-enabled", "sometimes");
        annotate(&mut service, "healthcheck-interval", "1");
        let refused = stand.ensure(&service).await;
        let Err(Failure::Invalid(reason)) = refused else {
            panic!("{refused:?}")
        };
        let text = reason.message;
        assert!(
            text.contains("sometimes") && text.contains("healthcheck-interval is \"1\""),
            "{text}"
        );
        assert_eq!(stand.actions().await, Vec::<String>::new());
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_annotation_emits_event_and_changes_nothing() {
    let stand = Stand::new("misspelt").await;
    let mut service = service("misspelt", "nlb");
    annotate(&mut service, "intern", "true");
    stand.ensure(&service).await.unwrap();
    let events = stand.events();
    let told = events.iter().find(|event| event.reason == "UnknownAnnotation").unwrap();
    assert!(
        told.message.contains("aws-load-balancer-intern ") && told.message.contains("aws-load-balancer-internal?"),
        "{told:?}"
    );
    stand.delete(&service).await.unwrap();
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_left_to_another_controller_is_never_touched() {
    let stand = Stand::new("elsewhere").await;
    for kind in ["external", "nlb-ip"] {
        let service = service("elsewhere", kind);
        assert!(matches!(
            stand.ensure(&service).await,
            Err(Failure::ImplementedElsewhere(_))
        ));
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(None));
        assert_eq!(stand.delete(&service).await, Ok(()));
    }
    assert_eq!(stand.actions().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_load_balancer_of_the_same_name_is_left_alone() {
    for kind in KINDS {
        let stand = Stand::new(&format!("foreign-{kind}")).await;
        let service = service(&format!("foreign-{kind}"), kind);
        let subnets: Vec<&str> = stand.cluster.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
        if kind == "classic" {
            let listeners = json!([{ "Protocol": "TCP", "LoadBalancerPort": 9, "InstancePort": 9 }]);
            let made = json!({ "LoadBalancerName": name(&service), "Listeners": listeners, "Subnets": subnets });
            stand.ask("elb", "create_load_balancer", made).await;
        } else {
            let made = json!({ "Name": name(&service), "Type": "network", "Subnets": subnets });
            stand.ask("elbv2", "create_load_balancer", made).await;
        }
        let (classic, network) = (stand.classic(&service).await, stand.network(&service).await);
        let (refused, writes) = stand.writes(stand.ensure(&service)).await;
        assert!(
            matches!(&refused, Err(Failure::Invalid(text)) if text.message.contains(&name(&service))),
            "{refused:?}"
        );
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(None));
        let (deleted, deletions) = stand.writes(stand.delete(&service)).await;
        assert_eq!((deleted, writes, deletions), (Ok(()), Vec::new(), Vec::new()));
        assert_eq!(
            (stand.classic(&service).await, stand.network(&service).await),
            (classic, network)
        );
        assert!(stand.events().iter().any(|event| event.reason == "LoadBalancerLeft"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_is_immutable_and_deletion_still_finds_parts() {
    for (kind, other) in [("classic", "nlb"), ("nlb", "classic")] {
        let stand = Stand::new(&format!("kind-{kind}")).await;
        let mut service = service(&format!("kind-{kind}"), kind);
        let made = stand.ensure(&service).await.unwrap();
        annotate(&mut service, "type", other);
        let (refused, writes) = stand.writes(stand.ensure(&service)).await;
        assert!(
            matches!(&refused, Err(Failure::Invalid(text)) if text.message.contains("type cannot be changed")),
            "{refused:?}"
        );
        assert_eq!(writes, Vec::<String>::new());
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(Some(made)));
        annotate(&mut service, "type", "nonsense");
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_is_reported_and_what_was_begun_goes_with_the_service() {
    for (kind, action, code) in [
        ("classic", "CreateLoadBalancer", "TooManyLoadBalancers"),
        ("nlb", "CreateLoadBalancer", "TooManyLoadBalancers"),
        ("nlb", "CreateTargetGroup", "TooManyTargetGroups"),
    ] {
        let stand = Stand::new(&format!("quota-{kind}-{}", action.to_lowercase())).await;
        let service = service(&format!("quota-{kind}-{action}"), kind);
        stand.fail(action, refusal(400, code));
        let refused = stand.ensure(&service).await;
        assert!(
            matches!(&refused, Err(Failure::Exhausted(text)) if text.message.contains(code)),
            "{refused:?}"
        );
        stand.gate.open();
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_keeps_the_clouds_own_advice() {
    let stand = Stand::new("throttled").await;
    let service = service("throttled", "nlb");
    stand.fail(
        "CreateLoadBalancer",
        refusal(503, "Throttling").header("retry-after", "7"),
    );
    let refused = stand.ensure(&service).await;
    assert!(
        matches!(&refused, Err(Failure::RateLimited { after: Some(after), .. }) if *after == Duration::from_secs(7)),
        "{refused:?}"
    );
    stand.gate.open();
    stand.fail("DescribeTargetGroups", refusal(400, "RequestLimitExceeded"));
    stand.ensure(&service).await.unwrap();
    assert!(matches!(
        stand.ensure(&service).await,
        Err(Failure::RateLimited { after: None, .. })
    ));
    stand.gate.open();
    stand.delete(&service).await.unwrap();
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_changes_nothing() {
    for kind in KINDS {
        let stand = Stand::new(&format!("cut-{kind}")).await;
        let service = service(&format!("cut-{kind}"), kind);
        stand.ensure(&service).await.unwrap();
        for action in ["DescribeLoadBalancers", "DescribeTags", "DescribeSecurityGroups"] {
            stand.fail(action, Fault::cut(300));
            let (refused, writes) = stand.writes(stand.ensure(&service)).await;
            assert!(matches!(refused, Err(Failure::Unavailable(_))), "{action}: {refused:?}");
            assert_eq!(writes, Vec::<String>::new(), "{action}");
            stand.gate.open();
        }
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_by_hand_are_undone_and_other_peoples_rules_stay() {
    let stand = Stand::new("edited").await;
    let service = service("edited", "classic");
    stand.ensure(&service).await.unwrap();
    let group = text(&stand.classic(&service).await.unwrap()["SecurityGroups"][0]);
    let before = stand.rules(&group).await;
    let web = json!([{ "IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "IpRanges": [{ "CidrIp": "0.0.0.0/0" }] }]);
    let ssh = json!([{ "IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{ "CidrIp": "0.0.0.0/0" }] }]);
    stand
        .ask(
            "ec2",
            "revoke_security_group_ingress",
            json!({ "GroupId": group, "IpPermissions": web }),
        )
        .await;
    stand
        .ask(
            "ec2",
            "authorize_security_group_ingress",
            json!({ "GroupId": group, "IpPermissions": ssh }),
        )
        .await;
    let nodes = stand.cluster.security_group.clone();
    stand
        .ask(
            "ec2",
            "authorize_security_group_ingress",
            json!({ "GroupId": nodes, "IpPermissions": ssh }),
        )
        .await;
    stand
        .ask(
            "elb",
            "delete_load_balancer_listeners",
            json!({ "LoadBalancerName": name(&service), "LoadBalancerPorts": [80] }),
        )
        .await;
    stand.ensure(&service).await.unwrap();
    let sorted = |rules: Vec<Value>| {
        let mut texts: Vec<String> = rules.iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(stand.rules(&group).await), sorted(before));
    assert_eq!(
        stand.classic(&service).await.unwrap()["ListenerDescriptions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    stand.delete(&service).await.unwrap();
    assert_eq!(stand.rules(&nodes).await.len(), 1, "what the operator let in stays");
    assert_eq!(stand.groups().await, [nodes]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_added_concurrently_count_as_done() {
    let stand = Stand::new("quicker").await;
    let service = service("quicker", "nlb");
    stand.fail(
        "AuthorizeSecurityGroupIngress",
        refusal(400, "InvalidPermission.Duplicate").times(1),
    );
    stand.ensure(&service).await.unwrap();
    stand.ensure(&service).await.unwrap();
    stand.fail(
        "RevokeSecurityGroupIngress",
        refusal(400, "InvalidPermission.NotFound").times(1),
    );
    stand.delete(&service).await.unwrap();
    stand.delete(&service).await.unwrap();
    stand.nothing_left(&[&service]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_deleted_by_hand_comes_back() {
    for kind in KINDS {
        let stand = Stand::new(&format!("outside-{kind}")).await;
        let service = service(&format!("outside-{kind}"), kind);
        stand.ensure(&service).await.unwrap();
        if kind == "classic" {
            stand
                .ask(
                    "elb",
                    "delete_load_balancer",
                    json!({ "LoadBalancerName": name(&service) }),
                )
                .await;
        } else {
            let arn = stand.network(&service).await.unwrap()["LoadBalancerArn"].clone();
            stand
                .ask("elbv2", "delete_load_balancer", json!({ "LoadBalancerArn": arn }))
                .await;
        }
        assert_eq!(stand.provider.get_balancer(&service).await, Ok(None));
        stand.ensure(&service).await.unwrap();
        let (_, writes) = stand.writes(stand.ensure(&service)).await;
        assert_eq!(writes, Vec::<String>::new());
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cloud_still_holds_is_waited_for_without_a_sleep() {
    for (kind, action, code) in [
        ("classic", "DeleteSecurityGroup", "DependencyViolation"),
        ("nlb", "DeleteTargetGroup", "ResourceInUse"),
    ] {
        let stand = Stand::new(&format!("held-{kind}")).await;
        let service = service(&format!("held-{kind}"), kind);
        stand.ensure(&service).await.unwrap();
        stand.fail(action, refusal(400, code));
        for _ in 0..2 {
            let waiting = stand.delete(&service).await;
            assert!(
                matches!(&waiting, Err(Failure::Pending { after, .. }) if *after == Duration::from_secs(5)),
                "{waiting:?}"
            );
        }
        stand.gate.open();
        stand.delete(&service).await.unwrap();
        stand.nothing_left(&[&service]).await;
    }
}
