//! From what Octavia shows (as it was recorded) to the next change, and that the changes end.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::*;
use crate::balancers::annotations::{Asked, Checks};
use crate::balancers::octavia::Member;
use crate::balancers::octavia::features::Features;
use crate::balancers::wanted::Inputs;
use crate::recorded::{file, json};

const NAME: &str = "kube_service_kubernetes_default_web";

/// What a test changes of the Service and of what it requests.
struct Case<'a> {
    service: Service,
    asked: Asked<'a>,
    targets: Vec<Target>,
    serial: bool,
}

fn target(name: &str, address: &str) -> Target {
    let mut node = NodeRef::named(name);
    node.addresses = vec![Address::new(AddressKind::InternalIp, address)];
    Target { node, ready: true }
}

/// The Service for which the recorded load balancer was made.
fn case() -> Case<'static> {
    let member = &json(file!("members"))["members"][0];
    let mut service = Service::new("default", "web", "u-1");
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    }];
    service.ip_families = vec![IpFamily::Ipv4];
    service.traffic_policy = TrafficPolicy::Local;
    service.health_check_node_port = Some(31_000);
    let asked = Asked {
        connection_limit: -1,
        method: "ROUND_ROBIN",
        timeouts: [50_000, 5_000, 50_000, 0],
        checks: Some(Checks {
            delay: 5,
            timeout: 3,
            max_retries: 1,
            max_retries_down: 3,
        }),
        ..Asked::default()
    };
    Case {
        service,
        asked,
        targets: vec![target("node-1", member["address"].as_str().unwrap())],
        serial: false,
    }
}

fn read<T>(file: &str, read: impl Fn(&Value) -> crate::api::wire::Read<T>) -> T {
    let text = cloudwit_guest_sdk::testing::recorded(file);
    read(&serde_json::from_str::<Value>(text).unwrap()).unwrap()
}

/// What was recorded.
fn shown() -> (LoadBalancer, Tree) {
    use crate::api::wire::Fields;
    let balancer = read(file!("balancer"), |json| {
        LoadBalancer::read(json.need_field("loadbalancer")?)
    });
    let listeners = read(file!("listeners"), |json| {
        json.items("listeners").iter().map(Listener::read).collect()
    });
    let mut pools: Vec<Pool> = read(file!("pools"), |json| {
        json.items("pools").iter().map(Pool::read).collect()
    });
    pools[0].members = read(file!("members"), |json| {
        json.items("members").iter().map(Member::read).collect()
    });
    pools[0].monitor = Some(read(file!("monitor"), |json| {
        Monitor::read(json.need_field("healthmonitor")?)
    }));
    (*balancer, Tree { listeners, pools })
}

impl Case<'_> {
    fn next(&self, balancer: &LoadBalancer, tree: &Tree) -> Option<String> {
        self.next_as(&Claim::new(NAME, &self.service, balancer, true), balancer, tree)
    }

    fn next_as(&self, claim: &Claim, balancer: &LoadBalancer, tree: &Tree) -> Option<String> {
        let targets: Vec<&Target> = self.targets.iter().collect();
        let wanted = Wanted::new(&Inputs {
            service: &self.service,
            targets: &targets,
            asked: &self.asked,
            features: Features::of((2, 30), false),
            name: NAME,
            member_subnet_id: Some("subnet-1"),
        });
        let wanted = wanted.unwrap();
        let plan = Plan {
            wanted: &wanted,
            claim,
            serial: self.serial,
            tags: true,
            whole: true,
        };
        let (listener, pool) = (
            &tree.listeners.first()?.id,
            tree.pools.first().map(|pool| pool.id.as_str()),
        );
        let text = plan.next(balancer, tree)?.to_string();
        let monitor = tree.pools.first().map_or("-", |pool| pool.monitor_id.as_str());
        let text = text
            .replace(listener, "L")
            .replace(&balancer.id, "B")
            .replace(pool.unwrap_or("-"), "P");
        Some(
            text.replace(if monitor.is_empty() { "-none-" } else { monitor }, "M")
                .replace("/v2.0/lbaas/", ""),
        )
    }
}

/// The next change for the recorded load balancer after the Service was changed.
fn after(change: impl FnOnce(&mut Case<'_>)) -> String {
    let mut case = case();
    change(&mut case);
    let (balancer, tree) = shown();
    case.next(&balancer, &tree).unwrap_or_default()
}

#[test]
fn what_upstream_made_needs_no_change() {
    assert_eq!(after(|_| {}), "");
}

#[test]
fn only_what_differs_of_a_listener_is_changed() {
    assert_eq!(
        after(|case| case.asked.connection_limit = 9),
        "PUT listeners/L {\"listener\":{\"connection_limit\":9}}"
    );
    assert_eq!(
        after(|case| case.asked.timeouts = [1, 5_000, 2, 0]),
        "PUT listeners/L {\"listener\":{\"timeout_client_data\":1,\"timeout_member_data\":2}}"
    );
    assert_eq!(
        after(|case| case.service.source_ranges = vec!["10.0.0.0/8".into(), "192.0.2.0/24".into()]),
        "PUT listeners/L {\"listener\":{\"allowed_cidrs\":[\"10.0.0.0/8\",\"192.0.2.0/24\"]}}"
    );
}

#[test]
fn ranges_in_another_order_are_the_same() {
    let mut case = case();
    case.service.source_ranges = vec!["10.0.0.0/8".into(), "192.0.2.0/24".into()];
    let (balancer, mut tree) = shown();
    tree.listeners[0].allowed_cidrs = vec!["192.0.2.0/24".into(), "10.0.0.0/8".into()];
    assert_eq!(case.next(&balancer, &tree), None);
}

#[test]
fn headers_of_others_stay_when_ours_comes_and_goes() {
    let (balancer, mut tree) = shown();
    let mut case = case();
    tree.listeners[0].protocol = "HTTP".into();
    tree.pools[0].protocol = "HTTP".into();
    tree.listeners[0].insert_headers = vec![("X-Forwarded-Port".into(), "true".into())];
    case.asked.forwarded_for = true;
    assert_eq!(
        case.next(&balancer, &tree).unwrap(),
        "PUT listeners/L {\"listener\":{\"insert_headers\":{\"X-Forwarded-For\":\"true\",\"X-Forwarded-Port\":\"true\"}}}"
    );
    tree.listeners[0]
        .insert_headers
        .push(("X-Forwarded-For".into(), "true".into()));
    assert_eq!(case.next(&balancer, &tree), None);
}

#[test]
fn listener_of_other_protocol_goes_with_its_pool_first() {
    let (balancer, mut tree) = shown();
    let mut case = case();
    case.asked.forwarded_for = true;
    assert_eq!(case.next(&balancer, &tree).unwrap(), "DELETE pools/P");
    tree.pools.clear();
    assert_eq!(case.next(&balancer, &tree).unwrap(), "DELETE listeners/L");
}

#[test]
fn new_port_gets_listener_pool_members_monitor_in_order() {
    let (balancer, mut tree) = shown();
    let case = case();
    let whole = tree.clone();
    tree.pools[0].monitor = None;
    tree.pools[0].monitor_id.clear();
    let next = case.next(&balancer, &tree).unwrap();
    assert!(
        next.starts_with("POST healthmonitors {\"healthmonitor\":{") && next.contains("\"pool_id\":\"P\""),
        "{next}"
    );
    tree.pools[0].members.clear();
    let next = case.next(&balancer, &tree).unwrap();
    assert!(
        next.starts_with("PUT pools/P/members {\"members\":[{") && next.contains("\"name\":\"node-1\""),
        "{next}"
    );
    assert!(
        next.contains("\"subnet_id\":\"subnet-1\"") && next.contains("\"monitor_port\":31000"),
        "{next}"
    );
    tree.pools.clear();
    let next = case.next(&balancer, &tree).unwrap();
    assert!(
        next.starts_with("POST pools {\"pool\":{") && next.contains("\"listener_id\":\"L\""),
        "{next}"
    );
    tree.listeners[0].port = 81;
    let next = case.next(&balancer, &tree).unwrap();
    assert!(
        next.starts_with("POST listeners {\"listener\":{") && next.contains("\"name\":\"listener_0_"),
        "{next}"
    );
    assert!(
        next.contains("\"tags\":[\"kube_service_kubernetes_default_web\"]")
            && next.contains("\"loadbalancer_id\":\"B\""),
        "{next}"
    );
    assert_eq!(case.next(&balancer, &whole), None);
}

#[test]
fn port_that_is_gone_goes_last() {
    let mut case = case();
    let (balancer, mut tree) = shown();
    tree.listeners.push(Listener {
        id: "old".into(),
        port: 81,
        protocol: "TCP".into(),
        tags: vec![NAME.into()],
        pool_id: "old-pool".into(),
        ..Listener::default()
    });
    tree.pools.push(Pool {
        id: "old-pool".into(),
        listeners: vec!["old".into()],
        ..Pool::default()
    });
    assert_eq!(case.next(&balancer, &tree).unwrap(), "DELETE pools/old-pool");
    tree.pools.pop();
    assert_eq!(case.next(&balancer, &tree).unwrap(), "DELETE listeners/old");
    case.asked.connection_limit = 1;
    assert!(case.next(&balancer, &tree).unwrap().starts_with("PUT"));
    tree.listeners[1].tags = vec!["kube_service_kubernetes_default_api".into()];
    case.asked.connection_limit = -1;
    assert_eq!(case.next(&balancer, &tree), None, "another Service's listener stays");
}

#[test]
fn pool_that_is_shared_stays_when_its_listener_goes() {
    let (balancer, mut tree) = shown();
    tree.pools[0].listeners.push("another".into());
    let mut case = case();
    case.asked.forwarded_for = true;
    assert_eq!(case.next(&balancer, &tree).unwrap(), "DELETE listeners/L");
}

#[test]
fn pools_are_changed_or_made_anew_for_another_protocol() {
    assert_eq!(
        after(|case| case.asked.method = "SOURCE_IP"),
        "PUT pools/P {\"pool\":{\"lb_algorithm\":\"SOURCE_IP\"}}"
    );
    assert_eq!(
        after(|case| case.service.session_affinity_seconds = Some(1)),
        "PUT pools/P {\"pool\":{\"session_persistence\":{\"type\":\"SOURCE_IP\"}}}"
    );
    assert_eq!(
        after(|case| case.asked.proxy_protocol = Some("PROXY")),
        "DELETE pools/P"
    );
    let (balancer, mut tree) = shown();
    tree.pools[0].persistence = "SOURCE_IP".into();
    assert_eq!(
        case().next(&balancer, &tree).unwrap(),
        "PUT pools/P {\"pool\":{\"session_persistence\":null}}"
    );
}

#[test]
fn monitors_are_changed_removed_or_made_anew_for_another_type() {
    assert!(
        after(|case| case.asked.checks.as_mut().unwrap().delay = 9)
            .starts_with("PUT healthmonitors/M {\"healthmonitor\":{\"delay\":9,")
    );
    assert_eq!(
        after(|case| case.asked.checks = None).split(' ').next(),
        Some("PUT"),
        "members lose their monitor port first"
    );
    let (balancer, mut tree) = shown();
    let mut unchecked = case();
    unchecked.asked.checks = None;
    tree.pools[0].members[0].monitor_port = None;
    assert_eq!(unchecked.next(&balancer, &tree).unwrap(), "DELETE healthmonitors/M");
    let mut cluster = case();
    cluster.service.traffic_policy = TrafficPolicy::Cluster;
    assert_eq!(cluster.next(&balancer, &tree).unwrap(), "DELETE healthmonitors/M");
}

#[test]
fn members_are_replaced_all_at_once_or_one_by_one() {
    let all = after(|case| case.targets.push(target("node-2", "10.1.0.2")));
    assert!(
        all.starts_with("PUT pools/P/members") && all.contains("node-1") && all.contains("node-2"),
        "{all}"
    );
    assert_eq!(
        after(|case| case.targets.clear()),
        "PUT pools/P/members {\"members\":[]}"
    );
    let one = after(|case| {
        case.serial = true;
        case.targets.push(target("node-2", "10.1.0.2"));
    });
    assert!(
        one.starts_with("POST pools/P/members {\"member\":{") && one.contains("\"name\":\"node-2\""),
        "{one}"
    );
    let gone = after(|case| {
        case.serial = true;
        case.targets = vec![target("node-2", "10.1.0.2")];
    });
    let id = json(file!("members"))["members"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(gone, format!("DELETE pools/P/members/{id}"));
}

#[test]
fn our_tag_comes_before_everything_else() {
    let (mut balancer, tree) = shown();
    balancer.tags = vec!["mine".into()];
    let mut case = case();
    case.asked.connection_limit = 1;
    assert_eq!(
        case.next(&balancer, &tree).unwrap(),
        "PUT loadbalancers/B {\"loadbalancer\":{\"tags\":[\"mine\",\"kube_service_kubernetes_default_web\"]}}"
    );
}

#[test]
fn former_cluster_names_are_renamed_leaves_first() {
    let old = "kube_service_old_default_web";
    let rename = |name: &mut String| *name = name.replace(NAME, old);
    let (mut balancer, mut tree) = shown();
    rename(&mut balancer.name);
    rename(&mut balancer.tags[0]);
    rename(&mut tree.listeners[0].name);
    rename(&mut tree.listeners[0].tags[0]);
    rename(&mut tree.pools[0].name);
    rename(&mut tree.pools[0].monitor.as_mut().unwrap().name);
    let case = case();
    let mut made = Vec::new();
    let claim = Claim::new(NAME, &case.service, &balancer, true);
    while let Some(change) = case.next_as(&claim, &balancer, &tree) {
        made.push(change.split(' ').nth(1).unwrap().to_owned());
        match made.last().unwrap().as_str() {
            "healthmonitors/M" => tree.pools[0].monitor.as_mut().unwrap().name = format!("monitor_0_{NAME}"),
            "pools/P" => tree.pools[0].name = format!("pool_0_{NAME}"),
            "listeners/L" if change.contains("tags") => tree.listeners[0].tags = vec![NAME.into()],
            "listeners/L" => tree.listeners[0].name = format!("listener_0_{NAME}"),
            _ => break,
        }
        assert!(made.len() < 9, "{made:?}");
    }
    assert_eq!(
        made,
        [
            "listeners/L",
            "healthmonitors/M",
            "pools/P",
            "listeners/L",
            "loadbalancers/B"
        ]
    );
    balancer.name = NAME.into();
    balancer.tags = vec![NAME.into()];
    assert_eq!(case.next(&balancer, &tree), None);
}

#[test]
fn leaving_a_shared_load_balancer_takes_listeners_then_the_tag() {
    let (mut balancer, mut tree) = shown();
    balancer.tags.push("kube_service_kubernetes_default_api".into());
    let claim = Claim::new(NAME, &case().service, &balancer, true);
    let next = |balancer: &LoadBalancer, tree: &Tree, all| {
        next_removal(&claim, balancer, tree, all).map(|change| change.to_string())
    };
    let (pool, listener) = (tree.pools[0].id.clone(), tree.listeners[0].id.clone());
    assert_eq!(
        next(&balancer, &tree, false).unwrap(),
        format!("DELETE /v2.0/lbaas/pools/{pool}")
    );
    tree.pools.clear();
    assert_eq!(
        next(&balancer, &tree, false).unwrap(),
        format!("DELETE /v2.0/lbaas/listeners/{listener}")
    );
    tree.listeners[0].tags = vec!["kube_service_kubernetes_default_api".into()];
    let untag = next(&balancer, &tree, false).unwrap();
    assert!(
        untag.ends_with("{\"loadbalancer\":{\"tags\":[\"kube_service_kubernetes_default_api\"]}}"),
        "{untag}"
    );
    balancer.tags.remove(0);
    assert_eq!(next(&balancer, &tree, false), None);
    assert!(next(&balancer, &tree, true).is_some(), "all means all");
}
