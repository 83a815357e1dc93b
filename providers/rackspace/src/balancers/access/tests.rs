use super::*;

fn service(ranges: &[&str]) -> Service {
    let mut service = Service::new("default", "web", "u");
    service.source_ranges = ranges.iter().map(|range| (*range).into()).collect();
    service
}

fn shown(rules: &[Rule]) -> Vec<String> {
    rules
        .iter()
        .map(|rule| format!("{} {}", rule.kind(), rule.network))
        .collect()
}

fn item(id: u64, text: &str) -> AccessItem {
    let (kind, address) = text.split_once(' ').unwrap();
    AccessItem {
        id,
        address: address.into(),
        kind: kind.into(),
    }
}

const V4: &[IpFamily] = &[IpFamily::Ipv4];
const BOTH: &[IpFamily] = &[IpFamily::Ipv4, IpFamily::Ipv6];

#[test]
fn a_list_allows_the_ranges_of_each_family_and_denies_the_rest() {
    let list = |ranges: &[&str], families| shown(&wanted(&service(ranges), families).unwrap());
    assert_eq!(list(&[], BOTH), [""; 0]);
    assert_eq!(
        list(&["10.0.0.0/8", "192.0.2.7/32", "10.1.2.3/8"], V4),
        ["ALLOW 10.0.0.0/8", "ALLOW 192.0.2.7/32", "DENY 0.0.0.0/0"]
    );
    assert_eq!(
        list(&["10.0.0.0/8"], BOTH),
        ["ALLOW 10.0.0.0/8", "DENY 0.0.0.0/0", "DENY ::/0"]
    );
    assert_eq!(list(&["fd00::/8"], V4), ["DENY 0.0.0.0/0"], "nobody of IPv4");
    assert_eq!(list(&["0.0.0.0/0", "10.0.0.0/8"], V4), [""; 0], "everybody");
    assert_eq!(list(&["0.0.0.0/0", "fd00::/8"], BOTH), ["ALLOW fd00::/8", "DENY ::/0"]);
}

#[test]
fn more_ranges_than_a_list_has_room_for_are_refused() {
    let ranges: Vec<String> = (0..100).map(|number| format!("10.0.{number}.0/24")).collect();
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    assert_eq!(wanted(&service(&ranges[..99]), V4).unwrap().len(), 100);
    let failure = wanted(&service(&ranges), V4).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
}

#[test]
fn changes_add_first_and_take_denials_away_last() {
    let wanted = wanted(&service(&["10.0.0.0/8", "192.0.2.7/32"]), V4).unwrap();
    let right = [
        item(1, "DENY 0.0.0.0/0"),
        item(2, "ALLOW 192.0.2.7"),
        item(3, "ALLOW 10.0.0.0/8"),
    ];
    assert_eq!(next(&wanted, &right), None, "a single address is a network too");

    let lacking = [
        item(1, "DENY 0.0.0.0/0"),
        item(4, "ALLOW 172.16.0.0/12"),
        item(5, "DENY 198.51.100.1"),
    ];
    let Some(Next::Add(items)) = next(&wanted, &lacking) else {
        panic!("it adds")
    };
    assert_eq!(
        items,
        [
            json!({ "address": "10.0.0.0/8", "type": "ALLOW" }),
            json!({ "address": "192.0.2.7/32", "type": "ALLOW" })
        ]
    );
    let surplus = [right.as_slice(), &lacking[1..]].concat();
    assert_eq!(next(&wanted, &surplus), Some(Next::Delete(vec![4, 5])));
    let reverse: Vec<AccessItem> = surplus.into_iter().rev().collect();
    assert_eq!(
        next(&wanted, &reverse),
        Some(Next::Delete(vec![4, 5])),
        "what allows goes first"
    );
}

#[test]
fn an_address_of_the_other_type_makes_room_first() {
    let wanted = wanted(&service(&["10.0.0.0/8"]), V4).unwrap();
    let found = [item(1, "ALLOW 0.0.0.0/0")];
    assert_eq!(next(&wanted, &found), Some(Next::Delete(vec![1])));
}

#[test]
fn unwanted_list_is_dropped_as_a_whole() {
    assert_eq!(next(&[], &[]), None);
    assert_eq!(next(&[], &[item(1, "DENY 0.0.0.0/0")]), Some(Next::Clear));
}

#[test]
fn deletions_come_in_tens_and_full_list_empties_first() {
    let wanted = wanted(&service(&["10.0.0.0/8"]), V4).unwrap();
    let full: Vec<AccessItem> = (0..100)
        .map(|id| item(id, &format!("ALLOW 172.16.{id}.0/24")))
        .collect();
    assert_eq!(next(&wanted, &full), Some(Next::Delete((0..10).collect())));
}
