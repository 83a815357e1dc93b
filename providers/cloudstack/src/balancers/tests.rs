use cloudwit_guest_sdk::testing::assert_readme;
use serde_json::{Value, json};

use super::address::{Choice, choose, is_own};
use super::seen::{Address, NAMED_TAG, Opening, SERVICE_TAG, Tag};
use super::*;
use crate::api::Call;
use crate::testing::{commands, host, provider, refused, said};

const UID: &str = "1bf6e8a3-6f0a-4d3e-9a3c-000000000001";
const NAME: &str = "a1bf6e8a36f0a4d3e9a3c00000000000";

fn service() -> Service {
    let mut service = Service::new("default", "web", UID);
    service.ports = vec![ServicePort {
        name: None,
        protocol: Protocol::Tcp,
        port: 80,
        node_port: Some(30080),
        target_port: None,
        app_protocol: None,
    }];
    service
}

fn annotated(pairs: &[(&str, &str)]) -> Service {
    let pairs = pairs.iter().map(|(key, value)| Pair::new(TABLE.key(key), *value));
    Service {
        annotations: pairs.collect(),
        ..service()
    }
}

fn target(id: &str) -> Target {
    Target {
        node: NodeRef::named(id).with_provider_id(format!("external-cloudstack://{id}")),
        ready: true,
    }
}

fn wanted(service: &Service) -> Wanted<'_> {
    Wanted::new(service, annotations::read(service).unwrap(), &[target("vm-1")]).unwrap()
}

fn rule() -> Rule {
    Rule {
        id: "r-1".into(),
        name: format!("{NAME}-tcp-80"),
        publicip: "192.0.2.1".into(),
        publicipid: "ip-1".into(),
        publicport: "80".into(),
        privateport: "30080".into(),
        algorithm: "roundrobin".into(),
        protocol: "tcp".into(),
        cidrlist: "0.0.0.0/0".into(),
        networkid: "n-1".into(),
        state: "Active".into(),
    }
}

fn address(id: &str, ip: &str) -> Address {
    Address {
        id: id.into(),
        ipaddress: ip.into(),
        allocated: Some("2026-01-01".into()),
        state: "Allocated".into(),
        ..Address::default()
    }
}

fn tagged(id: &str, ip: &str, tags: &[(&str, &str)]) -> Address {
    let tags = tags.iter().map(|(key, value)| Tag {
        key: (*key).into(),
        value: (*value).into(),
    });
    Address {
        tags: tags.collect(),
        ..address(id, ip)
    }
}

fn opening(id: &str, port: &str, cidrs: &str, reason: Option<&str>) -> Opening {
    Opening {
        id: id.into(),
        protocol: "tcp".into(),
        startport: port.into(),
        endport: port.into(),
        cidrlist: cidrs.into(),
        action: "Allow".into(),
        traffictype: "Ingress".into(),
        reason: reason.map(str::to_owned),
    }
}

fn texts(calls: &[Call]) -> Vec<String> {
    calls.iter().map(Call::text).collect()
}

#[test]
fn the_readme_has_the_annotations() {
    assert_readme(include_str!("../../README.md"), &TABLE);
}

#[test]
fn names_of_rules_are_upstreams() {
    let mut all = annotated(&[("proxy-protocol", "true")]);
    all.ports.push(ServicePort {
        protocol: Protocol::Udp,
        port: 53,
        ..all.ports[0].clone()
    });
    let wanted = wanted(&all);
    let names: Vec<&str> = wanted.ports.iter().map(|port| port.rule.as_str()).collect();
    assert_eq!(names, [format!("{NAME}-tcp-proxy-80"), format!("{NAME}-udp-53")]);
    assert_eq!(wanted.ports[0].protocol, "tcp", "as the firewall knows it");
}

#[test]
fn what_cloudstack_does_not_have_is_reported_together() {
    let mut odd = service();
    odd.ip_families = vec![IpFamily::Ipv6];
    odd.ports[0].node_port = None;
    odd.ports.push(ServicePort {
        protocol: Protocol::Sctp,
        ..odd.ports[0].clone()
    });
    let failure = Wanted::new(&odd, annotations::read(&odd).unwrap(), &[]).unwrap_err();
    for part in ["IPv4", "port 80 has no node port", "SCTP"] {
        assert!(failure.message.contains(part), "{failure:?}");
    }
    let mut v6 = service();
    v6.source_ranges = vec!["fd00::/8".into()];
    let failure = Wanted::new(&v6, annotations::read(&v6).unwrap(), &[]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid, "it must not be opened to all");
    let odd = annotated(&[("proxy-protocol", "maybe"), ("source-cidrs", "10.0.0.0/33")]);
    let told = annotations::read(&odd).unwrap_err().message;
    assert!(told.contains("maybe") && told.contains("10.0.0.0/33"), "{told}");
}

#[test]
fn an_address_is_named_marked_or_new() {
    let known = [
        tagged("ip-1", "192.0.2.1", &[(SERVICE_TAG, UID)]),
        address("ip-2", "192.0.2.2"),
    ];
    let free = Address {
        allocated: None,
        state: "Free".into(),
        ..address("ip-3", "192.0.2.3")
    };
    let of = |ip, rules: &[Rule], known: &[Address]| -> String {
        match choose(ip, UID, rules, known) {
            Ok(Choice::Use(address)) => address.id.clone(),
            Ok(Choice::Associate(ip)) => format!("associate {ip:?}"),
            Err(failure) => failure.message,
        }
    };
    assert_eq!(of(None, &[], &known), "ip-1", "marked before a process died");
    assert_eq!(of(None, &[], &known[1..]), "associate None");
    let mut moved = rule();
    moved.publicipid = "ip-2".into();
    assert_eq!(of(None, &[moved.clone()], &known), "ip-2", "where its rules are");
    assert_eq!(of(Some("192.0.2.1"), &[moved], &known), "ip-1");
    assert_eq!(of(Some("192.0.2.3"), &[], &[free]), "associate Some(\"192.0.2.3\")");
    assert!(of(Some("192.0.2.9"), &[], &known).contains("no public address"));
    let nat = Address {
        isstaticnat: true,
        ..address("ip-4", "192.0.2.4")
    };
    assert!(of(Some("192.0.2.4"), &[], &[nat]).contains("static NAT"));
}

#[test]
fn whose_an_address_is_follows_upstream() {
    let plain = address("ip-1", "192.0.2.1");
    let named = tagged("ip-1", "192.0.2.1", &[(SERVICE_TAG, UID), (NAMED_TAG, "named")]);
    let nat = Address {
        issourcenat: true,
        ..plain.clone()
    };
    let (this, other) = (Some("192.0.2.1"), Some("192.0.2.9"));
    let another = tagged("ip-1", "192.0.2.1", &[(SERVICE_TAG, "another")]);
    for (address, ip, associated, own) in [
        (&another, None, None, false),
        (&plain, None, None, true),
        (&plain, other, None, true),
        (&plain, this, None, false),
        (&plain, this, Some(true), true),
        (&plain, None, Some(false), false),
        (&named, this, None, true),
        (&named, this, Some(false), false),
        (&nat, None, Some(true), false),
    ] {
        assert_eq!(
            is_own(address, UID, ip, associated),
            own,
            "{address:?} {ip:?} {associated:?}"
        );
    }
}

#[test]
fn the_annotation_is_about_the_published_address() {
    let mut service = annotated(&[(ASSOCIATED, "true")]);
    let (this, marked) = (
        address("ip-1", "192.0.2.1"),
        tagged("ip-1", "192.0.2.1", &[(SERVICE_TAG, UID)]),
    );
    let said = annotations::associated;
    assert_eq!(
        (said(&service, &this), said(&service, &marked)),
        (None, Some(true)),
        "nothing is published"
    );
    service.ingress = vec![Ingress::ip("192.0.2.1")];
    assert_eq!(said(&service, &this), Some(true));
    service.ingress = vec![Ingress::ip("192.0.2.9")];
    assert_eq!(said(&service, &this), None, "the Service names another one since");
    let kept = annotated(&[(ASSOCIATED, "false")]);
    assert_eq!(said(&kept, &marked), Some(false));
}

#[test]
fn rules_differ_in_what_can_be_changed_and_what_cannot() {
    let service = service();
    let wanted = wanted(&service);
    let same = [rule()];
    let found = rules::compare(&wanted, &same, "ip-1", false);
    assert_eq!(
        (
            found.delete.len(),
            found.update.len(),
            found.create.len(),
            found.keep.len()
        ),
        (0, 0, 0, 1)
    );
    let changed = |change: &dyn Fn(&mut Rule), renews: bool| {
        let mut rule = rule();
        change(&mut rule);
        let rules = [rule];
        let found = rules::compare(&wanted, &rules, "ip-1", renews);
        (found.delete.len(), found.update.len(), found.create.len())
    };
    assert_eq!(changed(&|rule| rule.algorithm = "source".into(), false), (0, 1, 0));
    assert_eq!(changed(&|rule| rule.cidrlist = "10.0.0.0/8".into(), true), (0, 1, 0));
    assert_eq!(changed(&|rule| rule.cidrlist = "10.0.0.0/8".into(), false), (1, 0, 0));
    assert_eq!(
        changed(&|rule| rule.cidrlist = String::new(), false),
        (0, 0, 0),
        "none is everywhere"
    );
    assert_eq!(changed(&|rule| rule.privateport = "30081".into(), true), (1, 0, 0));
    assert_eq!(changed(&|rule| rule.publicipid = "ip-2".into(), true), (1, 0, 0));
    assert_eq!(changed(&|rule| rule.state = "Revoke".into(), true), (1, 0, 0));
    assert_eq!(changed(&|rule| rule.name = format!("{NAME}-tcp-81"), true), (1, 0, 1));
    // The keyword finds parts of names.
    let mut longer = rule();
    longer.name = format!("x{NAME}-tcp-80");
    assert_eq!(rules::of_balancer(vec![rule(), longer], NAME), [rule()]);
}

#[test]
fn many_machines_go_in_parts() {
    let ids: Vec<String> = (0..1_200).map(|number| format!("vm-{number:04}")).collect();
    let calls = rules::members(&rule(), &["vm-gone".into()], &ids);
    let commands: Vec<&str> = calls.iter().map(Call::command).collect();
    let assign = "assignToLoadBalancerRule";
    assert_eq!(commands, [assign, assign, assign, "removeFromLoadBalancerRule"]);
    assert!(rules::members(&rule(), &ids, &ids).is_empty());
}

#[test]
fn the_firewall_has_one_rule_for_a_port() {
    let mut service = service();
    service.source_ranges = vec!["10.0.0.0/8".into(), "192.0.2.0/24".into()];
    let wanted = wanted(&service);
    let others = [opening("f-ssh", "22", "0.0.0.0/0", None)];
    assert_eq!(
        texts(&openings::firewall(&wanted, &others, "ip-1")),
        ["createFirewallRule ipaddressid=ip-1 protocol=tcp startport=80 endport=80 cidrlist=10.0.0.0/8,192.0.2.0/24"]
    );
    let right = [opening("f-1", "80", "192.0.2.0/24,10.0.0.0/8", None)];
    assert!(openings::firewall(&wanted, &right, "ip-1").is_empty());
    let wide = [opening("f-1", "80", "0.0.0.0/0", None)];
    assert_eq!(
        texts(&openings::firewall(&wanted, &wide, "ip-1")),
        ["deleteFirewallRule id=f-1"]
    );
    let gone = rule();
    assert_eq!(
        texts(&openings::left_in_firewall(&[&gone], &wide, None)),
        ["deleteFirewallRule id=f-1"]
    );
    assert!(
        openings::left_in_firewall(&[&gone], &wide, Some(&wanted)).is_empty(),
        "the port stays"
    );
}

#[test]
fn an_acl_keeps_what_is_not_of_this_load_balancer() {
    let service = service();
    let wanted = wanted(&service);
    let own = opening("a-1", "80", "0.0.0.0/0", Some(NAME));
    let upstreams = opening("a-2", "80", "0.0.0.0/0", Some(""));
    let mut denies = opening("a-3", "80", "0.0.0.0/0", None);
    denies.action = "Deny".into();
    let others = opening("a-4", "80", "0.0.0.0/0", Some("by hand"));
    let made = openings::acl(&wanted, &[denies.clone(), others.clone()], "acl-1", "n-1");
    assert_eq!(made.len(), 1);
    assert!(
        texts(&made)[0].contains("action=Allow traffictype=Ingress protocol=tcp startport=80 endport=80"),
        "{made:?}"
    );
    for there in [&own, &upstreams] {
        assert!(openings::acl(&wanted, std::slice::from_ref(there), "acl-1", "n-1").is_empty());
    }
    let there = [own, upstreams, denies, others];
    let gone = rule();
    let left = openings::left_in_acl(NAME, &[&gone], &there, None, &[]);
    assert_eq!(texts(&left), ["deleteNetworkACL id=a-1", "deleteNetworkACL id=a-2"]);
    let left = openings::left_in_acl(NAME, &[&gone], &there, None, &[rule()]);
    assert_eq!(
        texts(&left),
        ["deleteNetworkACL id=a-1"],
        "another load balancer has the port"
    );
}

/// A load balancer that is right, with these machines behind it.
fn right(command: &str, machines: &[&str]) -> Option<Value> {
    let machines: Vec<Value> = machines.iter().map(|id| json!({ "id": id })).collect();
    let firewall = json!({ "id": "f-1", "protocol": "tcp", "startport": 80, "endport": 80, "cidrlist": "0.0.0.0/0" });
    let address = json!({
        "id": "ip-1", "ipaddress": "192.0.2.1", "allocated": "2026-01-01", "state": "Allocated", "tags": [{ "key": SERVICE_TAG, "value": UID }],
    });
    let rule = json!({
        "id": "r-1", "name": format!("{NAME}-tcp-80"), "publicip": "192.0.2.1", "publicipid": "ip-1", "publicport": "80", "privateport": "30080",
        "algorithm": "roundrobin", "protocol": "tcp", "cidrlist": "0.0.0.0/0", "networkid": "n-1", "state": "Active",
    });
    let seen = |id: &str| json!({ "id": id, "name": id, "nic": [{ "networkid": "n-1" }] });
    Some(match command {
        "listLoadBalancerRules" => json!({ "count": 1, "loadbalancerrule": [rule] }),
        "listPublicIpAddresses" => json!({ "count": 1, "publicipaddress": [address] }),
        "listNetworks" => {
            json!({ "count": 1, "network": [{ "id": "n-1", "service": [{ "name": "Firewall" }, { "name": "Lb" }] }] })
        }
        "listFirewallRules" => json!({ "count": 1, "firewallrule": [firewall] }),
        "listLoadBalancerRuleInstances" => json!({ "loadbalancerruleinstance": machines }),
        "listVirtualMachines" => json!({ "count": 2, "virtualmachine": [seen("vm-1"), seen("vm-2")] }),
        _ => return None,
    })
}

#[test]
fn nothing_is_written_where_nothing_differs() {
    let cloud = host(|command, _| said(command, right(command, &["vm-1"]).unwrap()));
    let balancer = provider(&cloud).ensure(&service(), &[target("vm-1")], None).unwrap();
    assert_eq!(balancer, Balancer::at(vec![Ingress::ip("192.0.2.1")]));
    assert_eq!(
        commands(&cloud),
        [
            "listLoadBalancerRules",
            "listPublicIpAddresses",
            "listNetworks",
            "listFirewallRules",
            "listLoadBalancerRuleInstances"
        ]
    );
}

#[test]
fn a_job_is_waited_for_and_a_machine_that_is_gone_is_left_out() {
    let cloud = host(|command, request| match (right(command, &["vm-1", "vm-9"]), command) {
        (Some(value), _) => said(command, value),
        (None, "queryAsyncJobResult") => said(command, json!({ "jobstatus": 0 })),
        _ => said(
            command,
            json!({ "jobid": format!("job-of-{}", request.field("virtualmachineids").unwrap()) }),
        ),
    });
    let targets = [target("vm-1"), target("vm-2"), target("vm-gone")];
    let waits = provider(&cloud).update_targets(&service(), &targets, None).unwrap_err();
    let FailureKind::Pending(token) = &waits.kind else {
        panic!("{waits:?}")
    };
    assert!(
        token.contains("job-of-vm-2") && token.contains("job-of-vm-9"),
        "{token}"
    );
    let before = cloud.requests().len();
    let again = provider(&cloud)
        .update_targets(&service(), &targets, Some(token))
        .unwrap_err();
    assert!(matches!(again.kind, FailureKind::Pending(_)));
    assert_eq!(
        commands(&cloud)[before..],
        ["queryAsyncJobResult"; 2],
        "nothing is begun twice"
    );
}

#[test]
fn machines_are_listed_once_for_many_services() {
    let cloud = host(|command, _| match right(command, &[]) {
        Some(value) => said(command, value),
        None => said(command, json!({ "jobid": "j-1" })),
    });
    let update = TargetUpdate {
        service: service(),
        token: None,
    };
    let results = provider(&cloud)
        .update_targets_of(&[update.clone(), update], &[target("vm-1")])
        .unwrap();
    assert!(results.iter().all(|one| matches!(
        one,
        Err(Failure {
            kind: FailureKind::Pending(_),
            ..
        })
    )));
    let lists = commands(&cloud)
        .iter()
        .filter(|name| *name == "listVirtualMachines")
        .count();
    assert_eq!(lists, 1);
}

#[test]
fn failed_job_is_reported_once_and_then_made_again() {
    let cloud = host(|command, _| match (right(command, &[]), command) {
        (Some(value), _) => said(command, value),
        (None, "queryAsyncJobResult") => {
            let result = json!({ "errorcode": 534, "errortext": "the router is away" });
            said(command, json!({ "jobstatus": 2, "jobresult": result }))
        }
        _ => said(command, json!({ "jobid": "j-1" })),
    });
    let update = |token| {
        provider(&cloud)
            .update_targets(&service(), &[target("vm-1")], token)
            .unwrap_err()
    };
    let waits = update(None);
    let FailureKind::Pending(token) = &waits.kind else {
        panic!("{waits:?}")
    };
    assert_eq!(update(Some(token)).kind, FailureKind::Unavailable);
    // The controller keeps the token over a failure.
    assert!(matches!(update(Some(token)).kind, FailureKind::Pending(_)));
    let assigned = commands(&cloud)
        .iter()
        .filter(|name| *name == "assignToLoadBalancerRule")
        .count();
    assert_eq!(assigned, 2);
}

#[test]
fn a_new_address_is_marked_at_once() {
    let cloud = host(|command, request| match command {
        "listLoadBalancerRules" | "listPublicIpAddresses" => said(command, json!({})),
        "associateIpAddress" => {
            assert_eq!(request.field("networkid").as_deref(), Some("n-1"));
            said(command, json!({ "id": "ip-7", "jobid": "j-1" }))
        }
        "createTags" => {
            assert_eq!(request.field("resourceids").as_deref(), Some("ip-7"));
            assert_eq!(request.field("tags[0].value").as_deref(), Some(UID));
            said(command, json!({ "jobid": "j-2" }))
        }
        _ => said(command, right(command, &[]).unwrap()),
    });
    let waits = provider(&cloud)
        .ensure(&service(), &[target("vm-1")], None)
        .unwrap_err();
    assert!(matches!(&waits.kind, FailureKind::Pending(token) if token.contains("j-1") && token.contains("j-2")));
}

#[test]
fn address_that_cannot_be_marked_is_given_back() {
    let cloud = host(|command, request| match command {
        "listLoadBalancerRules" | "listPublicIpAddresses" => said(command, json!({})),
        "associateIpAddress" => said(command, json!({ "id": "ip-7", "jobid": "j-1" })),
        "createTags" => refused(command, 432, "the role has no createTags"),
        "disassociateIpAddress" => {
            assert_eq!(request.field("id").as_deref(), Some("ip-7"));
            said(command, json!({ "jobid": "j-2" }))
        }
        _ => said(command, right(command, &[]).unwrap()),
    });
    let failure = provider(&cloud)
        .ensure(&service(), &[target("vm-1")], None)
        .unwrap_err();
    assert!(failure.message().contains("the role has no createTags"), "{failure:?}");
    assert_eq!(commands(&cloud).last().unwrap(), "disassociateIpAddress");
}

#[test]
fn no_place_without_nodes_or_with_several_networks() {
    let cloud = host(|command, _| match command {
        "listVirtualMachines" => {
            let machine = |id: &str, network: &str| json!({ "id": id, "name": id, "nic": [{ "networkid": network }] });
            said(
                command,
                json!({ "count": 2, "virtualmachine": [machine("vm-1", "n-1"), machine("vm-2", "n-2")] }),
            )
        }
        _ => said(command, json!({})),
    });
    for (targets, part) in [
        (vec![], "no Node"),
        (vec![target("vm-1"), target("vm-2")], "several networks (n-1, n-2)"),
    ] {
        let failure = provider(&cloud).ensure(&service(), &targets, None).unwrap_err();
        assert_eq!(failure.kind, FailureKind::FailedPrecondition);
        assert!(failure.message.contains(part), "{failure:?}");
    }
}

#[test]
fn deleting_goes_from_the_firewall_to_the_address() {
    let cloud = host(|command, _| match (right(command, &[]), command) {
        (Some(value), _) => said(command, value),
        _ => said(command, json!({ "jobid": "j-1" })),
    });
    let waits = provider(&cloud).delete(&service(), None).unwrap_err();
    assert!(matches!(waits.kind, FailureKind::Pending(_)));
    assert_eq!(commands(&cloud).last().unwrap(), "deleteFirewallRule");
    drop(cloud);
    let nothing = host(|command, _| said(command, json!({})));
    assert_eq!(provider(&nothing).delete(&service(), None), Ok(vec![]));
    drop(nothing);
    // Its rules are gone and its address is left, which another Service uses.
    let used = host(|command, request| match (command, request.field("publicipid")) {
        ("listLoadBalancerRules", None) => said(command, json!({})),
        _ => right(command, &[]).map_or_else(|| refused(command, 431, "not now"), |value| said(command, value)),
    });
    assert_eq!(provider(&used).delete(&service(), None), Ok(vec![]));
}

#[test]
fn dry_run_reports_and_changes_nothing() {
    let cloud = host(|command, _| said(command, right(command, &[]).unwrap()));
    cloud.dry_run();
    let failure = provider(&cloud)
        .ensure(&service(), &[target("vm-1")], None)
        .unwrap_err();
    assert!(
        failure.message.contains("dry run") && failure.message.contains("assignToLoadBalancerRule"),
        "{failure:?}"
    );
}

#[test]
fn annotation_decides_ownership_of_named_address() {
    let cloud = host(|command, _| said(command, right(command, &["vm-1"]).unwrap()));
    let mut named = service();
    named.load_balancer_ip = Some("192.0.2.1".into());
    let balancer = provider(&cloud).ensure(&named, &[target("vm-1")], None).unwrap();
    assert_eq!(
        balancer.annotations,
        [AnnotationChange::set(TABLE.key(ASSOCIATED), "false")]
    );
    named.ingress = vec![Ingress::ip("192.0.2.1")];
    named.annotations = vec![
        Pair::new(TABLE.key(ASSOCIATED), "true"),
        Pair::new(TABLE.key("hostname"), "web.test"),
    ];
    let balancer = provider(&cloud).ensure(&named, &[target("vm-1")], None).unwrap();
    assert_eq!(
        (balancer.annotations.len(), balancer.ingress),
        (0, vec![Ingress::hostname("web.test")])
    );
}

#[test]
fn a_half_built_one_counts_as_there() {
    let half = host(|command, _| match command {
        "listLoadBalancerRules" => said(command, json!({})),
        _ => said(command, right(command, &[]).unwrap()),
    });
    assert_eq!(provider(&half).get(&service()), Ok(Some(Balancer::at(vec![]))));
    drop(half);
    let nothing = host(|command, _| said(command, json!({})));
    assert_eq!(provider(&nothing).get(&service()), Ok(None));
    let missing = provider(&nothing).update_targets(&service(), &[], None).unwrap_err();
    assert!(missing.is_not_found());
}
