//! What a table's routes are, and what is done about them.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;
use ipnet::IpNet;

use super::*;
use crate::testing::{instance_ids, route_tables};

fn cidr(text: &str) -> IpNet {
    cidr::parse(text).unwrap()
}

/// The recorded table, with this done to the route to 10.244.0.0/24.
fn table(old: &str, new: &str) -> Table {
    let text = route_tables().replacen(old, new, 1);
    assert!(old.is_empty() || text != route_tables(), "{old} was not recorded");
    let answer = Element::parse(&text).unwrap();
    Table::read(answer.at(&["routeTableSet", "item"]).unwrap())
}

fn recorded() -> Table {
    table("", "")
}

/// As EC2 has a route whose instance was terminated: it has the interface, but may have no instance.
fn dead() -> Table {
    let hop = format!(
        "<instanceId>{}</instanceId><origin>CreateRoute</origin><state>active",
        instance_ids()[0]
    );
    table(
        &hop,
        "<networkInterfaceId>eni-1</networkInterfaceId><origin>CreateRoute</origin><state>blackhole",
    )
}

#[test]
fn a_recorded_table_is_read() {
    let table = recorded();
    let seen: Vec<(&str, &Hop)> = table
        .routes
        .iter()
        .map(|route| (route.destination.as_str(), &route.hop))
        .collect();
    let instance = |index: usize| Hop::Instance(instance_ids()[index].into());
    assert_eq!(seen.len(), 5);
    assert_eq!(seen[0], ("10.0.0.0/16", &Hop::Other));
    assert_eq!(seen[2], ("0.0.0.0/0", &Hop::Other));
    assert_eq!(seen[3], ("10.244.0.0/24", &instance(0)));
    assert_eq!(seen[4], ("10.244.9.0/24", &instance(4)));
    assert!(table.id.starts_with("rtb-") && table.tags == [Pair::new("kubernetes.io/cluster/test", "owned")]);
}

#[test]
fn route_is_created_if_missing_and_dead_one_replaced() {
    let id = instance_ids()[0];
    assert_eq!(creation(&recorded(), cidr("10.244.0.0/24"), id), Step::Nothing);
    assert_eq!(creation(&recorded(), cidr("10.244.7.0/24"), id), Step::Create);
    assert_eq!(
        creation(&dead(), cidr("10.244.0.0/24"), id),
        Step::Replace("10.244.0.0/24".into())
    );
    // A foreign live route is refused by AWS and never replaced.
    assert_eq!(creation(&recorded(), cidr("0.0.0.0/0"), id), Step::Create);
    assert_eq!(creation(&recorded(), cidr("10.244.9.0/24"), id), Step::Create);
}

#[test]
fn a_black_hole_behind_a_gateway_is_not_ours() {
    let table = table(
        "<gatewayId>local</gatewayId><origin>CreateRouteTable</origin><state>active",
        "<gatewayId>igw-9</gatewayId><origin>CreateRoute</origin><state>blackhole",
    );
    assert!(table.routes[0].blackhole && !table.routes[0].is_dead());
    assert_eq!(creation(&table, cidr("10.0.0.0/16"), "i-1"), Step::Create);
    assert!(matches!(
        deletion(&table, cidr("10.0.0.0/16")),
        Err(Failure {
            kind: FailureKind::Conflict,
            ..
        })
    ));
}

#[test]
fn only_routes_to_machines_are_deleted() {
    assert_eq!(
        deletion(&recorded(), cidr("10.244.0.0/24")),
        Ok(Some("10.244.0.0/24".into()))
    );
    assert_eq!(
        deletion(&dead(), cidr("10.244.0.0/24")),
        Ok(Some("10.244.0.0/24".into()))
    );
    assert_eq!(deletion(&recorded(), cidr("10.99.0.0/24")), Ok(None));
    for destination in ["0.0.0.0/0", "10.0.0.0/16"] {
        assert!(
            matches!(deletion(&recorded(), cidr(destination)), Err(Failure { kind: FailureKind::Conflict, message: text, .. }) if text.contains(destination))
        );
    }
    // An interface without an instance that is alive: an appliance.
    let hop = format!("<instanceId>{}</instanceId>", instance_ids()[0]);
    let appliance = table(&hop, "<networkInterfaceId>eni-1</networkInterfaceId>");
    assert!(deletion(&appliance, cidr("10.244.0.0/24")).is_err());
}
