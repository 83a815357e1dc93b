use cloudwit_guest_sdk::cidr::parse;

use super::*;
use crate::balancers::clb::{Monitor, Node, Persistence, VirtualIp};

const LIMIT: usize = 25;

fn port(number: u16, nodes: &[&str]) -> WantedPort {
    WantedPort {
        port: number,
        protocol: "TCP",
        nodes: nodes
            .iter()
            .map(|address| ((*address).to_owned(), 30000 + number))
            .collect(),
    }
}

fn settings() -> Settings {
    Settings {
        name: "a1".into(),
        service: "default/web".into(),
        cluster: "lab".into(),
        source: Source::New { internal: false },
        families: vec![IpFamily::Ipv4],
        published: Vec::new(),
        algorithm: "ROUND_ROBIN",
        timeout: 30,
        sticky: false,
        access: Vec::new(),
        monitor: None,
    }
}

fn vip(id: u64, address: &str, kind: &str) -> VirtualIp {
    VirtualIp {
        id,
        address: address.parse().unwrap(),
        kind: kind.into(),
    }
}

/// A load balancer as [`port`] and [`settings`] describe it; the ids of its nodes count from 1.
fn clb(id: u64, port: &WantedPort) -> Clb {
    let nodes = port.nodes.iter().zip(1..).map(|((address, port), id)| Node {
        id,
        address: address.clone(),
        port: *port,
        condition: "ENABLED".into(),
    });
    Clb {
        id,
        port: port.port,
        protocol: port.protocol.into(),
        status: "ACTIVE".into(),
        algorithm: "ROUND_ROBIN".into(),
        timeout: 30,
        virtual_ips: vec![vip(7, "192.0.2.1", "PUBLIC")],
        nodes: nodes.collect(),
        ..Clb::default()
    }
}

fn of_status(id: u64, port: &WantedPort, status: &str) -> Clb {
    Clb {
        status: status.into(),
        ..clb(id, port)
    }
}

fn calls(plan: &Plan) -> Vec<String> {
    plan.changes
        .iter()
        .map(|change| format!("{} {}", change.method, change.path))
        .collect()
}

fn body(plan: &Plan) -> &Value {
    plan.changes[0].body.as_ref().unwrap()
}

fn plan(ports: &[WantedPort], settings: &Settings, found: &[Clb]) -> Plan {
    whole(ports, settings, found, LIMIT)
}

#[test]
fn first_load_balancer_gets_the_address_and_the_others_share_it() {
    let ports = [port(80, &["10.0.0.1"]), port(443, &["10.0.0.1"])];
    let first = plan(&ports, &settings(), &[]);
    assert_eq!(calls(&first), ["POST /loadbalancers"]);
    let expected = json!({ "loadBalancer": {
        "name": "a1", "port": 80, "protocol": "TCP", "algorithm": "ROUND_ROBIN", "timeout": 30,
        "virtualIps": [{ "type": "PUBLIC", "ipVersion": "IPV4" }],
        "nodes": [{ "address": "10.0.0.1", "port": 30080, "condition": "ENABLED" }],
        "metadata": [{ "key": "kubernetes-service", "value": "default/web" }, { "key": "kubernetes-cluster", "value": "lab" }],
    } });
    assert_eq!(body(&first), &expected);
    assert_eq!(first.addresses, [] as [IpAddr; 0]);

    let building = plan(&ports, &settings(), &[of_status(1, &ports[0], "BUILD")]);
    assert_eq!((calls(&building).len(), building.addresses.len()), (0, 0));
    assert_eq!(building.waiting.as_deref(), Some("load balancer 1 is BUILD"));

    let second = plan(&ports, &settings(), &[clb(1, &ports[0])]);
    assert_eq!(body(&second)["loadBalancer"]["port"], 443);
    assert_eq!(body(&second)["loadBalancer"]["virtualIps"], json!([{ "id": 7 }]));
    assert_eq!(second.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);

    let done = plan(&ports, &settings(), &[clb(1, &ports[0]), clb(2, &ports[1])]);
    assert_eq!((calls(&done).len(), done.waiting, done.broken), (0, None, None));
}

#[test]
fn everything_that_is_requested_is_in_the_first_request() {
    let mut settings = settings();
    settings.families = vec![IpFamily::Ipv4, IpFamily::Ipv6];
    settings.sticky = true;
    settings.monitor = Some(crate::config::BalancerConfig::default().monitor());
    let mut service = Service::new("default", "web", "u");
    service.source_ranges = vec![parse("10.0.0.0/8").unwrap().to_string()];
    settings.access = access::wanted(&service, &[IpFamily::Ipv4]).unwrap();
    let plan = plan(&[port(80, &[])], &settings, &[]);
    let made = &body(&plan)["loadBalancer"];
    assert_eq!(made["virtualIps"], json!([{ "type": "PUBLIC" }]));
    assert_eq!(made["sessionPersistence"], json!({ "persistenceType": "SOURCE_IP" }));
    let list = json!([{ "address": "10.0.0.0/8", "type": "ALLOW" }, { "address": "0.0.0.0/0", "type": "DENY" }]);
    assert_eq!(made["accessList"], list);
    let monitor = json!({ "type": "CONNECT", "delay": 10, "timeout": 5, "attemptsBeforeDeactivation": 3 });
    assert_eq!((&made["healthMonitor"], &made["nodes"]), (&monitor, &json!([])));
}

#[test]
fn settings_are_changed_one_at_a_time_and_who_may_connect_first() {
    let ports = [port(80, &["10.0.0.1"])];
    let mut found = clb(1, &ports[0]);
    let mut settings = settings();
    settings.sticky = true;
    settings.timeout = 60;
    settings.monitor = Some(crate::config::BalancerConfig::default().monitor());
    let mut service = Service::new("default", "web", "u");
    service.source_ranges = vec!["10.0.0.0/8".into()];
    settings.access = access::wanted(&service, &[IpFamily::Ipv4]).unwrap();
    let next = |found: &Clb| calls(&plan(&ports, &settings, std::slice::from_ref(found)));
    assert_eq!(next(&found), ["POST /loadbalancers/1/accesslist"]);
    found.access_list = [("10.0.0.0/8", "ALLOW"), ("0.0.0.0/0", "DENY")]
        .map(|(address, kind)| crate::balancers::clb::AccessItem {
            id: 5,
            address: address.into(),
            kind: kind.into(),
        })
        .into();
    assert_eq!(next(&found), ["PUT /loadbalancers/1/sessionpersistence"]);
    found.session_persistence = Some(Persistence {
        persistence_type: "SOURCE_IP".into(),
    });
    assert_eq!(next(&found), ["PUT /loadbalancers/1"]);
    found.timeout = 60;
    assert_eq!(next(&found), ["PUT /loadbalancers/1/healthmonitor"]);
    found.health_monitor = settings.monitor.clone();
    assert_eq!(next(&found), [""; 0]);

    // And back.
    let plain = super::tests::settings();
    let next = |found: &Clb| calls(&plan(&ports, &plain, std::slice::from_ref(found)));
    assert_eq!(next(&found), ["DELETE /loadbalancers/1/accesslist"]);
    found.access_list.clear();
    assert_eq!(next(&found), ["DELETE /loadbalancers/1/sessionpersistence"]);
    found.session_persistence = None;
    found.timeout = 30;
    assert_eq!(next(&found), ["DELETE /loadbalancers/1/healthmonitor"]);
}

#[test]
fn nodes_are_added_deleted_and_enabled_within_the_clouds_limits() {
    let names: Vec<String> = (0..25).map(|number| format!("10.0.0.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let next = |wanted: &WantedPort, found: &Clb| {
        let plan = nodes_only(std::slice::from_ref(wanted), std::slice::from_ref(found), LIMIT).unwrap();
        plan.changes.first().map(ToString::to_string)
    };
    let (none, all) = (port(80, &[]), port(80, &names));
    let added = nodes_only(std::slice::from_ref(&all), &[clb(1, &none)], LIMIT).unwrap();
    assert_eq!(body(&added)["nodes"].as_array().unwrap().len(), 10);
    let delete = "DELETE /loadbalancers/1/nodes?id=1&id=2&id=3&id=4&id=5&id=6&id=7&id=8&id=9&id=10";
    assert_eq!(next(&none, &clb(1, &all)).as_deref(), Some(delete));
    // It is full: what goes makes room.
    let other = port(80, &["10.1.0.1"]);
    assert_eq!(next(&other, &clb(1, &all)).as_deref(), Some(delete));

    let mut found = clb(1, &port(80, &["10.0.0.1", "10.0.0.2"]));
    let wanted = port(80, &["10.0.0.1", "10.0.0.2"]);
    assert_eq!(next(&wanted, &found), None);
    found.nodes[1].condition = "DRAINING".into();
    let enable = r#"PUT /loadbalancers/1/nodes/2 {"node":{"condition":"ENABLED"}}"#;
    assert_eq!(next(&wanted, &found).as_deref(), Some(enable));
    found.nodes[1].port = 1;
    let add = r#"POST /loadbalancers/1/nodes {"nodes":[{"address":"10.0.0.2","condition":"ENABLED","port":30080}]}"#;
    assert_eq!(
        next(&wanted, &found).as_deref(),
        Some(add),
        "another node port is another node"
    );
}

#[test]
fn ports_that_are_not_wanted_go_last_and_the_address_stays() {
    let (old, new) = (port(80, &[]), port(81, &[]));
    let found = [clb(1, &old)];
    let replaced = plan(std::slice::from_ref(&new), &settings(), &found);
    assert_eq!(calls(&replaced), ["POST /loadbalancers"]);
    assert_eq!(body(&replaced)["loadBalancer"]["virtualIps"], json!([{ "id": 7 }]));
    let built = [clb(1, &old), of_status(2, &new, "BUILD")];
    assert_eq!(calls(&plan(std::slice::from_ref(&new), &settings(), &built)), [""; 0]);
    let both = [clb(1, &old), clb(2, &new)];
    assert_eq!(
        calls(&plan(std::slice::from_ref(&new), &settings(), &both)),
        ["DELETE /loadbalancers/1"]
    );
    let leaving = [of_status(1, &old, "PENDING_DELETE"), clb(2, &new)];
    let waits = plan(&[new], &settings(), &leaving);
    assert_eq!(waits.waiting.as_deref(), Some("load balancer 1 is PENDING_DELETE"));
}

#[test]
fn other_address_kind_creates_new_balancer_before_deletion() {
    let ports = [port(80, &[])];
    let mut settings = settings();
    settings.source = Source::New { internal: true };
    let first = plan(&ports, &settings, &[clb(1, &ports[0])]);
    let vips = json!([{ "type": "SERVICENET", "ipVersion": "IPV4" }]);
    assert_eq!(body(&first)["loadBalancer"]["virtualIps"], vips);
    let inside = Clb {
        virtual_ips: vec![vip(8, "10.1.2.3", "SERVICENET")],
        ..clb(2, &ports[0])
    };
    let second = plan(&ports, &settings, &[clb(1, &ports[0]), inside]);
    assert_eq!(calls(&second), ["DELETE /loadbalancers/1"]);
    assert_eq!(second.addresses, ["10.1.2.3".parse::<IpAddr>().unwrap()]);
}

#[test]
fn an_address_of_the_account_is_shared() {
    let ports = [port(80, &[])];
    let mut settings = settings();
    settings.source = Source::Existing(vip(9, "192.0.2.9", "PUBLIC"));
    let first = plan(&ports, &settings, &[]);
    assert_eq!(body(&first)["loadBalancer"]["virtualIps"], json!([{ "id": 9 }]));
    let shared = Clb {
        virtual_ips: vec![vip(9, "192.0.2.9", "PUBLIC"), vip(10, "2001:db8::9", "PUBLIC")],
        ..clb(1, &ports[0])
    };
    let done = plan(&ports, &settings, &[shared]);
    assert_eq!((calls(&done).len(), done.addresses.len()), (0, 1));
}

#[test]
fn of_two_for_one_port_the_one_that_the_service_shows_stays() {
    let ports = [port(80, &[])];
    let twin = Clb {
        virtual_ips: vec![vip(8, "192.0.2.2", "PUBLIC")],
        ..clb(2, &ports[0])
    };
    let found = [clb(1, &ports[0]), twin];
    assert_eq!(calls(&plan(&ports, &settings(), &found)), ["DELETE /loadbalancers/2"]);
    let mut settings = settings();
    settings.published = vec!["192.0.2.2".parse().unwrap()];
    assert_eq!(calls(&plan(&ports, &settings, &found)), ["DELETE /loadbalancers/1"]);
}

#[test]
fn one_in_error_is_replaced_unless_it_served() {
    let ports = [port(80, &[])];
    let found = [of_status(1, &ports[0], "ERROR")];
    assert_eq!(calls(&plan(&ports, &settings(), &found)), ["DELETE /loadbalancers/1"]);
    let mut served = settings();
    served.published = vec!["192.0.2.1".parse().unwrap()];
    let broken = plan(&ports, &served, &found);
    assert_eq!(calls(&broken), [""; 0]);
    let failure = broken.broken.unwrap();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(
        failure.message().contains("load balancer 1 is in ERROR"),
        "{}",
        failure.message()
    );
    let nodes = nodes_only(&ports, &found, LIMIT).unwrap();
    assert!(nodes.broken.is_some());
    let suspended = plan(&ports, &settings(), &[of_status(1, &ports[0], "SUSPENDED")]);
    assert!(suspended.broken.unwrap().message().contains("SUSPENDED"));
}

#[test]
fn one_that_is_busy_delays_no_other() {
    let ports = [port(80, &["10.0.0.1"]), port(443, &["10.0.0.1"])];
    let empty = port(443, &[]);
    let found = [of_status(1, &ports[0], "PENDING_UPDATE"), clb(2, &empty)];
    let plan = plan(&ports, &settings(), &found);
    assert_eq!(calls(&plan), ["POST /loadbalancers/2/nodes"]);
    assert_eq!(plan.waiting.as_deref(), Some("load balancer 1 is PENDING_UPDATE"));
}

#[test]
fn nodes_of_a_port_without_load_balancer_are_not_found() {
    let ports = [port(80, &[]), port(443, &[])];
    let failure = nodes_only(&ports, &[clb(1, &ports[0])], LIMIT).unwrap_err();
    assert!(failure.is_not_found());
    let leaving = [of_status(1, &ports[0], "PENDING_DELETE")];
    assert!(nodes_only(&ports[..1], &leaving, LIMIT).is_err());
}

#[test]
fn a_monitor_that_was_changed_by_hand_is_changed_back() {
    let ports = [port(80, &[])];
    let mut settings = settings();
    settings.monitor = Some(crate::config::BalancerConfig::default().monitor());
    let other = Clb {
        health_monitor: settings.monitor.clone().map(|monitor| Monitor { delay: 11, ..monitor }),
        ..clb(1, &ports[0])
    };
    assert_eq!(
        calls(&plan(&ports, &settings, &[other])),
        ["PUT /loadbalancers/1/healthmonitor"]
    );
}
