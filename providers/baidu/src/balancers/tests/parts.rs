//! The parts of a plan: names, desired state, listeners, machines, addresses, owners of load balancers.

use super::super::addresses::Addresses;
use super::super::backends::Differences;
use super::super::seen::{Eip, Listener};
use super::super::task::Next;
use super::*;

fn wanted(service: &Service) -> Result<Wanted<'_>, Failure> {
    Wanted::new(service, annotations::read(service)?, &[target("i-1")])
}

fn refusal(service: &Service) -> String {
    wanted(service).unwrap_err().message
}

#[test]
fn names_are_baidus_unless_they_are_too_long() {
    assert_eq!(names::of_balancer("cce-1", &service()), NAME);
    let long = Service {
        name: "x".repeat(63),
        ..service()
    };
    assert_eq!(names::of_balancer("cce-1", &long), "a1bf6e8a36f0a4d3e9a3c00000000000");
    let cut = "\u{e9}".repeat(40);
    assert_eq!(names::of_address(&cut).len(), 64, "not within a letter");
}

#[test]
fn what_baidu_does_not_have_is_told_at_once() {
    let mut odd = service();
    odd.ip_families = vec![IpFamily::Ipv6];
    odd.source_ranges = vec!["10.0.0.0/8".into()];
    odd.ports[0].node_port = None;
    odd.ports.push(ServicePort {
        protocol: Protocol::Sctp,
        ..odd.ports[0].clone()
    });
    let told = refusal(&odd);
    for part in ["IPv4", "security group", "port 80 has no node port", "SCTP"] {
        assert!(told.contains(part), "{told}");
    }
    let mut open = service();
    open.source_ranges = vec!["0.0.0.0/0".into()];
    assert!(wanted(&open).is_ok());
}

#[test]
fn mistakes_in_annotations_are_told_at_once() {
    let odd = annotated(&[
        ("load-balancer-rs-max-num", "51"),
        ("load-balancer-scheduler", "Fair"),
        ("load-balancer-exist-id", "../x"),
        ("load-balancer-reserve-lb", "yes"),
        ("load-balancer-healthy-threshold", "9"),
        ("elastic-ip-payment-timing", "Prepaid"),
        ("elastic-ip-billing-method", "ByTraffic"),
        ("elastic-ip-reservation-length", "10"),
        ("elastic-ip-bandwidth-in-mbps", "500"),
    ]);
    let told = refusal(&odd);
    for part in [
        "rs-max-num",
        "Fair",
        "../x",
        "reserve-lb",
        "healthy-threshold",
        "no billing method",
        "12, 24 or 36",
        "1 to 200",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn new_address_is_billed_as_asked() {
    let body = |pairs: &[(&str, &str)]| annotations::read(&annotated(pairs)).unwrap().eip.new_one();
    let postpaid = |bandwidth: u32, method: &str| json!({ "bandwidthInMbps": bandwidth, "billing": { "paymentTiming": "Postpaid", "billingMethod": method } });
    assert_eq!(body(&[]), postpaid(1_000, "ByTraffic"));
    assert_eq!(
        body(&[("elastic-ip-billing-method", "ByBandwidth")]),
        postpaid(200, "ByBandwidth")
    );
    assert_eq!(body(&[("elastic-ip-bandwidth-in-mbps", "7")]), postpaid(7, "ByTraffic"));
    let months = json!({ "reservationLength": 12, "reservationTimeUnit": "Month" });
    assert_eq!(
        body(&[
            ("elastic-ip-payment-timing", "Prepaid"),
            ("elastic-ip-reservation-length", "12")
        ]),
        json!({ "bandwidthInMbps": 200, "billing": { "paymentTiming": "Prepaid", "reservation": months } })
    );
}

#[test]
fn session_affinity_chooses_the_scheduler_unless_one_is_written() {
    let scheduler = |service: &Service| wanted(service).unwrap().listeners[0].scheduler.clone();
    assert_eq!(scheduler(&service()), "RoundRobin");
    let sticky = |service: Service| Service {
        session_affinity_seconds: Some(10_800),
        ..service
    };
    assert_eq!(scheduler(&sticky(service())), "Hash");
    let written = annotated(&[("load-balancer-scheduler", "leastconnection")]);
    assert_eq!(scheduler(&sticky(written)), "LeastConnection");
}

#[test]
fn conflicting_listeners_go_first_others_change_in_place() {
    let mut service = service();
    service.ports.push(ServicePort {
        protocol: Protocol::Udp,
        port: 53,
        node_port: Some(30053),
        ..service.ports[0].clone()
    });
    let wanted = wanted(&service).unwrap().listeners;
    let other = Listener {
        protocol: "UDP",
        listener_port: 80,
        ..Listener::default()
    };
    let changed = Listener {
        backend_port: 30081,
        ..wanted[0].clone()
    };
    let next = |seen: &[Listener]| listeners::next("lb-1", &wanted, seen).map(|call| call.text());
    let delete = r#"PUT /v1/blb/lb-1/listener?batchdelete {"portTypeList":[{"port":80,"type":"UDP"}]}"#;
    assert_eq!(next(&[changed.clone(), other]).as_deref(), Some(delete));
    let change = next(&[changed]).unwrap();
    assert!(
        change.starts_with("PUT /v1/blb/lb-1/TCPlistener?listenerPort=80 ") && change.contains("30080"),
        "{change}"
    );
    let create = next(&wanted[..1]).unwrap();
    for part in [
        "POST /v1/blb/lb-1/UDPlistener ",
        r#""listenerPort":53"#,
        r#""healthCheckString":"HealthCheck""#,
    ] {
        assert!(create.contains(part), "{create}");
    }
    assert_eq!(next(&wanted), None);
}

#[test]
fn machines_that_are_there_stay_as_far_as_there_is_room() {
    let ids = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (wanted, there, most, add, remove) in [
        ("1 2 3", "4 5", 1, "1", "4 5"),
        ("1 2 3 4", "4 5", 1, "", "5"),
        ("1 2 3 4", "4 5", 3, "1 2", "5"),
        ("1 2", "2 1", 50, "", ""),
        ("1 2 3", "3 2 1", 2, "", "3"),
        ("", "1", 50, "", "1"),
    ] {
        let differences = Differences::new(&ids(wanted), &ids(there), most);
        let expected = Differences {
            add: ids(add),
            remove: ids(remove),
        };
        assert_eq!(differences, expected, "{wanted} / {there} / {most}");
    }
}

fn found(service: &Service, blbs: &[Blb]) -> String {
    let cloud = right(|_, _| None);
    let (baidu, found) = (provider(&cloud), |found: Option<&Blb>| {
        found.map_or("none", |blb| blb.blb_id.as_str()).to_owned()
    });
    let inventory = Inventory::new(&baidu);
    Task::new(&baidu, service, &inventory)
        .find(blbs)
        .map_or_else(|failure| failure.message, found)
}

#[test]
fn balancer_is_found_by_users_word_tag_id_and_name() {
    let former = blb("lb-former", "a1bf6e8a36f0a4d3e9a3c00000000000");
    let all = [
        blb("lb-other", "x"),
        former,
        blb("lb-name", NAME),
        tagged("lb-tag", UID),
        tagged("lb-theirs", "another"),
    ];
    assert_eq!(
        found(
            &annotated(&[("load-balancer-exist-id", "lb-other"), (ADDED, "lb-name")]),
            &all
        ),
        "lb-other"
    );
    assert_eq!(found(&annotated(&[(ADDED, "lb-name")]), &all), "lb-tag");
    assert_eq!(
        found(&annotated(&[(FORMER, "lb-other")]), &all[..3]),
        "lb-other",
        "Baidu's controller made it for this cluster"
    );
    assert_eq!(found(&service(), &all[..3]), "lb-name");
    assert_eq!(
        found(&annotated(&[("load-balancer-lb-name", "x")]), &all[..2]),
        "lb-other"
    );
    assert_eq!(found(&service(), &all[..2]), "lb-former");
    assert_eq!(found(&annotated(&[(ADDED, "lb-gone")]), &all[..1]), "none");
}

#[test]
fn balancer_of_others_is_not_taken() {
    let theirs = Blb {
        desc: Some("by hand".into()),
        ..blb("lb-1", "mine")
    };
    let id = found(&annotated(&[(ADDED, "lb-1")]), std::slice::from_ref(&theirs));
    assert!(id.contains("not this Service's") && id.contains("exist-id"), "{id}");
    assert_eq!(
        found(&annotated(&[("load-balancer-lb-name", "mine")]), &[theirs]),
        "none"
    );
    let copied = found(&annotated(&[(ADDED, "lb-theirs")]), &[tagged("lb-theirs", "another")]);
    assert!(copied.contains("not this Service's"), "{copied}");
    let several = found(&service(), &[blb("lb-1", NAME), blb("lb-2", NAME)]);
    assert!(several.contains("lb-1, lb-2"), "{several}");
    let missing = found(&annotated(&[("load-balancer-exist-id", "lb-gone")]), &[]);
    assert!(missing.contains("lb-gone"), "{missing}");
}

fn address(ip: &str, status: &str, bound: Option<&str>) -> Eip {
    serde_json::from_value(eip(ip, status, bound)).unwrap()
}

fn next_of(service: &Service, eips: &[Eip]) -> String {
    let asked = annotations::read(service).unwrap();
    let addresses = Addresses {
        service,
        default_name: NAME,
        blb_name: Some(NAME),
        eips,
    };
    match addresses.next(&blb("lb-1", NAME), &asked.eip) {
        Ok(Next::Changes(calls)) => calls[0].text(),
        Ok(Next::Wait(text)) => text,
        Ok(Next::Done(eip)) => format!("done {}", eip.eip),
        Err(failure) => failure.message,
    }
}

#[test]
fn address_is_made_bound_resized_and_exchanged() {
    let begins = |service: &Service, eips: &[Eip], start: &str| {
        let next = next_of(service, eips);
        assert!(next.starts_with(start), "{next}, not {start}");
    };
    begins(&service(), &[], "POST /v1/eip {");
    begins(
        &service(),
        &[address("192.0.2.1", "creating", None)],
        "the EIP 192.0.2.1 is creating",
    );
    begins(
        &service(),
        &[address("192.0.2.1", "available", None)],
        "PUT /v1/eip/192.0.2.1?bind {",
    );
    begins(
        &service(),
        &[address("192.0.2.1", "binding", Some("lb-1"))],
        "the EIP 192.0.2.1 is binding",
    );
    begins(
        &service(),
        &[address("192.0.2.1", "binded", Some("lb-1"))],
        "done 192.0.2.1",
    );
    begins(
        &service(),
        &[address("192.0.2.1", "paused", Some("lb-1"))],
        "the EIP 192.0.2.1 is paused",
    );
    let bound = [
        address("192.0.2.1", "binded", Some("lb-1")),
        Eip {
            name: None,
            ..address("192.0.2.9", "available", None)
        },
    ];
    begins(
        &annotated(&[("elastic-ip-bandwidth-in-mbps", "7")]),
        &bound,
        "PUT /v1/eip/192.0.2.1?resize {\"newBandwidthInMbps\":7}",
    );
    begins(
        &annotated(&[("elastic-ip-billing-method", "ByBandwidth")]),
        &bound,
        "payment timing and billing method",
    );
    let mut fixed = annotated(&[("elastic-ip-bandwidth-in-mbps", "7")]);
    fixed.load_balancer_ip = Some("192.0.2.9".into());
    begins(&fixed, &bound, "PUT /v1/eip/192.0.2.1?unbind");
    begins(&fixed, &bound[1..], "PUT /v1/eip/192.0.2.9?bind {");
    begins(
        &fixed,
        &[address("192.0.2.9", "binded", Some("lb-1"))],
        "done 192.0.2.9",
    );
    begins(&fixed, &[], "spec.loadBalancerIP is 192.0.2.9");
    begins(
        &fixed,
        &[address("192.0.2.9", "binded", Some("i-7"))],
        "spec.loadBalancerIP is 192.0.2.9, which is bound to i-7",
    );
}

#[test]
fn whose_an_address_is_says_tag_name_or_annotation() {
    let is_own = |service: &Service, eip: &Eip| {
        let addresses = Addresses {
            service,
            default_name: NAME,
            blb_name: Some(NAME),
            eips: &[],
        };
        addresses.is_own(eip)
    };
    let named = address("192.0.2.1", "available", None);
    let with = |name: &str, owner: Option<&str>| Eip {
        name: Some(name.into()),
        tags: owner.map(|uid| tagged("", uid).tags.unwrap()),
        ..named.clone()
    };
    assert!(is_own(&service(), &named) && is_own(&service(), &with("x", Some(UID))));
    assert!(!is_own(&service(), &with("x", None)) && !is_own(&service(), &with(NAME, Some("another"))));
    let mut service = annotated(&[("elastic-ip-name", "x")]);
    assert!(!is_own(&service, &with("x", None)), "several may have this name");
    service.annotations.push(Pair::new(TABLE.key(ADDED_EIP), "192.0.2.1"));
    assert!(is_own(&service, &with("x", None)));
    service.load_balancer_ip = Some("192.0.2.1".into());
    assert!(!is_own(&service, &named), "the Service names it: it is the user's");
}

#[test]
fn prepaid_addresses_are_unbound_and_left() {
    let prepaid = |bound| Eip {
        payment_timing: Some("Prepaid".into()),
        ..address(
            "192.0.2.1",
            if bound { "binded" } else { "available" },
            bound.then_some("lb-1"),
        )
    };
    let next = |eip: Eip| {
        let eips = [eip];
        let service = service();
        let addresses = Addresses {
            service: &service,
            default_name: NAME,
            blb_name: Some(NAME),
            eips: &eips,
        };
        match addresses.released(None) {
            Ok(Next::Changes(calls)) => calls[0].text(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(next(prepaid(true)), "PUT /v1/eip/192.0.2.1?unbind");
    assert_eq!(next(prepaid(false)), "Ok(Done(()))");
}
