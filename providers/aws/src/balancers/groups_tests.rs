//! Which groups Nodes trust when those of a load balancer change, and what deleting and bringing targets in line costs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use cloudwit_guest_sdk::testing::FakeAnswer;

use super::*;
use crate::balancers::network::apply::RULES_LOCK;
use crate::balancers::security_groups::plan::{CLIENT, NodeTraffic};
use crate::balancers::testing::service;
use crate::testing::cloud::{CloudGroup, CloudState, SmallCloud, small_targets};
use crate::testing::{CONFIG, EC2, actions, host, refusal};

fn with_group(id: &str) -> Service {
    service(&[("security-groups", id)])
}

#[test]
fn changed_group_annotation_leaves_no_trust_behind() {
    let cloud = SmallCloud::new("", &["sg-old", "sg-new"]);
    cloud.trust("sg-old");
    cloud.standing(&service(&[]), &["sg-old"]);
    cloud
        .aws()
        .ensure(&with_group("sg-new"), &small_targets(), None)
        .unwrap();
    assert_eq!(cloud.trusted(), ["sg-new"]);
    assert_eq!(
        cloud.state.borrow().balancers.values().next().unwrap().groups,
        ["sg-new"]
    );
    cloud.aws().delete(&with_group("sg-new"), None).unwrap();
    assert!(cloud.trusted().is_empty(), "{:?}", cloud.trusted());
}

#[test]
fn crash_at_any_change_of_groups_leaves_no_trust_behind() {
    for action in [
        "ApplySecurityGroupsToLoadBalancer",
        "AuthorizeSecurityGroupIngress",
        "RevokeSecurityGroupIngress",
    ] {
        for allowed in 0..2 {
            let cloud = SmallCloud::new("", &["sg-old", "sg-new"]);
            cloud.trust("sg-old");
            cloud.standing(&service(&[]), &["sg-old"]);
            let left = Rc::new(Cell::new(allowed));
            let meddle = move |state: &mut CloudState, asked: &str| {
                if asked == action {
                    state.refuses = (left.get() == 0).then_some((action, "InternalError"));
                    left.set(left.get() - 1);
                }
            };
            cloud.state.borrow_mut().meddler = Some(Box::new(meddle));
            let _ = cloud.aws().ensure(&with_group("sg-new"), &small_targets(), None);
            (cloud.state.borrow_mut().meddler, cloud.state.borrow_mut().refuses) = (None, None);
            let trusted = cloud.trusted();
            let groups = cloud.state.borrow().balancers.values().next().unwrap().groups.clone();
            assert!(
                trusted.iter().any(|id| groups.contains(id)),
                "no traffic: {trusted:?} {groups:?}"
            );
            cloud
                .aws()
                .ensure(&with_group("sg-new"), &small_targets(), None)
                .unwrap();
            assert_eq!(cloud.trusted(), ["sg-new"], "{action} {allowed}");
        }
    }
}

#[test]
fn group_of_another_balancer_stays_trusted() {
    let cloud = SmallCloud::new("", &["sg-old", "sg-new"]);
    cloud.trust("sg-old");
    let mut other = service(&[]);
    other.uid = "2bf6e8a3-6f0a-4d3e-9a3c-000000000002".into();
    cloud.standing(&service(&[]), &["sg-old"]);
    cloud.standing(&other, &["sg-old"]);
    cloud
        .aws()
        .ensure(&with_group("sg-new"), &small_targets(), None)
        .unwrap();
    assert_eq!(cloud.trusted(), ["sg-old", "sg-new"]);
}

#[test]
fn two_deleted_at_once_leave_no_trust_in_the_common_group() {
    let cloud = SmallCloud::new("ElbSecurityGroup = sg-all\n", &["sg-all"]);
    cloud.trust("sg-all");
    let mut other = service(&[]);
    other.uid = "2bf6e8a3-6f0a-4d3e-9a3c-000000000002".into();
    cloud.standing(&service(&[]), &["sg-all"]);
    cloud.standing(&other, &["sg-all"]);
    let name = default_load_balancer_name(&other.uid);
    // The other one's call saw this one too, and goes first.
    let meddle = move |state: &mut CloudState, action: &str| {
        if action == "DeleteLoadBalancer" {
            state.balancers.remove(&name);
        }
    };
    cloud.state.borrow_mut().meddler = Some(Box::new(meddle));
    cloud.aws().delete(&service(&[]), None).unwrap();
    assert!(cloud.trusted().is_empty(), "{:?}", cloud.trusted());
}

#[test]
fn common_group_trust_left_by_crash_goes_with_service() {
    let cloud = SmallCloud::new("ElbSecurityGroup = sg-all\n", &["sg-all", "sg-user"]);
    for group in ["sg-all", "sg-user"] {
        cloud.trust(group);
    }
    cloud.aws().delete(&with_group("sg-user"), None).unwrap();
    assert_eq!(cloud.trusted(), ["sg-user"], "a rule that may be a person's stays");
}

#[test]
fn trust_in_a_nodes_group_without_tag_goes_too() {
    let cloud = SmallCloud::new("", &["sg-user"]);
    cloud
        .state
        .borrow_mut()
        .groups
        .insert("sg-nodes".into(), CloudGroup::default());
    // An operator's rule in a group that no Node is in.
    let apart = CloudGroup {
        trusts: vec!["sg-user".into()],
        ..CloudGroup::default()
    };
    cloud.state.borrow_mut().groups.insert("sg-apart".into(), apart);
    cloud.trust("sg-user");
    cloud.standing(&service(&[]), &["sg-user"]);
    cloud.aws().delete(&with_group("sg-user"), None).unwrap();
    assert!(cloud.trusted().is_empty(), "{:?}", cloud.trusted());
    assert_eq!(cloud.state.borrow().groups["sg-apart"].trusts, ["sg-user"]);
}

#[test]
fn service_without_balancer_and_vpc_is_deleted_in_three_calls() {
    let cloud = SmallCloud::new("", &[]);
    cloud.host.config(CONFIG);
    for _ in 0..2 {
        let before = cloud.host.requests().len();
        assert_eq!(cloud.aws().delete(&service(&[]), None), Ok(Vec::new()));
        assert_eq!(
            actions(&cloud.host)[before..],
            [
                "DescribeLoadBalancers",
                "DescribeLoadBalancers",
                "DescribeSecurityGroups"
            ]
        );
    }
    assert_eq!(cloud.aws().delete(&service(&[("type", "nlb")]), None), Ok(Vec::new()));
}

#[test]
fn tags_are_read_once_for_many_updates_of_targets() {
    let cloud = SmallCloud::new("", &["sg-user"]);
    cloud.trust("sg-user");
    cloud.standing(&service(&[]), &["sg-user"]);
    for _ in 0..20 {
        cloud
            .aws()
            .update_targets(&with_group("sg-user"), &small_targets(), None)
            .unwrap();
    }
    assert_eq!(cloud.count("DescribeTags"), 1);
    // Creation and deletion read again.
    cloud
        .aws()
        .ensure(&with_group("sg-user"), &small_targets(), None)
        .unwrap();
    assert_eq!(cloud.count("DescribeTags"), 2);
}

#[test]
fn tags_of_many_target_groups_take_one_call_for_twenty() {
    let host = host();
    host.serve(|request| {
        let fields = request.form().into_iter();
        let arns = fields.filter(|(name, _)| name.starts_with("ResourceArns."));
        let arns: Vec<String> = arns.map(|(_, arn)| arn).collect();
        if arns.len() > 1 && arns.contains(&"tg-7".to_owned()) || arns == ["tg-7"] {
            return FakeAnswer::xml(400, &refusal("TargetGroupNotFound", "gone"));
        }
        let tagged = |arn: String| {
            format!("<member><ResourceArn>{arn}</ResourceArn><Tags><member><Key>a</Key><Value>{arn}</Value></member></Tags></member>")
        };
        let tagged: String = arns.into_iter().map(tagged).collect();
        FakeAnswer::xml(
            200,
            &format!("<R><DescribeTagsResult><TagDescriptions>{tagged}</TagDescriptions></DescribeTagsResult></R>"),
        )
    });
    let aws: Aws = host.provider();
    let arns: Vec<String> = (10..60).map(|number| format!("tg-{number}")).collect();
    let mut arns: Vec<&str> = arns.iter().map(String::as_str).collect();
    let tags = aws.network_tags_of(&arns).unwrap();
    assert_eq!((tags.len(), host.requests().len()), (50, 3));
    assert_eq!(tags[49], ("tg-59".to_owned(), vec![Pair::new("a", "tg-59")]));
    arns.truncate(3);
    arns.push("tg-7");
    assert_eq!(
        aws.network_tags_of(&arns).unwrap().len(),
        3,
        "one that is gone costs only itself"
    );
}

/// A VPC and security groups, some of them with the legacy tag.
fn legacy() -> cloudwit_guest_sdk::testing::FakeHost {
    let host = host();
    host.serve(|request| {
        let item = |kind: &str, id: &str, cluster: &str| {
            format!(
                "<item><{kind}>{id}</{kind}><tagSet><item><key>KubernetesCluster</key><value>{cluster}</value></item></tagSet>\
                 <ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>30080</fromPort><toPort>30080</toPort><ipRanges><item>\
                 <cidrIp>0.0.0.0/0</cidrIp><description>{CLIENT}=lb</description></item></ipRanges></item></ipPermissions></item>"
            )
        };
        let all = |kind| item(kind, "ours", "test") + &item(kind, "theirs", "other");
        let asked = request.field("Filter.1.Value.2");
        let filtered = asked.as_deref() == Some("KubernetesCluster");
        let text = match request.field("Action").as_deref() {
            Some("DescribeVpcs") if filtered => format!("<R><vpcSet>{}</vpcSet></R>", all("vpcId")),
            Some("DescribeSecurityGroups") if filtered => {
                format!("<R><securityGroupInfo>{}</securityGroupInfo></R>", all("groupId"))
            }
            _ => "<R/>".into(),
        };
        FakeAnswer::xml(200, &text)
    });
    host
}

fn traffic() -> NodeTraffic {
    NodeTraffic {
        balancer: "lb".into(),
        protocol: "tcp",
        ports: Vec::new(),
        health_ports: Vec::new(),
        clients: Vec::new(),
        subnets: Vec::new(),
        shared_health_port: None,
    }
}

#[test]
fn legacy_tag_counts_with_the_clusters_id_only() {
    let host = legacy();
    let aws: Aws = host.provider();
    assert_eq!(aws.vpc_id().map_err(Failure::from), Ok("ours".into()));
    aws.bring_node_rules(None, &[], &traffic(), false).unwrap();
    let revoked: Vec<Option<String>> = host
        .requests()
        .iter()
        .filter(|request| {
            request.url == EC2 && request.field("Action").as_deref() == Some("RevokeSecurityGroupIngress")
        })
        .map(|request| request.field("GroupId"))
        .collect();
    assert_eq!(revoked, [Some("ours".into())]);
}

#[test]
fn rules_locked_by_another_call_are_not_changed() {
    let host = legacy();
    let held = host.context().state().lock(RULES_LOCK, Duration::ZERO);
    assert!(held.is_some());
    let aws: Aws = host.provider();
    let waits = aws
        .bring_node_rules(None, &[], &traffic(), false)
        .map_err(Failure::from);
    assert!(
        matches!(
            &waits,
            Err(Failure {
                kind: FailureKind::Pending(_),
                retry_after: Some(1_000),
                ..
            })
        ),
        "{waits:?}"
    );
    assert!(!actions(&host).contains(&"RevokeSecurityGroupIngress".to_owned()));
}
