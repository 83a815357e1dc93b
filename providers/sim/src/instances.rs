//! Machines behind Nodes, many in few requests.
//!
//! A Node with a provider id is looked up by that id and by nothing else; only then may the answer be "absent, by id", which
//! lets the controller delete the Node. A Node without one is searched by name, and finding nothing is no evidence: the machine
//! may be in another region, or the Node may be called differently.

use cloudwit_guest_sdk::lookup::{Answers, Batch, Existing, Found, Id, Key, Machines, Name};
use cloudwit_guest_sdk::prelude::*;

use crate::Sim;
use crate::api::{Machine, MachineState, Network};

impl Machines for Sim {
    type Machine = Machine;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        Key::of(node, &self.prefix)
    }

    /// A page is the most that can be requested at once.
    fn batch(&self) -> Batch {
        let page = self.api.page_size();
        Batch {
            ids: page,
            names: page,
            ..Batch::default()
        }
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        answers.found_all(self.api.machines_by_id(ids)?, |machine| Key::Id(&machine.id));
        // The cloud answers for every id, wherever its machine is: what it leaves out does not exist.
        for id in ids {
            answers.denied(*id);
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Machine>) -> Result<(), Failure> {
        answers.found_all(self.api.machines_by_name(names)?, |machine| Key::Name(&machine.name));
        Ok(())
    }

    fn label(&self, machine: &Machine) -> String {
        machine.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Machine>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let existing = |found: &Found<'_, Machine>| {
            let instance = instance(found.machine, &self.prefix);
            Ok(match found.machine.state {
                MachineState::Running => Existing::Running(instance),
                MachineState::Stopped => Existing::Stopped(instance),
            })
        };
        Ok(found.iter().map(existing).collect())
    }
}

/// A machine in the contract's words.
pub(crate) fn instance(machine: &Machine, prefix: &str) -> Instance {
    let mut instance = Instance::new(format!("{prefix}{}", machine.id));
    instance.instance_type = Some(machine.kind.clone());
    instance.zone = Some(machine.zone.clone());
    instance.region = Some(machine.region.clone());
    instance.labels = machine
        .labels
        .iter()
        .map(|(key, value)| Pair::new(key, value))
        .collect();
    instance
        .addresses
        .push(Address::new(AddressKind::Hostname, machine.name.clone()));
    for address in &machine.addresses {
        let kind = match address.network {
            Network::Private => AddressKind::InternalIp,
            Network::Public => AddressKind::ExternalIp,
        };
        instance.addresses.push(Address::new(kind, address.ip.clone()));
    }
    instance
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::prelude::*;
    use cloudwit_guest_sdk::testing::{FakeHost, placeholder};
    use serde_json::{Value, json};

    use crate::Sim;

    fn host() -> FakeHost {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test", "region": "sim-1", "pageSize": 2}"#)
            .secret("token", "t0ken");
        host
    }

    fn machine(id: &str, name: &str, state: &str) -> Value {
        json!({"id": id, "name": name, "type": "small", "zone": "sim-1a", "region": "sim-1", "state": state,
            "addresses": [{"network": "private", "ip": "10.0.0.1"}, {"network": "public", "ip": "198.51.100.9"}],
            "labels": {"sim.cloudwit.dev/rack": "7"}})
    }

    fn by_id(id: &str) -> NodeRef {
        NodeRef::named(id).with_provider_id(format!("sim://{id}"))
    }

    #[test]
    fn node_with_provider_id_is_looked_up_by_it() {
        let host = host();
        host.expect("GET", "https://sim.test/v1/instances?ids=vm-1&limit=2")
            .with_header(
                "authorization",
                &format!("Bearer {}", placeholder("token", Encoding::Plain)),
            )
            .answers(
                200,
                json!({"items": [machine("vm-1", "other-name", "running")], "next": null}),
            );
        let answer = host.provider::<Sim>().lookup(&[by_id("vm-1")]).unwrap();
        let Ok(Presence::Running(instance)) = &answer[0] else {
            panic!("{answer:?}")
        };
        assert_eq!(instance.provider_id, "sim://vm-1");
        assert_eq!(instance.instance_type.as_deref(), Some("small"));
        assert_eq!(
            (instance.zone.as_deref(), instance.region.as_deref()),
            (Some("sim-1a"), Some("sim-1"))
        );
        assert_eq!(
            instance.addresses,
            [
                Address::new(AddressKind::Hostname, "other-name"),
                Address::new(AddressKind::InternalIp, "10.0.0.1"),
                Address::new(AddressKind::ExternalIp, "198.51.100.9"),
            ]
        );
        assert_eq!(instance.labels, [Pair::new("sim.cloudwit.dev/rack", "7")]);
    }

    #[test]
    fn second_cloud_gives_its_own_ids_only() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test", "providerIdScheme": "sim-b"}"#)
            .secret("token", "t0ken");
        assert_eq!(host.describe::<Sim>().provider_id_prefixes, ["sim-b://"]);
        host.expect("GET", "https://sim.test/v1/instances?ids=vm-1&limit=1000")
            .answers(200, json!({"items": [machine("vm-1", "a", "running")], "next": null}));
        let own = NodeRef::named("a").with_provider_id("sim-b://vm-1");
        let answers = host.provider::<Sim>().lookup(&[own, by_id("vm-2")]).unwrap();
        let Ok(Presence::Running(instance)) = &answers[0] else {
            panic!("{answers:?}")
        };
        assert_eq!(instance.provider_id, "sim-b://vm-1");
        assert!(matches!(
            answers[1],
            Err(Failure {
                kind: FailureKind::Invalid,
                ..
            })
        ));
    }

    #[test]
    fn long_names_take_more_requests_so_that_no_url_is_too_long() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test"}"#)
            .secret("token", "t0ken");
        let names: Vec<String> = (0..250).map(|number| format!("{number:0>253}")).collect();
        // Each name and its comma take 256 of 30,000 bytes.
        for part in names.chunks(117) {
            let url = format!("https://sim.test/v1/instances?names={}&limit=1000", part.join("%2C"));
            assert!(url.len() < 31_000);
            let machines: Vec<Value> = part.iter().map(|name| machine(name, name, "running")).collect();
            host.expect("GET", &url)
                .answers(200, json!({"items": machines, "next": null}));
        }
        let nodes: Vec<NodeRef> = names.iter().map(NodeRef::named).collect();
        let answers = host.provider::<Sim>().lookup(&nodes).unwrap();
        assert_eq!(answers.len(), 250);
        for (name, answer) in names.iter().zip(answers) {
            let Ok(Presence::Running(instance)) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(instance.provider_id, format!("sim://{name}"));
        }
    }

    #[test]
    fn many_nodes_take_few_requests_and_keep_their_order() {
        let host = host();
        host.expect("GET", "https://sim.test/v1/instances?ids=vm-3%2Cvm-1&limit=2")
            .answers(
                200,
                json!({"items": [machine("vm-1", "a", "running"), machine("vm-3", "c", "stopped")], "next": null}),
            );
        host.expect("GET", "https://sim.test/v1/instances?ids=vm-9&limit=2")
            .answers(200, json!({"items": [], "next": null}));
        host.expect(
            "GET",
            "https://sim.test/v1/instances?names=fresh%2Cgone&region=sim-1&limit=2",
        )
        .answers(
            200,
            json!({"items": [machine("vm-4", "fresh", "running")], "next": null}),
        );
        let nodes = [
            by_id("vm-3"),
            NodeRef::named("fresh"),
            by_id("vm-1"),
            NodeRef::named("gone"),
            by_id("vm-9"),
        ];
        let answer = host.provider::<Sim>().lookup(&nodes).unwrap();
        let told: Vec<String> = answer
            .into_iter()
            .map(|presence| match presence.unwrap() {
                Presence::Running(instance) => format!("{} runs", instance.provider_id),
                Presence::Stopped(instance) => format!("{} stopped", instance.provider_id),
                Presence::Absent(Evidence::ById) => "absent by id".into(),
                Presence::Absent(Evidence::ByName) => "absent by name".into(),
            })
            .collect();
        assert_eq!(
            told,
            [
                "sim://vm-3 stopped",
                "sim://vm-4 runs",
                "sim://vm-1 runs",
                "absent by name",
                "absent by id"
            ]
        );
    }

    #[test]
    fn further_pages_are_fetched() {
        let host = host();
        host.expect("GET", "https://sim.test/v1/instances?names=a&region=sim-1&limit=2")
            .answers(200, json!({"items": [], "next": "at-2"}));
        host.expect(
            "GET",
            "https://sim.test/v1/instances?names=a&region=sim-1&limit=2&token=at-2",
        )
        .answers(200, json!({"items": [machine("vm-1", "a", "running")], "next": null}));
        let answer = host.provider::<Sim>().lookup(&[NodeRef::named("a")]).unwrap();
        assert!(matches!(answer[0], Ok(Presence::Running(_))), "{answer:?}");
    }

    #[test]
    fn two_machines_of_one_name_are_a_failure_of_that_node_only() {
        let host = host();
        host.expect(
            "GET",
            "https://sim.test/v1/instances?names=twin%2Cother&region=sim-1&limit=2",
        )
        .answers(
            200,
            json!({"items": [machine("vm-1", "twin", "running"), machine("vm-2", "twin", "running"),
                machine("vm-3", "other", "running")], "next": null}),
        );
        let answer = host
            .provider::<Sim>()
            .lookup(&[NodeRef::named("twin"), NodeRef::named("other")])
            .unwrap();
        let Err(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) = &answer[0]
        else {
            panic!("{answer:?}")
        };
        assert!(text.contains("vm-1, vm-2") && text.contains("twin"), "{text}");
        assert!(matches!(answer[1], Ok(Presence::Running(_))));
    }

    #[test]
    fn a_node_of_another_cloud_is_refused_without_a_request() {
        let host = host();
        let node = NodeRef::named("a").with_provider_id("aws:///z/i-1");
        let answer = host.provider::<Sim>().lookup(&[node]).unwrap();
        assert!(
            matches!(&answer[0], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("aws:///z/i-1")),
            "{answer:?}"
        );
    }

    #[test]
    fn an_error_of_the_cloud_is_never_absence() {
        let host = host();
        let url = "https://sim.test/v1/instances?ids=vm-1&limit=2";
        host.expect("GET", url).answers(404, json!({"error": "what list?"}));
        assert!(matches!(
            host.provider::<Sim>().lookup(&[by_id("vm-1")]),
            Err(Failure {
                kind: FailureKind::NotFound,
                ..
            })
        ));
        host.expect("GET", url).answers_with(200, &[], "<html>");
        assert!(matches!(
            host.provider::<Sim>().lookup(&[by_id("vm-1")]),
            Err(Failure {
                kind: FailureKind::Other,
                ..
            })
        ));
        host.expect("GET", url).breaks();
        assert!(matches!(
            host.provider::<Sim>().lookup(&[by_id("vm-1")]),
            Err(Failure {
                kind: FailureKind::Unavailable,
                ..
            })
        ));
        host.expect("GET", url).is_refused();
        let refused = host.provider::<Sim>().lookup(&[by_id("vm-1")]).unwrap_err();
        assert!(
            matches!(&refused, Failure { kind: FailureKind::Denied, message: text, .. } if text.contains("grant")),
            "{refused:?}"
        );
    }
}
