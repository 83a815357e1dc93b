//! Lives of load balancers of both kinds.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use crate::api::endpoints::Service as Api;
use crate::balancers::testing::{CLUSTER, CLUSTER_TAG, NAME, Stage, service};

fn hostname(balancer: &Balancer) -> &str {
    match &balancer.ingress[0].endpoint {
        Endpoint::Hostname(name) => name,
        other => panic!("{other:?}"),
    }
}

/// It is made, kept with these reads and no write, and deleted with these writes, the second time with none.
fn lives(stage: &Stage, service: &Service, reads: &[&str], writes: &[&str]) {
    assert_eq!(stage.aws().get(service), Ok(None));
    let made = stage.aws().ensure(service, &stage.targets(), None).unwrap();
    assert!(hostname(&made).starts_with(NAME), "{made:?}");

    let (again, actions) = stage.actions(|aws| aws.ensure(service, &stage.targets(), None));
    assert_eq!(again, Ok(made.clone()));
    assert_eq!(actions, reads, "what stands is read once and not written");
    assert_eq!(stage.aws().get(service), Ok(Some(made)));

    let (deleted, written) = stage.writes(|aws| aws.delete(service, None));
    assert_eq!(deleted, Ok(Vec::new()));
    assert_eq!(written, writes);
    let (deleted, written) = stage.writes(|aws| aws.delete(service, None));
    assert_eq!((deleted, written), (Ok(Vec::new()), Vec::new()));
}

#[test]
fn classic_balancer_is_created_kept_and_deleted_cleanly() {
    let stage = Stage::new("classic");
    let service = service(&[]);
    let reads = [
        "DescribeLoadBalancers",
        "DescribeTags",
        "DescribeSecurityGroups",
        "DescribeLoadBalancerAttributes",
    ];
    let writes = [
        "RevokeSecurityGroupIngress",
        "DeleteLoadBalancer",
        "DeleteSecurityGroup",
    ];
    lives(&stage, &service, &reads, &writes);
    assert_eq!(stage.aws().get(&service), Ok(None));
    nothing_left(&stage);
}

#[test]
fn network_balancer_is_created_kept_and_deleted_cleanly() {
    let stage = Stage::new("network");
    let service = service(&[("type", "nlb")]);
    let reads = [
        "DescribeLoadBalancers",
        "DescribeTags",
        "DescribeLoadBalancerAttributes",
        "DescribeSecurityGroups",
        "DescribeListeners",
        "DescribeTargetGroups",
        "DescribeTargetHealth",
    ];
    let writes = ["RevokeSecurityGroupIngress", "DeleteLoadBalancer", "DeleteTargetGroup"];
    lives(&stage, &service, &reads, &writes);
    nothing_left(&stage);
}

/// No load balancers, no target groups, only the groups that were there before, and those without rules.
fn nothing_left(stage: &Stage) {
    let classic = stage.call(Api::Elb, "DescribeLoadBalancers", &[]);
    let network = stage.call(Api::ElbV2, "DescribeLoadBalancers", &[]);
    let targets = stage.call(Api::ElbV2, "DescribeTargetGroups", &[]);
    for (answer, list) in [
        (&classic, ["DescribeLoadBalancersResult", "LoadBalancerDescriptions"]),
        (&network, ["DescribeLoadBalancersResult", "LoadBalancers"]),
        (&targets, ["DescribeTargetGroupsResult", "TargetGroups"]),
    ] {
        assert_eq!(
            answer.at(&list).map(|list| list.children("member").count()),
            Some(0),
            "{list:?}"
        );
    }
    let filter = [("Filter.1.Name", "vpc-id"), ("Filter.1.Value.1", stage.vpc.as_str())];
    let groups = stage.call(Api::Ec2, "DescribeSecurityGroups", &filter);
    let groups: Vec<_> = groups
        .child("securityGroupInfo")
        .unwrap()
        .children("item")
        .map(crate::balancers::security_groups::read_group)
        .collect();
    let nodes = groups.iter().find(|group| group.id == stage.group).unwrap();
    assert_eq!(
        (groups.len(), nodes.rules.len()),
        (2, 0),
        "the VPC's default group and the nodes': {groups:?}"
    );
}

/// Two in one request, each with its own tags; a third that does not exist makes them be looked up one by one.
#[test]
fn balancers_of_many_services_are_described_once() {
    let host = FakeHost::new();
    host.cluster(CLUSTER, &[]).now(1_767_225_600);
    host.secret("access-key-id", "AKIDEXAMPLE")
        .secret("secret-access-key", "secret")
        .config("[Global]\nRegion = us-east-1\nVPC = vpc-1\n");
    let names = ["au1", "au2"];
    host.serve(move |request: &SentRequest| {
        let field = |name: &str| request.field(name);
        let asked: Vec<String> = (1..=3)
            .filter_map(|number| field(&format!("LoadBalancerNames.member.{number}")))
            .collect();
        if field("Action").as_deref() == Some("DescribeTags") {
            let tag = format!("<member><Key>{CLUSTER_TAG}</Key><Value>owned</Value></member>");
            let tags = format!("<TagDescriptions><member><Tags>{tag}</Tags></member></TagDescriptions>");
            return FakeAnswer::xml(200, &format!("<R><DescribeTagsResult>{tags}</DescribeTagsResult></R>"));
        }
        if asked.is_empty() || asked.iter().any(|name| !names.contains(&name.as_str())) {
            let code = "<Code>LoadBalancerNotFound</Code><Message>none</Message>";
            return FakeAnswer::xml(400, &format!("<ErrorResponse><Error>{code}</Error></ErrorResponse>"));
        }
        let one = |name: &String| format!("<member><LoadBalancerName>{name}</LoadBalancerName></member>");
        let all: String = asked.iter().rev().map(one).collect();
        let all = format!("<LoadBalancerDescriptions>{all}</LoadBalancerDescriptions>");
        FakeAnswer::xml(
            200,
            &format!("<R><DescribeLoadBalancersResult>{all}</DescribeLoadBalancersResult></R>"),
        )
    });
    let update = |uid: &str| TargetUpdate {
        service: Service::new("default", "web", uid),
        token: None,
    };
    let described = || {
        let requests = host.requests();
        let actions = requests.iter().filter_map(|request| request.field("Action"));
        actions.filter(|action| action == "DescribeLoadBalancers").count()
    };
    let both = [update("u1"), update("u2")];
    let results = host.provider::<crate::Aws>().update_targets_of(&both, &[]).unwrap();
    assert_eq!((results, described()), (vec![Ok(vec![]), Ok(vec![])], 1));

    let three = [update("u1"), update("gone"), update("u2")];
    let results = host.provider::<crate::Aws>().update_targets_of(&three, &[]).unwrap();
    assert!(results[0].is_ok() && results[1].as_ref().is_err_and(Failure::is_not_found) && results[2].is_ok());
    // Together, the two that exist, and the one that does not as either kind.
    assert_eq!(described(), 1 + 1 + 2 + 2);
}
