use cloudwit_guest_sdk::testing::{FakeAnswer, assert_readme};
use serde_json::json;

use super::seen::{MONITORS, POOLS, SERVERS, SERVICES};
use super::*;
use crate::nsx::object::{has_tags, tag, tags, texts};
use crate::nsx::testing::{CONFIG, Manager, refused};

const UID: &str = "1bf6e8a3-6f0a-4d3e-9a3c-000000000001";
const ID: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";
const ADDRESSES: &str = "/infra/ip-pools/p-1/ip-allocations";
const OWNER: &str = "vsphere-cloud-controller-manager";

fn port(protocol: Protocol, port: u16, node_port: u16) -> ServicePort {
    ServicePort {
        name: None,
        protocol,
        port,
        node_port: Some(node_port),
        target_port: None,
        app_protocol: None,
    }
}

fn service() -> Service {
    let mut service = Service::new("default", "web", UID);
    service.ports = vec![port(Protocol::Tcp, 80, 30080)];
    service
}

fn target(name: &str, ip: &str) -> Target {
    let mut node = NodeRef::named(name);
    node.addresses = vec![Address::new(AddressKind::InternalIp, ip)];
    Target { node, ready: true }
}

fn two() -> Vec<Target> {
    vec![target("one", "10.0.0.1"), target("two", "10.0.0.2")]
}

fn address(balancer: &Balancer) -> &str {
    match &balancer.ingress[0].endpoint {
        Endpoint::Ip((ip, _)) => ip,
        other => panic!("{other:?}"),
    }
}

fn token(failure: Failure) -> String {
    match failure.kind {
        FailureKind::Pending(token) => token,
        other => panic!("{other:?}: {}", failure.message),
    }
}

/// Until nothing remains.
fn ensured(provider: &Vsphere, service: &Service, targets: &[Target]) -> Balancer {
    let mut token: Option<String> = None;
    for _ in 0..10 {
        match provider.ensure(service, targets, token.as_deref()) {
            Ok(Balancer {
                remaining: Some(work), ..
            }) => token = Some(work.token),
            Ok(balancer) => return balancer,
            Err(failure) => token = Some(self::token(failure)),
        }
    }
    panic!("it never ends");
}

#[test]
fn the_readme_has_the_annotation() {
    assert_readme(include_str!("../../../README.md"), &annotations::TABLE);
}

#[test]
fn balancer_is_upstreams_and_a_second_look_changes_nothing() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.10");
    let server = manager.one(SERVERS);
    assert_eq!(text(&server, "display_name"), "cluster:c1:default/web");
    assert_eq!(text(&server, "id"), format!("{ID}-tcp-80"));
    let scopes = [
        ("owner", OWNER),
        ("cluster", "c1"),
        ("service", "default/web"),
        ("port", "TCP/80"),
    ];
    assert!(
        has_tags(&server, &scopes) && has_tags(&server, &[("ippoolid", "p-1"), ("lbclass", "default"), ("team", "a")]),
        "{server}"
    );
    assert_eq!(
        (&server["ports"], &server["default_pool_member_ports"]),
        (&json!(["80"]), &json!(["30080"]))
    );
    assert_eq!(
        text(&server, "application_profile_path"),
        "/infra/lb-app-profiles/tcp-1"
    );
    let (pool, monitor, lb) = (manager.one(POOLS), manager.one(MONITORS), manager.one(SERVICES));
    assert_eq!(text(&server, "pool_path"), text(&pool, "path"));
    assert_eq!(
        texts(&pool, "active_monitor_paths").collect::<Vec<_>>(),
        [text(&monitor, "path")]
    );
    assert_eq!(
        (&monitor["monitor_port"], text(&pool["snat_translation"], "type")),
        (&json!(30080), "LBSnatAutoMap")
    );
    assert_eq!(text(&server, "lb_service_path"), text(&lb, "path"));
    assert_eq!(
        (
            text(&lb, "size"),
            text(&lb, "connectivity_path"),
            text(&lb, "display_name")
        ),
        ("SMALL", "/infra/tier-1s/t1", "cluster:c1")
    );
    assert_eq!(
        pool["members"][0],
        json!({ "admin_state": "ENABLED", "display_name": "c1:one", "ip_address": "10.0.0.1" })
    );
    assert!(has_tags(&manager.one(ADDRESSES), &scopes[..3]));
    assert_eq!(manager.changes().len(), 5);
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.10");
    assert_eq!(manager.changes(), [""; 0]);
    assert_eq!(address(&provider.get(&service()).unwrap().unwrap()), "192.0.2.10");
    let name = Vsphere::name(&host.context().cluster(), &service());
    assert_eq!(name, "cluster:c1:default/web");
}

#[test]
fn address_and_virtual_servers_are_waited_for() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.state("ip-allocations", "UNREALIZED");
    manager.state("lb-virtual-servers", "UNREALIZED");
    let waits = token(provider.ensure(&service(), &two(), None).unwrap_err());
    let waits = token(provider.ensure(&service(), &two(), Some(&waits)).unwrap_err());
    assert_eq!((manager.all(ADDRESSES).len(), manager.all(SERVERS).len()), (1, 0));
    manager.state("ip-allocations", "REALIZED");
    let balancer = provider.ensure(&service(), &two(), Some(&waits)).unwrap();
    assert_eq!(address(&balancer), "192.0.2.10", "it is reached before all is done");
    let waits = balancer.remaining.unwrap().token;
    manager.state("lb-virtual-servers", "ERROR");
    let failure = provider.ensure(&service(), &two(), Some(&waits)).unwrap_err();
    assert!(
        failure.kind == FailureKind::Other && failure.message.contains("no room"),
        "{failure:?}"
    );
    manager.state("lb-virtual-servers", "REALIZED");
    assert_eq!(
        provider.ensure(&service(), &two(), Some(&waits)).unwrap().remaining,
        None
    );
}

#[test]
fn pool_without_a_free_address_is_exhausted_and_nothing_is_left() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.state("ip-allocations", "ERROR");
    let failure = provider.ensure(&service(), &two(), None).unwrap_err();
    assert!(
        failure.kind == FailureKind::Exhausted && failure.message.contains("p-1"),
        "{failure:?}"
    );
    assert_eq!(manager.all(ADDRESSES).len() + manager.all(POOLS).len(), 0);
    let mut asks = service();
    asks.load_balancer_ip = Some("192.0.2.77".into());
    let failure = provider.ensure(&asks, &two(), None).unwrap_err();
    assert!(failure.message.contains("192.0.2.77"), "{failure:?}");
    manager.state("ip-allocations", "REALIZED");
    assert_eq!(address(&ensured(&provider, &asks, &two())), "192.0.2.77");
}

#[test]
fn used_address_counts_else_a_ready_one() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let own = tags([("owner", OWNER), ("cluster", "c1"), ("service", "default/web")]);
    for (id, ip) in [("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.3")] {
        manager.set(
            &format!("{ADDRESSES}/{id}"),
            json!({ "allocation_ip": ip, "tags": own }),
        );
    }
    manager.state("ip-allocations/a", "UNREALIZED");
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.2");
    let mut server = manager.one(SERVERS);
    server["ip_address"] = json!("192.0.2.3");
    manager.set(&format!("{SERVERS}/{ID}-tcp-80"), server);
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.3");
    provider.delete(&service(), None).unwrap();
    assert_eq!(manager.all(ADDRESSES), [Value::Null; 0], "all of them go");
}

#[test]
fn ports_protocols_and_node_ports_change() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    ensured(&provider, &service(), &two());
    let mut changed = service();
    changed.ports = vec![port(Protocol::Tcp, 80, 31000), port(Protocol::Udp, 53, 30053)];
    ensured(&provider, &changed, &two());
    let servers = manager.all(SERVERS);
    assert_eq!(servers.len(), 2);
    assert_eq!(servers[0]["default_pool_member_ports"], json!(["31000"]));
    assert_eq!(manager.one(MONITORS)["monitor_port"], json!(31000), "UDP has none");
    assert_eq!(
        text(&servers[1], "application_profile_path"),
        "/infra/lb-app-profiles/udp"
    );
    assert_eq!(text(&servers[0], "ip_address"), text(&servers[1], "ip_address"));
    changed.ports.remove(0);
    manager.changes();
    ensured(&provider, &changed, &two());
    let gone: Vec<String> = [SERVERS, POOLS, MONITORS]
        .map(|kind| format!("DELETE {kind}/{ID}-tcp-80"))
        .into();
    assert_eq!(manager.changes(), gone, "in this order");
}

#[test]
fn members_follow_nodes_and_what_was_set_by_hand_stays() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    ensured(&provider, &service(), &two());
    let mut pool = manager.one(POOLS);
    pool["members"][0]["weight"] = json!(7);
    pool["algorithm"] = json!("LEAST_CONNECTION");
    manager.set(&format!("{POOLS}/{ID}-tcp-80"), pool);
    manager.changes();
    let targets = [target("one", "10.0.0.1"), target("three", "10.0.0.3")];
    provider.update_targets(&service(), &targets, None).unwrap();
    let pool = manager.one(POOLS);
    assert_eq!(
        (&pool["members"][0]["weight"], &pool["algorithm"]),
        (&json!(7), &json!("LEAST_CONNECTION"))
    );
    let ips: Vec<&Value> = pool["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["ip_address"])
        .collect();
    assert_eq!(ips, ["10.0.0.1", "10.0.0.3"]);
    assert_eq!(manager.changes().len(), 1);
    provider.update_targets(&service(), &targets, None).unwrap();
    assert_eq!(manager.changes(), [""; 0]);
    let other = Service::new("default", "other", "2");
    assert!(
        provider
            .update_targets(&other, &targets, None)
            .unwrap_err()
            .is_not_found()
    );
    let update = |service: Service| TargetUpdate { service, token: None };
    let results = provider
        .update_targets_of(&[update(service()), update(other)], &two())
        .unwrap();
    assert!(results[0].is_ok() && results[1].is_err());
    let lists = host
        .requests()
        .iter()
        .filter(|request| request.url.contains("/lb-pools?"))
        .count();
    assert_eq!(lists, 5, "ensure, three updates alone, and one for many");
}

#[test]
fn what_upstream_made_is_taken_over_as_it_is() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let own = |more: &[(&'static str, &'static str)]| {
        let scopes = [("owner", OWNER), ("cluster", "c1"), ("service", "default/web")];
        tags(scopes.into_iter().chain(more.iter().copied()))
    };
    let of_port = own(&[("port", "TCP/80")]);
    manager.set(
        &format!("{MONITORS}/m"),
        json!({ "resource_type": "LBTcpMonitorProfile", "monitor_port": 30080, "tags": of_port }),
    );
    let members = json!([{ "ip_address": "10.0.0.1" }, { "ip_address": "10.0.0.2" }]);
    manager.set(
        &format!("{POOLS}/p"),
        json!({ "members": members, "active_monitor_paths": [format!("{MONITORS}/m")], "tags": of_port }),
    );
    manager.set(&format!("{ADDRESSES}/i"), json!({ "tags": own(&[]) }));
    manager.set(
        &format!("{SERVICES}/l"),
        json!({ "connectivity_path": "/infra/tier-1s/t1" }),
    );
    let server = json!({
        "ip_address": "192.0.2.10", "ports": ["80"], "default_pool_member_ports": ["30080"], "pool_path": format!("{POOLS}/p"),
        "application_profile_path": "/infra/lb-app-profiles/tcp-1", "lb_service_path": format!("{SERVICES}/l"), "enabled": false,
        "tags": own(&[("port", "TCP/80"), ("ippoolid", "p-1"), ("lbclass", "default")]),
    });
    manager.set(&format!("{SERVERS}/v"), server);
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.10");
    assert_eq!(manager.changes(), [""; 0]);
    provider.delete(&service(), None).unwrap();
    let order = [
        format!("{SERVERS}/v"),
        format!("{POOLS}/p"),
        format!("{MONITORS}/m"),
        format!("{ADDRESSES}/i"),
    ];
    assert_eq!(
        manager.changes(),
        order.map(|path| format!("DELETE {path}")),
        "the service is not the cluster's"
    );
}

#[test]
fn classes_have_own_pools_and_change_keeps_the_address() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let mut inside = service();
    inside.annotations = vec![Pair::new("loadbalancer.vmware.io/class", "inside")];
    ensured(&provider, &inside, &two());
    assert_eq!(manager.all("/infra/ip-pools/private/ip-allocations").len(), 1);
    assert_eq!(tag(&manager.one(SERVERS), "lbclass"), Some("inside"));
    ensured(&provider, &service(), &two());
    assert_eq!(manager.all(ADDRESSES).len(), 0);
    assert_eq!(host.events()[0].reason, "LoadBalancerClassKept");
    let mut unknown = service();
    unknown.annotations = vec![Pair::new("loadbalancer.vmware.io/class", "gold")];
    let failure = provider.ensure(&unknown, &two(), None).unwrap_err();
    assert!(
        failure.kind == FailureKind::Invalid && failure.message.contains("default, inside"),
        "{failure:?}"
    );
    provider.delete(&unknown, None).unwrap();
    for collection in [
        SERVERS,
        POOLS,
        MONITORS,
        SERVICES,
        "/infra/ip-pools/private/ip-allocations",
    ] {
        assert_eq!(
            manager.all(collection),
            [Value::Null; 0],
            "a class that is gone does not keep it"
        );
    }
}

#[test]
fn service_of_the_gateway_stays_while_others_need_it() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let other = Service {
        ports: vec![port(Protocol::Tcp, 443, 30443)],
        ..Service::new("default", "other", "2")
    };
    ensured(&provider, &service(), &two());
    ensured(&provider, &other, &two());
    provider.delete(&service(), None).unwrap();
    assert_eq!((manager.all(SERVICES).len(), manager.all(SERVERS).len()), (1, 1));
    // Another virtual server was created first.
    manager.fails(
        "DELETE",
        "lb-services",
        refused(400, 500030, "it is being referenced by other objects"),
    );
    provider.delete(&other, None).unwrap();
    assert_eq!(manager.all(SERVICES).len(), 1);
    provider.delete(&other, None).unwrap();
    assert_eq!(manager.all(SERVICES).len(), 0);
}

#[test]
fn conflicts_are_planned_anew_and_refusals_tried_again() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    manager.fails("PUT", "lb-pools", refused(412, 604, "modified by somebody else"));
    let waits = token(provider.ensure(&service(), &two(), None).unwrap_err());
    manager.fails("PUT", "lb-virtual-servers", refused(400, 500045, "marked for deletion"));
    let failure = provider.ensure(&service(), &two(), Some(&waits)).unwrap_err();
    assert_eq!(
        (failure.kind, failure.code.as_deref()),
        (FailureKind::FailedPrecondition, Some("500045"))
    );
    // The answer is lost: it is seen next time.
    manager.fails("PUT", "lb-virtual-servers", FakeAnswer::breaks());
    assert_eq!(
        provider.ensure(&service(), &two(), None).unwrap_err().kind,
        FailureKind::Unavailable
    );
    ensured(&provider, &service(), &two());
    assert_eq!((manager.all(POOLS).len(), manager.all(ADDRESSES).len()), (1, 1));
}

#[test]
fn what_was_deleted_by_others_comes_back_with_its_address() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    ensured(&provider, &service(), &two());
    manager.remove(&format!("{SERVERS}/{ID}-tcp-80"));
    manager.remove(&format!("{MONITORS}/{ID}-tcp-80"));
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.10");
    assert_eq!((manager.all(SERVERS).len(), manager.all(MONITORS).len()), (1, 1));
    // The virtual server has an address that is allocated no more.
    manager.remove(&format!("{ADDRESSES}/{ID}"));
    ensured(&provider, &service(), &two());
    assert_eq!(text(&manager.one(ADDRESSES), "allocation_ip"), "192.0.2.10");
    manager.remove(&format!("{ADDRESSES}/{ID}"));
    manager.state("ip-allocations", "ERROR");
    assert_eq!(address(&ensured(&provider, &service(), &two())), "192.0.2.10");
    assert_eq!(host.events()[0].reason, "AddressNotAllocated");
}

#[test]
fn dry_run_changes_nothing_and_deleting_nothing_succeeds() {
    let (host, manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    provider.delete(&service(), None).unwrap();
    assert_eq!(provider.get(&service()), Ok(None));
    host.dry_run();
    let failure = provider.ensure(&service(), &two(), None).unwrap_err();
    assert!(failure.message.starts_with("dry run: would change"), "{failure:?}");
    assert_eq!(manager.changes(), [""; 0]);
}

#[test]
fn what_nsx_does_not_do_for_a_service_is_told_once() {
    let (host, _manager) = Manager::start(CONFIG);
    let provider: Vsphere = host.provider();
    let mut service = service();
    service.source_ranges = vec!["10.0.0.0/8".into()];
    service.session_affinity_seconds = Some(10_800);
    service.annotations = vec![Pair::new("loadbalancer.vmware.io/klass", "x")];
    ensured(&provider, &service, &two());
    let reasons: Vec<String> = host.events().into_iter().map(|event| event.reason).collect();
    assert_eq!(
        reasons,
        ["UnknownAnnotation", "SourceRangesIgnored", "SessionAffinityIgnored"]
    );
}

#[test]
fn a_given_service_is_used_and_checked() {
    let config = CONFIG.replace("tier1GatewayPath: /infra/tier-1s/t1\n", "lbServiceId: l1\n");
    let (host, manager) = Manager::start(&config);
    let provider: Vsphere = host.provider();
    let failure = provider.ensure(&service(), &two(), None).unwrap_err();
    assert!(
        failure.kind == FailureKind::FailedPrecondition && failure.message.contains("\"l1\""),
        "{failure:?}"
    );
    manager.set(
        &format!("{SERVICES}/l1"),
        json!({ "connectivity_path": "/infra/tier-1s/t9" }),
    );
    ensured(&provider, &service(), &two());
    provider.delete(&service(), None).unwrap();
    assert_eq!(manager.all(SERVICES).len(), 1, "it is not the cluster's");
}
