//! Answers about three machines, of which the one in the middle is odd in the way its Node's provider id says; lists a route that is none.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_test_guests::{TRIGGER, machine};

struct Guest;

impl Provider for Guest {
    type Config = NoConfig;

    fn describe(_: Option<&NoConfig>) -> Description {
        Description::new(module_path!(), env!("CARGO_PKG_VERSION")).prefix("test://")
    }

    fn new(_: NoConfig, _: Context) -> Result<Self, Failure> {
        Ok(Self)
    }

    fn probe(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A machine that is odd in this way.
fn odd(way: &str) -> Instance {
    let mut odd = machine(TRIGGER);
    match way {
        "test://many-addresses" => {
            let address = |number: u32| {
                let [a, b, c, d] = number.to_be_bytes();
                Address::new(AddressKind::InternalIp, format!("{a}.{b}.{c}.{d}"))
            };
            odd.addresses = (0..20_000).map(address).collect();
        }
        "test://foreign-id" => odd.provider_id = "other://1".into(),
        "test://empty-id" => odd.provider_id.clear(),
        "test://bad-address" => odd
            .addresses
            .push(Address::new(AddressKind::ExternalIp, "203.0.113.300")),
        "test://empty-label" => odd.labels.push(Pair::new("", "v")),
        "test://long-zone" => odd.zone = Some("z".repeat(1 << 20)),
        _ => {}
    }
    odd
}

impl Instances for Guest {
    fn lookup(&self, nodes: &[NodeRef]) -> cloudwit_test_guests::Lookup {
        let answer = |node: &NodeRef| match node.name == TRIGGER {
            true => Ok(Presence::Running(odd(node.provider_id.as_deref().unwrap_or_default()))),
            false => Ok(Presence::Running(machine(&node.name))),
        };
        Ok(nodes.iter().map(answer).collect())
    }
}

fn route(id: &str, destination: &str) -> Route {
    Route {
        id: id.into(),
        destination: destination.into(),
        node: None,
        next_hops: Vec::new(),
        blackhole: false,
    }
}

impl Routes for Guest {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        Ok(vec![
            route("a", "10.1.0.0/24"),
            route("odd", "10.0.0.0"),
            route("b", "10.2.0.0/24"),
        ])
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        Ok(RouteOutcome {
            created: create.iter().map(|_| Ok(())).collect(),
            deleted: delete.iter().map(|_| Ok(())).collect(),
        })
    }
}

register_provider!(Guest: Instances, Routes);
