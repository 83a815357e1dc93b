//! Nodes and their machines, with moto's answers.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

use super::*;
use crate::testing::{
    CONFIG, EC2, actions, describe, host, instance_ids, instances, network_interfaces, no_instances, no_topology, node,
    refusal, serve, vpcs, zones,
};

/// Looks Nodes up on a cloud that answers as moto did.
fn lookup(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    serve(host);
    host.provider::<Aws>().lookup(nodes).unwrap()
}

fn running(answer: &Result<Presence, Failure>) -> &Instance {
    match answer {
        Ok(Presence::Running(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

fn words(addresses: &[Address]) -> Vec<String> {
    let word = |address: &Address| format!("{:?} {}", address.kind, address.value).replace("AddressKind::", "");
    addresses.iter().map(word).collect()
}

const UNKNOWN: &str = "aws:///us-east-1a/i-0aaaaaaaaaaaaaaaa";

#[test]
fn machine_has_upstreams_id_labels_and_address_order() {
    let host = host();
    let answers = lookup(
        &host,
        &[
            NodeRef::named("ip-10-0-1-10.ec2.internal"),
            NodeRef::named("ip-10-0-2-20.ec2.internal"),
        ],
    );
    let first = running(&answers[0]);
    assert_eq!(first.provider_id, format!("aws:///us-east-1a/{}", instance_ids()[0]));
    assert_eq!(first.instance_type.as_deref(), Some("t3.small"));
    assert_eq!(
        (first.zone.as_deref(), first.region.as_deref()),
        (Some("us-east-1a"), Some("us-east-1"))
    );
    assert_eq!(first.labels, [Pair::new("topology.k8s.aws/zone-id", "use1-az6")]);
    let public = instances()
        .split("<ipAddress>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    let name = instances()
        .split("<dnsName>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    assert_eq!(
        words(&first.addresses),
        [
            "InternalIp 10.0.1.10",
            &format!("ExternalIp {public}"),
            "InternalDns ip-10-0-1-10.ec2.internal",
            "Hostname ip-10-0-1-10.ec2.internal",
            &format!("ExternalDns {name}"),
        ]
    );
    // Both interfaces, by device; a type that has layers of the network and cannot be queried for them is not initialised without.
    assert!(
        matches!(&answers[1], Err(Failure { kind: FailureKind::Unavailable, message: text, .. }) if text.contains("DescribeInstanceTopology")),
        "{:?}",
        answers[1]
    );
}

#[test]
fn interfaces_count_by_device_and_only_while_in_use() {
    let host = host();
    let second = instance_ids()[1];
    let swapped = instances().replace("<deviceIndex>1<", "<deviceIndex>7<");
    let swapped = swapped
        .replacen("<deviceIndex>0<", "<deviceIndex>9<", 2)
        .replace("p5.48xlarge", "m5.large");
    for (answer, expected) in [
        (
            swapped.clone(),
            ["InternalIp 10.0.2.120", "InternalIp 10.0.2.20"].as_slice(),
        ),
        (
            swapped.replacen("<status>in-use<", "<status>detaching<", 2),
            &["InternalIp 10.0.2.120"],
        ),
    ] {
        host.serve(move |request| match request.field("Action").as_deref() {
            Some("DescribeInstances") => FakeAnswer::xml(200, &answer),
            Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
            _ => FakeAnswer::xml(200, zones()),
        });
        let answers = host
            .provider::<Aws>()
            .lookup(&[node("n", &format!("aws:///us-east-1b/{second}"))])
            .unwrap();
        let addresses = words(&running(&answers[0]).addresses);
        assert_eq!(addresses[..expected.len()], *expected);
        assert!(
            !addresses
                .iter()
                .skip(expected.len())
                .any(|address| address.starts_with("InternalIp")),
            "{addresses:?}"
        );
    }
}

#[test]
fn ipv6_comes_in_the_configured_order_and_is_never_external() {
    let host = host();
    host.config(CONFIG.to_owned() + "NodeIPFamilies = ipv6\nNodeIPFamilies = ipv4\n");
    let with_ipv6 = instances().replacen(
        "<ipv6AddressesSet/>",
        "<ipv6AddressesSet><item><ipv6Address>2400::1</ipv6Address></item><item><ipv6Address>2400::2</ipv6Address></item></ipv6AddressesSet>",
        1,
    );
    host.serve(move |request| match request.field("Action").as_deref() {
        Some("DescribeInstances") => FakeAnswer::xml(200, &with_ipv6),
        Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
        _ => FakeAnswer::xml(200, zones()),
    });
    let answers = host.provider::<Aws>().lookup(&[node("n", instance_ids()[0])]).unwrap();
    let addresses = words(&running(&answers[0]).addresses);
    assert_eq!(addresses[..2], ["InternalIp 2400::1", "InternalIp 10.0.1.10"]);
    assert!(
        !addresses.iter().any(|address| address.contains("2400::2")),
        "{addresses:?}"
    );
}

#[test]
fn the_provider_id_of_a_node_stays_as_it_was_written() {
    let host = host();
    let id = instance_ids()[0];
    let forms = [
        format!("aws:///us-east-1a/{id}"),
        format!("aws:////{id}"),
        id.to_owned(),
        format!("aws:///elsewhere/{id}"),
    ];
    let nodes: Vec<NodeRef> = forms.iter().map(|form| node("n", form)).collect();
    for (answer, form) in lookup(&host, &nodes).iter().zip(forms) {
        assert_eq!(running(answer).provider_id, form);
    }
    assert_eq!(
        actions(&host)
            .iter()
            .filter(|action| *action == "DescribeInstances")
            .count(),
        1
    );
}

#[test]
fn states_are_what_upstream_makes_of_them() {
    let host = host();
    let ids = instance_ids();
    let answers = lookup(&host, &[node("stopped", ids[2]), node("terminated", ids[3])]);
    assert!(
        matches!(&answers[0], Ok(Presence::Stopped(instance)) if instance.provider_id == ids[2]),
        "{:?}",
        answers[0]
    );
    assert_eq!(answers[1], Ok(Presence::Absent(Evidence::ById)));
    // Nothing runs, so nothing is labelled.
    assert_eq!(actions(&host), ["DescribeInstances"]);
    for state in ["pending", "stopping", "shutting-down"] {
        let host = self::host();
        let changed = instances().replacen("<name>running<", &format!("<name>{state}<"), 1);
        host.serve(move |request| match request.field("Action").as_deref() {
            Some("DescribeInstances") => FakeAnswer::xml(200, &changed),
            Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
            _ => FakeAnswer::xml(200, zones()),
        });
        let answers = host.provider::<Aws>().lookup(&[node("n", ids[0])]).unwrap();
        assert!(matches!(answers[0], Ok(Presence::Running(_))), "{state}");
    }
}

#[test]
fn an_id_that_aws_does_not_know_is_absent_and_harms_no_other() {
    let host = host();
    let known = instance_ids()[0];
    let nodes = [
        node("a", UNKNOWN),
        node("b", known),
        node("c", "aws:///us-east-1a/i-0bbbbbbbbbbbbbbbb"),
        node("d", instance_ids()[4]),
    ];
    let answers = lookup(&host, &nodes);
    assert_eq!(answers[0], Ok(Presence::Absent(Evidence::ById)));
    assert_eq!(running(&answers[1]).provider_id, known);
    assert_eq!(answers[2], Ok(Presence::Absent(Evidence::ById)));
    assert!(matches!(answers[3], Ok(Presence::Running(_))), "by id no tag is needed");
    // All missing ones are named in one refusal, so two calls do.
    assert_eq!(
        actions(&host)
            .iter()
            .filter(|action| *action == "DescribeInstances")
            .count(),
        2
    );
}

#[test]
fn a_refusal_that_names_no_id_is_narrowed_down() {
    let host = host();
    let nodes: Vec<NodeRef> = [instance_ids(), vec!["i-0aaaaaaaaaaaaaaaa"]]
        .concat()
        .iter()
        .map(|id| node("n", id))
        .collect();
    host.serve(|request| match request.field("Action").as_deref() {
        Some("DescribeInstances") if request.text().contains("i-0aaaaaaaaaaaaaaaa") => FakeAnswer::xml(
            400,
            &refusal("InvalidInstanceID.NotFound", "one of them does not exist"),
        ),
        Some("DescribeInstances") => describe(request),
        Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
        _ => FakeAnswer::xml(200, zones()),
    });
    let answers = host.provider::<Aws>().lookup(&nodes).unwrap();
    assert_eq!(answers[5], Ok(Presence::Absent(Evidence::ById)));
    assert!(matches!(answers[0], Ok(Presence::Running(_))) && matches!(answers[2], Ok(Presence::Stopped(_))));
}

#[test]
fn a_malformed_id_is_that_nodes_mistake_and_no_absence() {
    let host = host();
    host.serve(|request| match request.field("Action").as_deref() {
        Some("DescribeInstances") if request.text().contains("i-bad") => {
            FakeAnswer::xml(400, &refusal("InvalidInstanceID.Malformed", "Invalid id: \"i-bad\""))
        }
        Some("DescribeInstances") => describe(request),
        Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
        _ => FakeAnswer::xml(200, zones()),
    });
    let answers = host
        .provider::<Aws>()
        .lookup(&[node("a", "aws:///z/i-bad"), node("b", instance_ids()[0])])
        .unwrap();
    assert!(
        matches!(&answers[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("i-bad")),
        "{:?}",
        answers[0]
    );
    assert!(matches!(answers[1], Ok(Presence::Running(_))));
}

#[test]
fn an_id_that_is_neither_described_nor_denied_is_not_absent() {
    let host = host();
    host.expect("POST", EC2).answers_xml(200, no_instances());
    let answers = host.provider::<Aws>().lookup(&[node("a", UNKNOWN)]).unwrap();
    assert!(
        matches!(&answers[0], Err(Failure { kind: FailureKind::Unavailable, message: text, .. }) if text.contains("i-0aaaaaaaaaaaaaaaa")),
        "{answers:?}"
    );
}

#[test]
fn a_thousand_nodes_are_one_call_and_two_thousand_two() {
    let host = host();
    let nodes: Vec<NodeRef> = (0..2_000)
        .map(|number| node("n", &format!("aws:///z/i-{number:017x}")))
        .collect();
    host.serve(|request| {
        let ids = request
            .form()
            .into_iter()
            .filter(|(name, _)| name.starts_with("InstanceId."));
        assert_eq!(ids.count(), 1_000);
        assert_eq!(request.field("MaxResults"), None, "AWS takes no size of pages with ids");
        FakeAnswer::xml(200, no_instances())
    });
    assert_eq!(host.provider::<Aws>().lookup(&nodes).unwrap().len(), 2_000);
    assert_eq!(host.requests().len(), 2);
}

#[test]
fn name_matches_live_instances_with_cluster_tag_only() {
    let host = host();
    let answers = lookup(
        &host,
        &[
            NodeRef::named("ip-10-0-1-10.ec2.internal"),
            NodeRef::named("nobody"),
            NodeRef::named("ip-10-0-2-50.ec2.internal"),
        ],
    );
    assert!(matches!(answers[0], Ok(Presence::Running(_))));
    assert_eq!(answers[1], Ok(Presence::Absent(Evidence::ByName)));
    assert!(
        matches!(&answers[2], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("kubernetes.io/cluster/test") && text.contains(instance_ids()[4])),
        "{:?}",
        answers[2]
    );
    let request = &host.requests()[0];
    assert_eq!(request.field("Filter.1.Name").as_deref(), Some("private-dns-name"));
    assert_eq!(request.field("Filter.2.Name").as_deref(), Some("instance-state-name"));
    assert!(!request.text().contains("terminated"));
}

#[test]
fn the_legacy_tag_counts_by_its_value() {
    let host = host();
    let legacy = |value: &str| {
        let tag = format!("<key>KubernetesCluster</key><value>{value}</value>");
        instances().replacen("<key>kubernetes.io/cluster/test</key><value>owned</value>", &tag, 1)
    };
    for (value, found) in [("test", true), ("other", false)] {
        let answer = legacy(value);
        host.serve(move |request| match request.field("Action").as_deref() {
            Some("DescribeInstances") => FakeAnswer::xml(200, &answer),
            Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
            _ => FakeAnswer::xml(200, zones()),
        });
        let answers = host
            .provider::<Aws>()
            .lookup(&[NodeRef::named("ip-10-0-1-10.ec2.internal")])
            .unwrap();
        assert_eq!(answers[0].is_ok(), found, "{value}: {:?}", answers[0]);
    }
}

#[test]
fn id_like_name_is_queried_as_id_and_never_proves_absence() {
    let host = host();
    let known = instance_ids()[0];
    let answers = lookup(
        &host,
        &[
            NodeRef::named(format!("{known}.ec2.internal")),
            NodeRef::named("i-0aaaaaaaaaaaaaaaa"),
        ],
    );
    assert_eq!(running(&answers[0]).provider_id, format!("aws:///us-east-1a/{known}"));
    assert_eq!(answers[1], Ok(Presence::Absent(Evidence::ByName)));
}

#[test]
fn several_machines_of_one_name_are_not_guessed_from() {
    let host = host();
    let twins = instances().replace("ip-10-0-2-20.ec2", "ip-10-0-1-10.ec2");
    host.expect("POST", EC2).answers_xml(200, &twins);
    let answers = host
        .provider::<Aws>()
        .lookup(&[NodeRef::named("ip-10-0-1-10.ec2.internal")])
        .unwrap();
    assert!(
        matches!(&answers[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains(instance_ids()[1])),
        "{answers:?}"
    );
}

#[test]
fn more_names_than_a_filter_takes_are_several_calls() {
    let host = host();
    host.serve(|_| FakeAnswer::xml(200, no_instances()));
    let nodes: Vec<NodeRef> = (0..450).map(|number| NodeRef::named(format!("n{number}"))).collect();
    let answers = host.provider::<Aws>().lookup(&nodes).unwrap();
    assert!(
        answers
            .iter()
            .all(|answer| *answer == Ok(Presence::Absent(Evidence::ByName)))
    );
    assert_eq!(host.requests().len(), 3);
}

#[test]
fn a_node_of_another_cloud_is_refused_without_a_call() {
    let host = host();
    for id in ["gce://p/z/n", "aws://host/i-0", "aws:///z/vol-1", "aws:///", "i"] {
        let answers = host.provider::<Aws>().lookup(&[node("n", id)]).unwrap();
        assert!(
            matches!(&answers[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains(id)),
            "{answers:?}"
        );
    }
}

#[test]
fn an_error_of_aws_is_never_absence() {
    let host = host();
    let aws = host.provider::<Aws>();
    for (status, body) in [
        (400, refusal("AuthFailure", "no")),
        (400, refusal("RequestLimitExceeded", "no")),
        (500, "<html>".into()),
        (404, String::new()),
        (200, instances()[..5_000].to_owned()),
    ] {
        host.expect("POST", EC2).answers_xml(status, &body);
        assert!(aws.lookup(&[node("n", UNKNOWN)]).is_err(), "{status} {body}");
    }
    host.expect("POST", EC2).breaks();
    assert!(matches!(
        aws.lookup(&[node("n", UNKNOWN)]),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
}

#[test]
fn a_zone_without_an_id_fails_its_machines_and_no_others() {
    let host = host();
    let unknown = zones().replace("us-east-1a", "us-east-1x");
    host.serve(move |request| match request.field("Action").as_deref() {
        Some("DescribeInstances") => describe(request),
        Some("DescribeInstanceTopology") => FakeAnswer::new(500, &[], no_topology()),
        _ => FakeAnswer::xml(200, &unknown),
    });
    let ids = instance_ids();
    let nodes = [
        node("a", ids[0]),
        node("b", ids[4]),
        node("c", ids[3]),
        node("d", ids[2]),
    ];
    for _ in 0..2 {
        let answers = host.provider::<Aws>().lookup(&nodes).unwrap();
        assert!(
            matches!(&answers[0], Err(Failure { kind: FailureKind::Other, message: text, .. }) if text.contains("us-east-1a")),
            "{:?}",
            answers[0]
        );
        assert!(matches!(answers[1], Ok(Presence::Running(_))));
        assert_eq!(answers[2], Ok(Presence::Absent(Evidence::ById)));
        assert!(matches!(answers[3], Ok(Presence::Stopped(_))));
    }
    // The table is kept, and so is that the zone is not in it.
    assert_eq!(
        actions(&host)
            .iter()
            .filter(|action| *action == "DescribeAvailabilityZones")
            .count(),
        1
    );
}

#[test]
fn fargates_machines_are_found_by_the_address_in_their_id() {
    let host = host();
    let with = |text: &'static str| {
        move |request: &cloudwit_guest_sdk::testing::SentRequest| match request.field("Action").as_deref() {
            Some("DescribeNetworkInterfaces") => FakeAnswer::xml(200, text),
            Some("DescribeVpcs") => FakeAnswer::xml(200, vpcs()),
            _ => FakeAnswer::xml(200, zones()),
        }
    };
    host.serve(with(network_interfaces()));
    let nodes = [
        node(
            "fargate-ip-10-0-1-77.ec2.internal",
            "aws:///us-east-1a/0a1b2c/fargate-ip-10-0-1-77.ec2.internal",
        ),
        node("fargate-10.0.1.78", "aws:///us-east-1a/0a1b2c/fargate-10.0.1.78"),
        node("fargate-x", "aws:///us-east-1a/fargate-x"),
    ];
    let answers = host.provider::<Aws>().lookup(&nodes).unwrap();
    let found = running(&answers[0]);
    assert_eq!(Some(&found.provider_id), nodes[0].provider_id.as_ref());
    assert_eq!(
        (found.instance_type.as_deref(), found.zone.as_deref()),
        (None, Some("us-east-1a"))
    );
    assert_eq!(words(&found.addresses), ["InternalIp 10.0.1.77"]);
    assert_eq!(answers[1], Ok(Presence::Absent(Evidence::ById)));
    assert!(matches!(
        answers[2],
        Err(Failure {
            kind: FailureKind::Invalid,
            ..
        })
    ));
    let asked = host
        .requests()
        .into_iter()
        .find(|request| request.text().contains("DescribeNetworkInterfaces"))
        .unwrap();
    let vpc = vpcs().split("<vpcId>").nth(1).unwrap().split('<').next().unwrap();
    assert_eq!(asked.field("Filter.2.Value.1").as_deref(), Some(vpc));
    assert_eq!(asked.field("Filter.3.Value.2").as_deref(), Some("10.0.1.78"));
}
