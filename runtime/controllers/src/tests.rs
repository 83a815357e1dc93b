//! Properties of all plans for any cloud and cluster.
//!
//! No panic, nothing left to do after it was done, work that grows with the
//! lists and not with their product, and no deletion without enough evidence.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_model::{Address, AddressKind, Evidence, Instance, Presence, ProviderIdentity, Retry, Route};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{NodeAddress, Service, Taint};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::Instant;

use crate::kube::node::Node;
use crate::kube::node::view::{ABSENT, SHUTDOWN, UNINITIALIZED, provider_id};
use crate::kube::service::view::{lenient_service_view, service_view};
use crate::lifecycle::brake::{Absent, Guard, Rules, Verdict};
use crate::lifecycle::brake_by_name::{GuardByName, NameVerdict};
use crate::lifecycle::plan::{Mark, after, before, may_go_by_name, plan_taints};
use crate::node::labels;
use crate::node::plan::{plan_addresses, plan_labels, plan_release};
use crate::options::LifecycleOptions;
use crate::options::classes::Classes;
use crate::queue::backoff::Backoff;
use crate::route::plan::{batches, plan};
use crate::service::needs_update::needs_update;
use crate::service::plan::{needs_sync, next_step};
use crate::service::state::Record;
use crate::service::targets::{DatedSet, TargetSet, targets};
use crate::testing::node;
use crate::work::steps_of;

fn provider() -> ProviderIdentity {
    ProviderIdentity {
        name: "sim".into(),
        provider_id_prefixes: vec!["sim://".into()],
        ..ProviderIdentity::default()
    }
}

/// Few words, so that they meet, and odd ones.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,2}",
        "[a-z.]{0,8}/?[A-Za-z0-9_.-]{0,70}",
        Just("topology.kubernetes.io/zone".to_owned()),
        "\\PC{0,20}",
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof!["sim://[a-c]", "other://[a-c]", Just(String::new()), "\\PC{0,10}"]
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        "10\\.0\\.0\\.[1-4]",
        "::ffff:10\\.0\\.0\\.[1-4]",
        "fd00::[1-4]",
        "host-[a-c]",
    ]
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..4_u8, 20..=32_u8).prop_map(|(third, length)| format!("10.0.{third}.0/{length}")),
        (0..4_u8).prop_map(|third| format!("10.0.{third}.7/24")),
        (0..4_u8).prop_map(|third| format!("fd00:0:0:{third}::/64")),
        Just("10.0.1.0".to_owned()),
        "\\PC{0,8}",
    ]
}

fn instance() -> impl Strategy<Value = Instance> {
    let address = (0..3_usize, address()).prop_map(|(kind, value)| {
        let kinds = [AddressKind::InternalIP, AddressKind::ExternalIP, AddressKind::Hostname];
        Address::new(kinds[kind], value)
    });
    (
        id(),
        option::of(word()),
        option::of(word()),
        vec(address, 0..6),
        btree_map(word(), word(), 0..5),
    )
        .prop_map(|(provider_id, instance_type, zone, addresses, labels)| Instance {
            provider_id,
            instance_type,
            zone,
            addresses,
            labels,
            ..Instance::default()
        })
}

fn any_node() -> impl Strategy<Value = Node> {
    let taints = vec(
        prop_oneof![Just(UNINITIALIZED), Just(SHUTDOWN), Just(ABSENT), Just("x")],
        0..4,
    );
    let ready = prop_oneof![Just("True"), Just("False"), Just("Unknown")];
    (
        option::of(id()),
        taints,
        ready,
        vec(address(), 0..4),
        vec(range(), 0..4),
        0..6_usize,
    )
        .prop_map(|(id, taints, ready, addresses, ranges, number)| {
            let mut node = node(&format!("n{number}"), ready, &taints);
            let spec = node.spec.get_or_insert_default();
            spec.provider_id = id;
            spec.pod_cidrs = Some(ranges);
            let address = |address: String| NodeAddress {
                type_: "InternalIP".into(),
                address,
            };
            node.status.get_or_insert_default().addresses = Some(addresses.into_iter().map(address).collect());
            node
        })
}

/// As the API server has it: no two of one name.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    vec(any_node(), 0..6).prop_map(|nodes| {
        let by_name: BTreeMap<_, _> = nodes
            .into_iter()
            .map(|node| (node.metadata.name.clone(), node))
            .collect();
        by_name.into_values().collect()
    })
}

fn routes() -> impl Strategy<Value = Vec<Route>> {
    let route = (range(), option::of("n[0-7]"), vec(address(), 0..3), any::<bool>());
    vec(route, 0..10).prop_map(|routes| {
        let route =
            |(number, (destination, node, hops, blackhole)): (usize, (String, Option<String>, Vec<String>, bool))| {
                Route {
                    id: number.to_string(),
                    destination,
                    node,
                    next_hops: hops
                        .into_iter()
                        .map(|hop| Address::new(AddressKind::InternalIP, hop))
                        .collect(),
                    blackhole,
                }
            };
        routes.into_iter().enumerate().map(route).collect()
    })
}

fn cluster() -> Vec<IpNet> {
    vec!["10.0.0.0/16".parse().unwrap(), "fd00::/48".parse().unwrap()]
}

fn service() -> impl Strategy<Value = Service> {
    (
        prop_oneof![Just("LoadBalancer"), Just("ClusterIP")],
        any::<[bool; 3]>(),
        option::of(word()),
        vec(range(), 0..3),
        vec(any::<i32>(), 0..3),
    )
        .prop_map(|(kind, [finalizer, dying, ingress], class, sources, ports)| {
            let finalizers = finalizer.then_some(["service.kubernetes.io/load-balancer-cleanup"]);
            let ports: Vec<_> = ports.iter().map(|port| json!({ "port": port })).collect();
            let status = ingress.then(|| json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } }));
            serde_json::from_value(json!({
                "metadata": {
                    "name": "web", "namespace": "default", "uid": "u", "finalizers": finalizers,
                    "deletionTimestamp": dying.then_some("2026-01-01T00:00:00Z"),
                },
                "spec": { "type": kind, "loadBalancerClass": class, "loadBalancerSourceRanges": sources, "ports": ports },
                "status": status,
            }))
            .unwrap()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_initialised_node_needs_no_further_write(node in any_node(), instance in instance()) {
        let mut node = node;
        let Ok(addresses) = plan_addresses(&node, &instance) else { return Ok(()) };
        if let Some(addresses) = addresses {
            node.status.get_or_insert_default().addresses = Some(addresses);
        }
        let Ok(release) = plan_release(&node, &instance, &provider()) else { return Ok(()) };
        prop_assert!(release.provider_id.iter().all(|id| id.starts_with("sim://")));
        prop_assert!(release.provider_id.is_none() || provider_id(&node).is_none(), "it is written once");
        let labels: Vec<(String, String)> = release.labels.into_iter().collect();
        node.labels = labels.into_iter().collect();
        let spec = node.spec.get_or_insert_default();
        spec.taints = Some(release.taints);
        spec.provider_id = release.provider_id.or(spec.provider_id.take());
        prop_assert_eq!(plan_addresses(&node, &instance), Ok(None));
        prop_assert!(plan_labels(&node).is_empty(), "{:?}", plan_labels(&node));
        let again = plan_release(&node, &instance, &provider()).unwrap();
        prop_assert_eq!((again.provider_id, again.labels), (None, BTreeMap::new()));
    }

    #[test]
    fn every_label_is_set_or_dropped(instance in instance()) {
        let (wanted, dropped) = labels::for_instance(&Default::default(), &instance);
        for key in instance.labels.keys() {
            let dropped = dropped.iter().filter(|label| label.key == *key).count();
            prop_assert!(wanted.contains_key(key) || dropped > 0, "{key}");
        }
        let valid = |text: &str| text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        prop_assert!(wanted.values().all(|value| valid(value)), "{wanted:?}");
    }

    #[test]
    fn taints_that_are_right_are_not_written_again(node in any_node()) {
        for mark in [Mark::None, Mark::NotAbsent, Mark::Shutdown, Mark::Absent] {
            let mut node = node.clone();
            let others = |taints: &[Taint]| taints.iter().filter(|taint| taint.key == "x").count();
            if let Some(taints) = plan_taints(&node, mark) {
                prop_assert_eq!(others(&taints), others(crate::kube::node::view::taints(&node)), "others' stay");
                node.spec.get_or_insert_default().taints = Some(taints);
            }
            prop_assert_eq!(plan_taints(&node, mark), None);
        }
    }

    #[test]
    fn only_a_node_with_an_own_id_is_gone_by_id(node in any_node()) {
        use crate::lifecycle::plan::{After, Before};
        let gone = after(&node, &Presence::Absent(Evidence::ById), &provider()) == After::Gone;
        prop_assert_eq!(gone, provider_id(&node).is_some_and(|id| id.as_str().starts_with("sim://")));
        let by_name = after(&node, &Presence::Absent(Evidence::ByName), &provider());
        prop_assert_eq!(by_name, After::Unclear);
        let asked = before(&node, &provider()) == Before::Ask;
        prop_assert!(!(asked && may_go_by_name(&node, &provider(), false)), "it is asked about in one way at most");
    }

    #[test]
    fn planned_routes_converge_within_the_clusters_ranges(nodes in nodes(), routes in routes(), size in 1..5_usize) {
        let cluster = cluster();
        let first = plan(&cluster, &nodes, &routes);
        let cut = batches(&first.changes, size);
        prop_assert_eq!(cut.concat(), &first.changes[..], "each change is in one batch");
        let mut there = routes.clone();
        for change in &first.changes {
            prop_assert!(cluster.iter().any(|range| range.contains(&change.network)));
            prop_assert!(change.delete.iter().all(|route| there.contains(route)));
            there.retain(|route| !change.delete.contains(route));
            there.extend(change.create.iter().map(|new| Route {
                id: format!("new {}", new.destination),
                destination: new.destination.clone(),
                node: Some(new.node.name.clone()),
                next_hops: Vec::new(),
                blackhole: false,
            }));
        }
        prop_assert_eq!(plan(&cluster, &nodes, &there).changes, []);
    }

    #[test]
    fn a_guard_lets_a_node_go_after_enough_absences_alone(story in vec((0..4_u8, 1..100_u64), 0..40)) {
        let (mut guard, start) = (Guard::new(Rules::from(&LifecycleOptions::default())), Instant::now());
        guard.set_digest("d");
        let (mut at, mut absences): (u64, Vec<u64>) = (0, Vec::new());
        for (what, pause) in story {
            at += pause;
            match what {
                0 | 1 => {
                    let absent = Absent { uid: "u", provider_id: "sim://a", age: Duration::from_secs(3600), announced: false };
                    absences.push(at);
                    let certain = matches!(guard.absent(absent, start + Duration::from_secs(at)), Verdict::Certain(_));
                    prop_assert_eq!(certain, absences.len() >= 2 && at - absences[0] >= 120, "{:?}", absences);
                }
                2 => { guard.alive("u"); absences.clear(); }
                _ => { guard.set_digest(&at.to_string()); absences.clear(); }
            }
        }
    }

    #[test]
    fn guard_by_name_needs_an_hour_of_the_same_answer(story in vec((0..8_u8, 1..600_u64), 0..60)) {
        let (mut guard, start) = (GuardByName::new(&LifecycleOptions::default()), Instant::now());
        let (mut at, mut absences): (u64, Vec<u64>) = (0, Vec::new());
        for (what, pause) in story {
            at += pause;
            match what {
                0 => { guard.restart("u"); absences.clear(); }
                1 if at % 5 == 0 => { guard.restart_all(); absences.clear(); }
                _ => {
                    absences.push(at);
                    let verdict = guard.absent("u", Duration::from_secs(3600), start + Duration::from_secs(at));
                    let enough = absences.len() >= 6 && at - absences[0] >= 3600;
                    prop_assert_eq!(matches!(verdict, NameVerdict::Certain(_)), enough, "{:?}", absences);
                }
            }
        }
    }

    #[test]
    fn a_service_is_planned_without_a_panic(old in service(), new in service()) {
        let classes = Classes::default();
        prop_assert_eq!(needs_update(&new, &new, &classes), None);
        prop_assert!(!needs_sync(Some(&new), &new, &classes), "nothing has changed");
        let _ = (needs_sync(Some(&old), &new, &classes), service_view(&new), lenient_service_view(&new));
        let mut record = Record::new(std::sync::Arc::new(old), &classes);
        let _ = next_step(&record, Some(&new), &DatedSet::default());
        record.observe(std::sync::Arc::new(new));
        let _ = (next_step(&record, None, &DatedSet::default()), next_step(&record, Some(&record.service().clone()), &DatedSet::default()));
    }

    #[test]
    fn targets_are_a_set_of_eligible_nodes(nodes in nodes()) {
        let list = targets(&nodes);
        prop_assert_eq!(list.len(), TargetSet::of(&nodes).len());
        prop_assert_eq!(TargetSet::of(&nodes), TargetSet::of(nodes.iter().rev()), "the order does not count");
        prop_assert!(list.is_sorted_by(|left, right| left.node.name < right.node.name));
    }

    #[test]
    fn a_pause_never_shrinks_below_its_base(failures in 1..2000_u32) {
        let (now, grid) = (Instant::now(), Instant::now());
        for retry in [Retry::Backoff, Retry::Soon, Retry::Slowly] {
            let pause = Backoff::SERVICE.next(retry, failures, now, grid) - now;
            prop_assert!(pause <= Duration::from_secs(331));
            prop_assert!(pause >= Duration::from_secs(5) || (retry == Retry::Soon && failures == 1));
        }
    }
}

/// All Nodes have one range, all routes one destination, all routes many hops: whatever is compared with whatever else.
#[test]
fn a_route_plan_does_work_that_grows_with_its_lists() {
    let steps = |size: usize| {
        let crowd: Vec<Node> = (0..size)
            .map(|number| {
                let mut node = node(&format!("n{number}"), "True", &[]);
                node.spec.get_or_insert_default().pod_cidrs = Some(vec!["10.0.1.0/24".into()]);
                let address = |number: usize| NodeAddress {
                    type_: "InternalIP".into(),
                    address: format!("10.1.{}.{}", number / 256, number % 256),
                };
                node.status.get_or_insert_default().addresses = Some((0..20).map(address).collect());
                node
            })
            .collect();
        let route = |number: usize| Route {
            id: number.to_string(),
            destination: "10.0.1.0/24".into(),
            node: Some(format!("n{}", number % size.div_ceil(2))),
            next_hops: (0..20)
                .rev()
                .map(|hop| Address::new(AddressKind::InternalIP, format!("10.1.0.{hop}")))
                .collect(),
            blackhole: false,
        };
        let routes: Vec<Route> = (0..size).map(route).collect();
        steps_of(|| plan(&cluster(), &crowd, &routes))
    };
    let (small, large) = (steps(100), steps(1000));
    assert!(large <= small * 11, "{small} steps for 100, {large} for 1000");
}
