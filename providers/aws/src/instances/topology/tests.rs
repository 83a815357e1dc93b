//! Layers of the network. moto has none, so answers are in the shape of EC2's documentation; its refusal is moto's.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use super::*;
use crate::testing::{NOW, actions, describe, host, instance_ids, node, refusal, zones};

fn answer(layers: &[(&str, &[&str])]) -> String {
    let item = |(id, layers): &(&str, &[&str])| {
        let nodes: String = layers.iter().map(|layer| format!("<item>{layer}</item>")).collect();
        format!("<item><instanceId>{id}</instanceId><networkNodeSet>{nodes}</networkNodeSet></item>")
    };
    let items: String = layers.iter().map(item).collect();
    format!("<DescribeInstanceTopologyResponse><instanceSet>{items}</instanceSet></DescribeInstanceTopologyResponse>")
}

/// Serves machines, and this answer for their topology.
fn serve(host: &FakeHost, topology: impl Fn(&SentRequest) -> (u16, String) + 'static) {
    host.serve(move |request| match request.field("Action").as_deref() {
        Some("DescribeInstances") => describe(request),
        Some("DescribeInstanceTopology") => {
            let (status, body) = topology(request);
            FakeAnswer::xml(status, &body)
        }
        _ => FakeAnswer::xml(200, zones()),
    });
}

/// The plain machine (`t3.small`) and the one that surely has layers (`p5.48xlarge`).
fn look(host: &FakeHost) -> Vec<Result<Presence, Failure>> {
    let nodes = [node("plain", instance_ids()[0]), node("p5", instance_ids()[1])];
    host.provider::<Aws>().lookup(&nodes).unwrap()
}

fn labels(answer: &Result<Presence, Failure>) -> Vec<String> {
    let Ok(Presence::Running(instance)) = answer else {
        panic!("{answer:?}")
    };
    instance
        .labels
        .iter()
        .map(|label| format!("{}={}", label.key, label.value))
        .collect()
}

fn asked(host: &FakeHost) -> usize {
    actions(host)
        .iter()
        .filter(|action| *action == "DescribeInstanceTopology")
        .count()
}

#[test]
fn layers_become_labels_and_layerless_is_not_requested_again() {
    let host = host();
    serve(&host, |request| {
        let p5 = instance_ids()[1];
        let found: &[(&str, &[&str])] = if request.text().contains(p5) {
            &[(p5, &["nn-1", "nn-2", "nn-3"])]
        } else {
            &[]
        };
        (200, answer(found))
    });
    for _ in 0..2 {
        let answers = look(&host);
        assert_eq!(labels(&answers[0]), ["topology.k8s.aws/zone-id=use1-az6"]);
        let expected = [1, 2, 3].map(|layer| format!("topology.k8s.aws/network-node-layer-{layer}=nn-{layer}"));
        assert_eq!(labels(&answers[1])[1..], expected);
    }
    assert_eq!(asked(&host), 2, "once for each kind of type, the answers are kept");
}

#[test]
fn region_or_policy_without_topology_is_skipped_for_a_day() {
    for code in ["UnsupportedOperation", "UnauthorizedOperation"] {
        let host = host();
        serve(&host, move |_| (400, refusal(code, "no")));
        for _ in 0..2 {
            for answer in look(&host) {
                assert_eq!(labels(&answer).len(), 1, "{code}");
            }
        }
        assert_eq!(asked(&host), 1, "{code}");
    }
}

#[test]
fn other_failure_counts_for_types_with_layers_only() {
    let host = host();
    serve(&host, |_| (400, refusal("RequestLimitExceeded", "slow down")));
    for _ in 0..2 {
        let answers = look(&host);
        assert_eq!(labels(&answers[0]).len(), 1);
        assert!(
            matches!(
                answers[1],
                Err(Failure {
                    kind: FailureKind::RateLimited,
                    ..
                })
            ),
            "{:?}",
            answers[1]
        );
    }
    assert_eq!(asked(&host), 3, "the plain one is asked for once, the other each time");
}

#[test]
fn layerless_machine_does_not_clear_its_type() {
    let host = host();
    serve(&host, |_| (200, answer(&[])));
    for answer in look(&host) {
        assert_eq!(labels(&answer).len(), 1);
    }
    let kept: Vec<String> = host.context().state().get(UNSUPPORTED).unwrap().value;
    assert_eq!(kept, [instance_ids()[1], "t3.small"]);
    host.now(NOW + 60);
    look(&host);
    assert_eq!(asked(&host), 2);
}

#[test]
fn the_types_that_have_layers_are_upstreams() {
    for kind in [
        "p5.48xlarge",
        "p4d.24xlarge",
        "trn1n.32xlarge",
        "hpc7g.16xlarge",
        "p6-b200.48xlarge",
        "p5e.",
    ] {
        assert!(is_required(kind), "{kind}");
    }
    for kind in [
        "t3.small",
        "p.large",
        "p5",
        "p5-.large",
        "hpc.large",
        "P5.large",
        "p5.Large",
        "xp5.large",
        "trn1_n.large",
    ] {
        assert!(!is_required(kind), "{kind}");
    }
}
