//! `Test_syncNode` and its neighbours: a Node and a machine in, the Node as it is after both writes out. Rows about
//! the old `Instances` and `Zones` interfaces are the same here, since there is one look-up; the numbers are those of
//! `spec/upstream-tests.md` 1.1.

use std::collections::BTreeMap;

use cloudwit_model::{Address, AddressKind};
use k8s_openapi::api::core::v1::NodeCondition;
use kube::api::ObjectMeta;

use super::*;
use crate::kube::node::{NodeSpec, NodeStatus};

const CLOUD_ID: &str = "fake://12345";

fn provider() -> ProviderIdentity {
    ProviderIdentity {
        provider_id_prefixes: vec!["fake://".into()],
        ..ProviderIdentity::default()
    }
}

fn taint(key: &str) -> Taint {
    Taint {
        key: key.into(),
        value: Some("true".into()),
        effect: "NoSchedule".into(),
        ..Taint::default()
    }
}

fn cloud_taint() -> Taint {
    taint(UNINITIALIZED)
}

fn other_taint() -> Taint {
    taint("ImproveCoverageTaint")
}

fn addresses(pairs: &[(&str, &str)]) -> Vec<NodeAddress> {
    pairs
        .iter()
        .map(|(kind, value)| NodeAddress {
            type_: (*kind).into(),
            address: (*value).into(),
        })
        .collect()
}

const HOST: (&str, &str) = ("Hostname", "node0.cloud.internal");
const INTERNAL: (&str, &str) = ("InternalIP", "10.0.0.1");
const EXTERNAL: (&str, &str) = ("ExternalIP", "132.143.154.163");
const KUBELET_HOST: (&str, &str) = ("Hostname", "nodeoverriden");

fn node(taints: &[Taint], existing: &[(&str, &str)]) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some("node0".into()),
            uid: Some("uid".into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: Some(taints.to_vec()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            addresses: Some(addresses(existing)),
            conditions: Some(vec![NodeCondition {
                type_: "Ready".into(),
                status: "Unknown".into(),
                ..NodeCondition::default()
            }]),
            ..NodeStatus::default()
        }),
        ..Node::default()
    }
}

fn with_id(mut node: Node, id: &str) -> Node {
    node.spec.get_or_insert_default().provider_id = Some(id.into());
    node
}

fn with_provided_ip(mut node: Node, value: &str) -> Node {
    node.metadata.annotations = Some(BTreeMap::from([(PROVIDED_NODE_IP.to_owned(), value.to_owned())]));
    node
}

fn with_labels(mut node: Node, pairs: &[(&str, &str)]) -> Node {
    node.labels = labels(pairs).into_iter().collect();
    node
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn machine(offered: &[(&str, &str)]) -> Instance {
    Instance {
        provider_id: CLOUD_ID.into(),
        addresses: offered
            .iter()
            .map(|(kind, value)| Address::new(AddressKind::parse(kind).expect("a kind"), *value))
            .collect(),
        ..Instance::default()
    }
}

fn in_zone(mut instance: Instance) -> Instance {
    (instance.zone, instance.region) = (Some("us-west-1a".into()), Some("us-west".into()));
    instance
}

/// The Node after both writes, as the API server would have it.
fn initialised(mut node: Node, instance: &Instance) -> Result<Node, AddressError> {
    if let Some(addresses) = plan_addresses(&node, instance)? {
        node.status.get_or_insert_default().addresses = Some(addresses);
    }
    let release = plan_release(&node, instance, &provider()).unwrap();
    let mut labels: Labels = view::cluster_node(&node).labels.into_iter().collect();
    labels.extend(release.labels);
    node.labels = labels.into_iter().collect();
    let spec = node.spec.get_or_insert_default();
    spec.provider_id = spec.provider_id.take().or(release.provider_id);
    spec.taints = Some(release.taints);
    Ok(node)
}

#[test]
fn a_tainted_node_becomes_what_upstream_makes_of_it() {
    let all = [HOST, INTERNAL, EXTERNAL];
    let ips = [INTERNAL, EXTERNAL];
    let custom = [("topology.k8s.cp/zone-id", "az1"), ("my.custom.label/foo", "bar")];
    let topology = [
        ("failure-domain.beta.kubernetes.io/region", "us-west"),
        ("failure-domain.beta.kubernetes.io/zone", "us-west-1a"),
        ("topology.kubernetes.io/region", "us-west"),
        ("topology.kubernetes.io/zone", "us-west-1a"),
    ];
    let ct = || node(&[cloud_taint()], &[]);
    let both = || node(&[other_taint(), cloud_taint()], &[]);
    let with_custom = Instance {
        labels: labels(&custom),
        ..in_zone(machine(&[]))
    };
    for (row, before, instance, after) in [
        (
            "1 cloud hostname wins",
            node(&[cloud_taint()], &[KUBELET_HOST]),
            machine(&all),
            with_id(node(&[], &all), CLOUD_ID),
        ),
        (
            "2 cloud has no hostname",
            node(&[cloud_taint()], &[KUBELET_HOST]),
            machine(&ips),
            with_id(node(&[], &[INTERNAL, EXTERNAL, KUBELET_HOST]), CLOUD_ID),
        ),
        (
            "3 provider ID obtained",
            ct(),
            machine(&all),
            with_id(node(&[], &all), CLOUD_ID),
        ),
        (
            "5, 15 zone and region labels, addresses, conditions kept",
            ct(),
            in_zone(machine(&all)),
            with_labels(with_id(node(&[], &all), CLOUD_ID), &topology),
        ),
        (
            "6, 16 another taint is kept",
            both(),
            machine(&all),
            with_id(node(&[other_taint()], &all), CLOUD_ID),
        ),
        (
            "8, 17 provided IP valid",
            with_provided_ip(
                with_id(node(&[cloud_taint()], &[KUBELET_HOST]), "node0.aws.12345"),
                "10.0.0.1",
            ),
            machine(&ips),
            with_provided_ip(
                with_id(node(&[], &[INTERNAL, EXTERNAL, KUBELET_HOST]), "node0.aws.12345"),
                "10.0.0.1",
            ),
        ),
        (
            "11, 20 providerID already set",
            with_id(both(), "test-provider-id"),
            machine(&all),
            with_id(node(&[other_taint()], &all), "test-provider-id"),
        ),
        (
            "13 providerID on the node",
            with_id(ct(), CLOUD_ID),
            machine(&all),
            with_id(node(&[], &all), CLOUD_ID),
        ),
        (
            "18 additional labels",
            ct(),
            with_custom,
            with_labels(
                with_id(node(&[], &[]), CLOUD_ID),
                &[&topology[..], &custom[..]].concat(),
            ),
        ),
    ] {
        assert_eq!(initialised(before, &instance).as_ref(), Ok(&after), "{row}");
    }
}

/// Row 12 without its missing provider id, which the model rules out.
#[test]
fn a_machine_without_addresses_still_ends_the_initialisation() {
    let before = node(&[cloud_taint()], &[KUBELET_HOST]);
    let after = initialised(before, &machine(&[])).unwrap();
    assert_eq!(after, with_id(node(&[], &[KUBELET_HOST]), CLOUD_ID));
}

#[test]
fn row_9_a_provided_ip_that_does_not_parse_stops_everything() {
    let before = with_provided_ip(node(&[cloud_taint()], &[]), "invalid-ip");
    assert!(matches!(
        initialised(before, &machine(&[INTERNAL, EXTERNAL])),
        Err(AddressError::BadAnnotation { .. })
    ));
}

#[test]
fn row_10_a_provided_ip_unknown_to_the_cloud_stops_everything() {
    let before = with_provided_ip(node(&[cloud_taint()], &[]), "10.0.0.2");
    assert!(matches!(
        initialised(before, &machine(&[INTERNAL, EXTERNAL])),
        Err(AddressError::NotOffered { .. })
    ));
}

/// `TestGetInstanceMetadata`, the rows about the instance type, and all taints of that key, whatever their effect.
#[test]
fn all_uninitialized_taints_go_keeping_order_of_others() {
    let other_effect = Taint {
        effect: "NoExecute".into(),
        ..cloud_taint()
    };
    let before = node(&[taint("a"), cloud_taint(), taint("b"), other_effect, taint("c")], &[]);
    let release = plan_release(
        &before,
        &Instance {
            instance_type: Some("t1.micro".into()),
            ..machine(&[])
        },
        &provider(),
    )
    .unwrap();
    assert_eq!(release.taints, [taint("a"), taint("b"), taint("c")]);
    assert_eq!(release.labels["node.kubernetes.io/instance-type"], "t1.micro");
    assert_eq!(release.labels["beta.kubernetes.io/instance-type"], "t1.micro");
}

#[test]
fn a_plan_made_again_on_its_own_result_changes_nothing() {
    let instance = in_zone(machine(&[INTERNAL, ("InternalIP", "fc01::1"), EXTERNAL]));
    let done = initialised(node(&[other_taint(), cloud_taint()], &[KUBELET_HOST]), &instance).unwrap();
    assert_eq!(plan_addresses(&done, &instance), Ok(None));
    let again = plan_release(&done, &instance, &provider()).unwrap();
    assert_eq!(
        again,
        Release {
            taints: vec![other_taint()],
            ..Release::default()
        }
    );
}

#[test]
fn heartbeat_is_ignored_and_cloud_lookup_fields_are_not() {
    let old = node(&[cloud_taint()], &[]);
    let mut heartbeat = old.clone();
    heartbeat.metadata.resource_version = Some("2".into());
    heartbeat.status.get_or_insert_default().conditions = None;
    assert!(!matters(&old, &heartbeat));
    assert!(matters(&old, &with_id(old.clone(), CLOUD_ID)));
    assert!(matters(&old, &with_provided_ip(old.clone(), "10.0.0.1")));
    assert!(matters(&old, &node(&[cloud_taint()], &[INTERNAL])));
    assert!(matters(&old, &node(&[other_taint(), cloud_taint()], &[])));
    assert!(matters(&old, &with_labels(old.clone(), &[("a", "b")])));
}

#[test]
fn an_id_outside_of_the_declared_prefixes_is_never_written() {
    let with = |id: &str| Instance {
        provider_id: id.into(),
        ..machine(&[INTERNAL])
    };
    let (new, known) = (
        node(&[cloud_taint()], &[]),
        with_id(node(&[cloud_taint()], &[]), CLOUD_ID),
    );
    for id in ["other://1", "fake:/", "FAKE://a", " fake://a"] {
        for node in [&new, &known] {
            let error = plan_release(node, &with(id), &provider()).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("{id:?}, which begins with none of")),
                "{error}"
            );
        }
    }
    assert_eq!(plan_identity(&new, &with(""), &provider()), Err(IdentityError::Missing));
    assert_eq!(plan_identity(&known, &with(""), &provider()), Ok(None));
    assert_eq!(
        plan_identity(&known, &with(CLOUD_ID), &provider()),
        Ok(None),
        "it is written once"
    );
    assert_eq!(
        plan_identity(&new, &with(CLOUD_ID), &provider()),
        Ok(Some(CLOUD_ID.into()))
    );
    let any = ProviderIdentity::default();
    assert_eq!(
        plan_identity(&new, &with("other://1"), &any),
        Ok(Some("other://1".into()))
    );
    let long = plan_identity(&new, &with(&"x".repeat(100_000)), &provider()).unwrap_err();
    assert!(long.to_string().len() < 300, "{long}");
}
