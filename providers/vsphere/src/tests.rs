//! The whole provider against answers recorded from vcsim: what is requested for a Node, and what is reported about it.

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};

use crate::Vsphere;

const URL: &str = "https://vc.test:443";
const UUID: &str = "265104de-1472-547c-b873-6dc7883fb6cb";

/// A server's answers, by a part of the request. The first match counts.
type Rules = Vec<(&'static str, FakeAnswer)>;

macro_rules! answer {
    ($file:literal) => {
        answer!($file, 200)
    };
    ($file:literal, $status:literal) => {
        FakeAnswer::xml($status, recorded(include_str!(concat!("../recorded/", $file))))
    };
}

/// A server with one machine that reports its name, among eight.
fn vcenter() -> Rules {
    let login = recorded(include_str!("../recorded/login.xml"));
    vec![
        ("<RetrieveServiceContent", answer!("service_content.xml")),
        (
            "<Login ",
            FakeAnswer::new(
                200,
                &[
                    ("Set-Cookie", "proxy=p1"),
                    ("Set-Cookie", "vmware_soap_session=s1; Path=/; HttpOnly"),
                ],
                login,
            ),
        ),
        ("<CreateContainerView", answer!("view.xml")),
        ("<FindAllByDnsName", answer!("nothing_found.xml")),
        ("<FindAllByIp", answer!("nothing_found.xml")),
        (
            "<uuid>265104de-1472-547c-b873-6dc7883fb6cb</uuid>",
            answer!("found.xml"),
        ),
        ("<FindByUuid", answer!("nothing_found.xml")),
        ("<ContinueRetrievePropertiesEx", answer!("keys_last_page.xml")),
        ("ContainerView", answer!("keys_first_page.xml")),
        ("<pathSet>config.extraConfig</pathSet>", answer!("machines.xml")),
        ("config.extraConfig[", answer!("machine_single_settings.xml")),
        ("<name>vapp</name>", answer!("parents.xml")),
    ]
}

/// Requests in one word each: the SOAP method, or what is behind the last slash.
type Calls = Rc<RefCell<Vec<String>>>;

fn serve(host: &FakeHost, rules: Rules) -> Calls {
    let calls = Calls::default();
    let kept = Rc::clone(&calls);
    host.serve(move |request: &SentRequest| {
        let text = format!("{} {}", request.url, request.text());
        let method = text.split("<Body><").nth(1).and_then(|body| body.split(' ').next());
        let word = method.or_else(|| request.url.rsplit('/').next()).unwrap_or_default();
        kept.borrow_mut().push(word.into());
        let rule = rules.iter().find(|(mark, _)| text.contains(mark));
        rule.map(|(_, answer)| answer.clone())
            .unwrap_or_else(|| panic!("no answer to {text}"))
    });
    calls
}

fn host(config: &str) -> FakeHost {
    let host = FakeHost::new();
    host.config(config);
    for server in ["vc.test", "down.test", "other.test"] {
        host.secret(&format!("{server}.username"), "u");
        host.secret(&format!("{server}.password"), "p");
    }
    host.now(1_000_000);
    host
}

const ONE: &str = "global:\n  server: vc.test\n";

fn by_id(uuid: &str) -> NodeRef {
    NodeRef::named("a").with_provider_id(format!("vsphere://{uuid}"))
}

fn look(host: &FakeHost, nodes: &[NodeRef]) -> Vec<Result<Presence, Failure>> {
    host.provider::<Vsphere>().lookup(nodes).unwrap()
}

#[test]
fn machine_is_found_by_id_with_all_fields() {
    let host = host("global: {server: vc.test, nodeLabels: 'a/b=c'}");
    let calls = serve(&host, vcenter());
    let answers = look(&host, &[by_id(UUID)]);
    let Ok(Presence::Running(instance)) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(instance.provider_id, format!("vsphere://{UUID}"));
    assert_eq!(
        instance.instance_type.as_deref(),
        Some("vsphere-vm.cpu-1.mem-0gb.os-other")
    );
    assert_eq!(
        instance.addresses,
        [
            Address::new(AddressKind::Hostname, "node-1"),
            Address::new(AddressKind::InternalIp, "10.0.0.5"),
            Address::new(AddressKind::ExternalIp, "10.0.0.5"),
        ]
    );
    assert_eq!(instance.labels, [Pair::new("a/b", "c")]);
    let expected = [
        "RetrieveServiceContent",
        "Login",
        "CreateContainerView",
        "FindByUuid",
        "RetrievePropertiesEx",
        // vcsim gives no single settings.
        "RetrievePropertiesEx",
    ];
    assert_eq!(*calls.borrow(), expected);
    // From then on one call is enough: where it is and what the server can do is cached.
    look(&host, &[by_id(UUID)]);
    assert_eq!(calls.borrow()[expected.len()..], ["RetrievePropertiesEx"]);
}

#[test]
fn password_placeholder_is_escaped_and_cookie_is_returned() {
    let host = host(ONE);
    serve(&host, vcenter());
    look(&host, &[by_id(UUID)]);
    let requests = host.requests();
    let login = requests
        .iter()
        .find(|request| request.text().contains("<Login "))
        .unwrap();
    assert!(
        login.text().contains(
            "<userName>cloudwit-placeholder-vc.test.username.xml</userName><password>cloudwit-placeholder-vc.test.password.xml</password>"
        ),
        "{}",
        login.text()
    );
    let last = requests.last().unwrap();
    assert_eq!(last.header("cookie"), Some("vmware_soap_session=s1"));
    assert_eq!(last.header("soapaction"), Some("urn:vim25/6.5"));
    assert!(requests.iter().all(|request| request.url == "https://vc.test:443/sdk"));
}

#[test]
fn id_in_other_case_or_byte_order_matches_and_stays_as_written() {
    let swapped = "de045126-7214-7c54-b873-6dc7883fb6cb";
    for id in [&UUID.to_uppercase(), swapped, &format!("  {UUID}")] {
        let host = host(ONE);
        serve(&host, vcenter());
        let answers = look(&host, &[by_id(id)]);
        let Ok(Presence::Running(instance)) = &answers[0] else {
            panic!("{id}: {answers:?}")
        };
        assert_eq!(instance.provider_id, format!("vsphere://{id}"));
        // The search index was enough.
        let whole = host
            .requests()
            .iter()
            .filter(|request| request.text().contains("type=\"ContainerView\""))
            .count();
        assert_eq!(whole, 0, "{id}");
    }
}

#[test]
fn two_machines_of_one_name_are_a_failure_of_that_node_only() {
    let host = host(ONE);
    let twins = recorded(include_str!("../recorded/found.xml")).replace(
        "</FindByUuidResponse>",
        "<returnval type=\"VirtualMachine\">vm-94</returnval></FindByUuidResponse>",
    );
    let mut rules = vcenter();
    rules.insert(0, ("<dnsName>twin</dnsName>", FakeAnswer::xml(200, &twins)));
    rules.push(("<pathSet>name</pathSet>", answer!("machines.xml")));
    serve(&host, rules);
    let answers = look(&host, &[NodeRef::named("twin"), by_id(UUID)]);
    assert!(
        matches!(&answers[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("DC0_H0_VM0, DC0_H0_VM1")),
        "{answers:?}"
    );
    assert!(matches!(answers[1], Ok(Presence::Running(_))), "{answers:?}");
}

#[test]
fn joining_node_is_found_by_firmware_uuid_in_either_order() {
    for system in [UUID, "DE045126-7214-7C54-B873-6DC7883FB6CB"] {
        let host = host(ONE);
        serve(&host, vcenter());
        let node = NodeRef {
            system_uuid: Some(system.into()),
            ..NodeRef::named("whatever")
        };
        let answers = look(&host, &[node]);
        let Ok(Presence::Running(instance)) = &answers[0] else {
            panic!("{system}: {answers:?}")
        };
        assert_eq!(instance.provider_id, format!("vsphere://{UUID}"));
    }
}

#[test]
fn many_nodes_take_one_read_of_the_inventory() {
    let host = host(ONE);
    let calls = serve(&host, vcenter());
    let mut nodes: Vec<NodeRef> = (0..20)
        .map(|number| NodeRef::named(format!("other-{number}")))
        .collect();
    nodes.insert(7, NodeRef::named("node-1"));
    nodes.insert(9, by_id(UUID));
    nodes.insert(11, NodeRef::named("10.0.0.5"));
    let answers = look(&host, &nodes);
    for (at, answer) in answers.iter().enumerate() {
        match answer {
            Ok(Presence::Running(_)) => assert!([7, 9, 11].contains(&at), "{at}"),
            Ok(Presence::Absent(Evidence::ByName)) => {}
            other => panic!("{at}: {other:?}"),
        }
    }
    assert_eq!(
        calls.borrow()[3..],
        [
            "RetrievePropertiesEx",
            "ContinueRetrievePropertiesEx",
            "RetrievePropertiesEx",
            "RetrievePropertiesEx"
        ]
    );
}

#[test]
fn only_the_whole_inventory_proves_absence() {
    let gone = by_id("00000000-1111-2222-3333-444444444444");
    let host = host(ONE);
    let calls = serve(&host, vcenter());
    assert_eq!(
        look(&host, std::slice::from_ref(&gone)),
        [Ok(Presence::Absent(Evidence::ById))]
    );
    let last = calls.borrow()[3..].join(" ");
    assert_eq!(
        last,
        "FindByUuid FindByUuid FindByUuid RetrievePropertiesEx ContinueRetrievePropertiesEx"
    );

    // The same answers with skipNodeDeletion are a failure.
    let host = host_with_skip();
    serve(&host, vcenter());
    assert!(
        matches!(&look(&host, &[gone])[0], Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("skipNodeDeletion"))
    );
}

fn host_with_skip() -> FakeHost {
    host("global:\n  server: vc.test\n  skipNodeDeletion: true\n")
}

#[test]
fn an_inventory_that_is_empty_or_hides_ids_is_no_evidence() {
    let gone = by_id("00000000-1111-2222-3333-444444444444");
    let empty = "<Envelope><Body><RetrievePropertiesExResponse/></Body></Envelope>";
    let hidden = recorded(include_str!("../recorded/keys_last_page.xml"))
        .replace("<name>summary.config.uuid</name>", "<name>summary.config.other</name>");
    for (keys, wanted) in [
        (empty, "inventory is empty"),
        (&*hidden, "nobody can say that it is gone"),
    ] {
        let host = host(ONE);
        let mut rules = vcenter();
        rules.retain(|(mark, _)| *mark != "ContainerView");
        rules.push(("ContainerView", FakeAnswer::xml(200, keys)));
        serve(&host, rules);
        let answers = look(&host, std::slice::from_ref(&gone));
        let Err(failure) = &answers[0] else {
            panic!("{answers:?}")
        };
        assert!(failure.message().contains(wanted), "{failure:?}");
    }
}

#[test]
fn expired_session_is_renewed_once_for_each_error_form() {
    for (over, status) in [
        (include_str!("../recorded/session_over_machine.xml"), 200),
        (include_str!("../recorded/session_over_view.xml"), 500),
    ] {
        let host = host(ONE);
        serve(&host, vcenter());
        look(&host, &[by_id(UUID)]);
        let rules = vcenter();
        let over = FakeAnswer::xml(status, recorded(over));
        let logins = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&logins);
        host.serve(move |request: &SentRequest| {
            let text = request.text();
            *counted.borrow_mut() += usize::from(text.contains("<Login "));
            if *counted.borrow() == 0 && text.contains("PropertiesEx") {
                return over.clone();
            }
            let rule = rules.iter().find(|(mark, _)| text.contains(mark));
            rule.map(|(_, answer)| answer.clone()).unwrap()
        });
        assert!(matches!(look(&host, &[by_id(UUID)])[0], Ok(Presence::Running(_))));
        assert_eq!(*logins.borrow(), 1);
    }
}

#[test]
fn a_refused_login_is_not_repeated_for_a_while() {
    let host = host(ONE);
    let mut rules = vcenter();
    rules.insert(0, ("<Login ", answer!("login_refused.xml", 500)));
    let calls = serve(&host, rules);
    for _ in 0..5 {
        let answers = look(&host, &[by_id(UUID)]);
        assert!(
            matches!(&answers[0], Err(Failure { kind: FailureKind::Denied, message: text, .. }) if text == "vCenter vc.test: InvalidLogin: Login failure"),
            "{answers:?}"
        );
    }
    assert_eq!(*calls.borrow(), ["RetrieveServiceContent", "Login"]);
    host.now(1_000_061);
    look(&host, &[by_id(UUID)]);
    assert_eq!(calls.borrow().len(), 4);
}

#[test]
fn silent_vcenter_hides_nothing_and_delays_once() {
    let host = host("vcenter:\n  down: {server: down.test}\n  up: {server: vc.test}\n");
    let mut rules = vcenter();
    rules.insert(0, ("https://down.test", FakeAnswer::breaks()));
    let calls = serve(&host, rules);
    let nodes = [
        by_id(UUID),
        by_id("00000000-1111-2222-3333-444444444444"),
        NodeRef::named("other"),
    ];
    for round in 0..3 {
        let answers = look(&host, &nodes);
        assert!(matches!(answers[0], Ok(Presence::Running(_))), "{answers:?}");
        for unknown in &answers[1..] {
            assert!(
                matches!(unknown, Err(Failure { kind: FailureKind::Unavailable, message: text, .. }) if text.contains("vCenter down")),
                "{round}: {answers:?}"
            );
        }
    }
    let asked = host
        .requests()
        .iter()
        .filter(|request| request.url.starts_with("https://down.test"))
        .count();
    assert_eq!(asked, 1, "{:?}", calls.borrow());
}

#[test]
fn foreign_or_malformed_ids_are_refused_without_request() {
    let host = host(ONE);
    for id in ["aws:///z/i-1", "vsphere://", "vsphere://vm-12"] {
        let answers = look(&host, &[NodeRef::named("a").with_provider_id(id)]);
        assert!(
            matches!(&answers[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains(id)),
            "{answers:?}"
        );
    }
}

#[test]
fn the_probe_logs_in_to_every_vcenter() {
    let host = host("vcenter:\n  a: {server: vc.test}\n  b: {server: other.test}\n");
    let mut rules = vcenter();
    rules.insert(0, ("https://other.test", FakeAnswer::new(503, &[], "")));
    serve(&host, rules);
    let failure = host.provider::<Vsphere>().probe().unwrap_err();
    assert!(
        matches!(&failure, Failure { kind: FailureKind::Unavailable, message: text, .. } if text.starts_with("vCenter b: RetrieveServiceContent: ")),
        "{failure:?}"
    );
    assert!(
        host.requests()
            .iter()
            .any(|request| request.url.starts_with(URL) && request.text().contains("<Login "))
    );
}

#[test]
fn a_datacenter_limits_the_search_to_its_machines() {
    let host = host("global: {server: vc.test, datacenters: [DC0, /north/DC1]}");
    let mut rules = vcenter();
    let datacenter = "<Envelope><Body><R><returnval type=\"Datacenter\">datacenter-2</returnval></R></Body></Envelope>";
    rules.push(("<inventoryPath>DC0</inventoryPath>", FakeAnswer::xml(200, datacenter)));
    rules.push((
        "<inventoryPath>north/DC1</inventoryPath>",
        FakeAnswer::xml(200, datacenter),
    ));
    let calls = serve(&host, rules);
    look(&host, &[by_id(UUID)]);
    let calls = calls.borrow().join(" ");
    assert!(!calls.contains("FindByUuid"), "{calls}");
    assert_eq!(calls.matches("CreateContainerView").count(), 2);

    let mut rules = vcenter();
    rules.push(("<inventoryPath>", answer!("nothing_found.xml")));
    let host = self::host("global: {server: vc.test, datacenters: [DCO]}");
    serve(&host, rules);
    let answers = look(&host, &[by_id(UUID)]);
    assert!(
        matches!(&answers[0], Err(Failure { kind: FailureKind::NotFound, message: text, .. }) if text.contains("no datacenter \"DCO\"")),
        "{answers:?}"
    );
}
