//! A thousand Nodes among five thousand machines: few calls, each answer in its place. The server's answers are the recorded ones, many times over with
//! ids of their own.

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest, recorded};

use crate::Vsphere;

const MACHINES: usize = 5_000;
const NODES: usize = 1_000;

fn uuid(number: usize) -> String {
    format!("42000000-0000-0000-0000-{number:012x}")
}

/// The first object of a recorded answer, for the machine of this number.
fn object(file: &'static str, number: usize) -> String {
    let objects = file.split("<objects>").nth(1).unwrap();
    let object = objects.split("</objects>").next().unwrap();
    let with = |object: String, after: &str, text: &str| {
        let start = object.find(after).unwrap() + after.len();
        let start = start + object[start..].find('>').unwrap() + 1;
        let end = start + object[start..].find('<').unwrap();
        format!("{}{text}{}", &object[..start], &object[end..])
    };
    let object = with(object.into(), "<obj ", &format!("vm-{number}"));
    let object = with(object, "<name>summary.config.uuid</name><val ", &uuid(number));
    format!("<objects>{object}</objects>")
}

/// A page of an answer; with a token when there are further ones.
fn page(objects: &[String], token: Option<String>) -> FakeAnswer {
    let token = token.map_or(String::new(), |token| format!("<token>{token}</token>"));
    let objects = objects.concat();
    FakeAnswer::xml(
        200,
        &format!("<Envelope><Body><R><returnval>{token}{objects}</returnval></R></Body></Envelope>"),
    )
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    text.split_once(start)?.1.split_once(end).map(|(inner, _)| inner)
}

#[test]
fn thousand_nodes_among_5000_machines_cost_a_call_per_page() {
    let keys = recorded(include_str!("../recorded/keys_first_page.xml"));
    let machines = recorded(include_str!("../recorded/machines.xml"));
    let host = FakeHost::new();
    host.config("global: {server: vc.test}");
    host.secret("vc.test.username", "u").secret("vc.test.password", "p");
    let calls = Rc::new(RefCell::new(Vec::new()));
    let counted = Rc::clone(&calls);
    // What is left of the answer that is being paged.
    let mut rest: Vec<String> = Vec::new();
    let mut size = 0;
    host.serve(move |request: &SentRequest| {
        let text = request.text();
        let method = between(&text, "<Body><", " ").unwrap().to_owned();
        counted.borrow_mut().push(method.clone());
        match method.as_str() {
            "RetrieveServiceContent" => {
                return FakeAnswer::xml(200, recorded(include_str!("../recorded/service_content.xml")));
            }
            "Login" => {
                let login = recorded(include_str!("../recorded/login.xml"));
                return FakeAnswer::new(200, &[("set-cookie", "vmware_soap_session=s")], login);
            }
            "CreateContainerView" => return FakeAnswer::xml(200, recorded(include_str!("../recorded/view.xml"))),
            "RetrievePropertiesEx" => {
                size = between(&text, "<maxObjects>", "<").unwrap().parse().unwrap();
                rest = if text.contains("type=\"ContainerView\"") {
                    (0..MACHINES).map(|number| object(keys, number)).collect()
                } else {
                    let asked = text.split("<obj type=\"VirtualMachine\">vm-").skip(1);
                    asked
                        .map(|id| object(machines, id.split('<').next().unwrap().parse().unwrap()))
                        .collect()
                };
            }
            "ContinueRetrievePropertiesEx" => {}
            other => panic!("{other}"),
        }
        let now: Vec<String> = rest.drain(..size.min(rest.len())).collect();
        page(&now, (!rest.is_empty()).then(|| format!("left-{}", rest.len())))
    });
    let node = |number: usize| {
        NodeRef::named(format!("node-{number}")).with_provider_id(format!("vsphere://{}", uuid(number)))
    };
    // One of them has no machine.
    let mut nodes: Vec<NodeRef> = (0..NODES).map(|number| node(number * 5)).collect();
    nodes[700] = node(MACHINES + 1);
    let answers = host.provider::<Vsphere>().lookup(&nodes).unwrap();
    assert_eq!(answers.len(), NODES);
    for (number, (answer, node)) in answers.iter().zip(&nodes).enumerate() {
        match answer {
            Ok(Presence::Running(instance)) => assert_eq!(Some(&instance.provider_id), node.provider_id.as_ref()),
            Ok(Presence::Absent(Evidence::ById)) => assert_eq!(number, 700),
            other => panic!("{number}: {other:?}"),
        }
    }
    let count = |method: &str| calls.borrow().iter().filter(|call| *call == method).count();
    // Ten pages of ids, ten pages of machines.
    assert_eq!(
        (count("RetrievePropertiesEx"), count("ContinueRetrievePropertiesEx")),
        (2, 18)
    );
    assert_eq!(calls.borrow().len(), 23);
    // Later only the machines are read, and the inventory once more for the one that is gone: by the index, then in whole.
    calls.borrow_mut().clear();
    let known: Vec<NodeRef> = nodes.iter().take(NODES / 2).cloned().collect();
    host.provider::<Vsphere>().lookup(&known).unwrap();
    assert_eq!((count("RetrievePropertiesEx"), calls.borrow().len()), (1, 5));
}
