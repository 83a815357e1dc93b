//! Instances behind targets and the groups to open for them.

use std::fmt::Write as _;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use super::*;
use crate::testing::host;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn group(id: &str) -> Group {
    Group {
        id: id.into(),
        name: String::new(),
        tags: Vec::new(),
        rules: Vec::new(),
    }
}

#[test]
fn only_group_or_tagged_group_admits_traffic() {
    let of = |groups: &[&str], tagged: &[&str]| {
        node_group(
            "i-1",
            &texts(groups),
            &tagged.iter().map(|id| group(id)).collect::<Vec<_>>(),
        )
    };
    assert_eq!(of(&["sg-a"], &[]).unwrap(), "sg-a");
    assert_eq!(of(&["sg-a", "sg-b"], &["sg-b"]).unwrap(), "sg-b");
    assert_eq!(of(&[], &[]).unwrap(), "");
    for (tagged, word) in [(&["sg-a", "sg-b"][..], "more than one"), (&[][..], "none")] {
        let Err(Failure {
            kind: FailureKind::Invalid,
            message: text,
            ..
        }) = of(&["sg-a", "sg-b"], tagged).map_err(Failure::from)
        else {
            panic!("{tagged:?} was taken");
        };
        assert!(
            text.contains("i-1") && text.contains("sg-a, sg-b") && text.contains(word),
            "{text}"
        );
    }
}

#[test]
fn ids_parse_in_every_form_and_only_instances_count() {
    let node = |id: &str| NodeRef::named("n").with_provider_id(id);
    let nodes = [
        node("aws:///us-east-1a/i-2"),
        node("aws:////i-1"),
        node("i-3"),
        node("aws:///us-east-1a/i-2"),
        node("aws:///us-east-1a/fargate-ip-10-0-0-1"),
        NodeRef::named("joining"),
    ];
    assert_eq!(instance_ids(nodes.iter()), ["i-1", "i-2", "i-3"]);
}

#[test]
fn nodes_need_every_label_and_an_empty_value_requests_the_key() {
    let labels = [Pair::new("role", "edge"), Pair::new("zone", "a")];
    let has = |wanted: &[(&str, &str)]| {
        let wanted: Vec<Pair> = wanted.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        has_labels(&labels, &wanted)
    };
    assert!(has(&[("role", "edge"), ("zone", "")]));
    assert!(!has(&[("role", "edge"), ("zone", "b")]) && !has(&[("other", "")]));
}

/// An id of AWS's length.
fn id(number: usize) -> String {
    format!("i-{number:017x}")
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(id).collect()
}

/// Answers as EC2 does about instances in two groups, of which one has the cluster's tag, in an order that is not theirs.
fn describe(request: &SentRequest) -> FakeAnswer {
    let mut items = String::new();
    if request.text().contains("Action=DescribeSecurityGroups&") {
        items +=
            "<item><groupId>sg-0123456789abcdef0</groupId></item><item><groupId>sg-0123456789abcdef1</groupId></item>";
        return FakeAnswer::xml(200, &format!("<R><securityGroupInfo>{items}</securityGroupInfo></R>"));
    }
    let text = request.text();
    let asked = text.split('&').filter_map(|field| {
        let (name, value) = field.split_once('=')?;
        name.starts_with("InstanceId.").then_some(value)
    });
    let mut asked: Vec<&str> = asked.collect();
    asked.reverse();
    for id in asked {
        let odd = id.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']);
        let group = if odd {
            "sg-0123456789abcdef1"
        } else {
            "sg-0123456789abcdef0"
        };
        let groups = format!("<groupSet><item><groupId>{group}</groupId></item></groupSet>");
        write!(
            items,
            "<item><instancesSet><item><instanceId>{id}</instanceId>{groups}</item></instancesSet></item>"
        )
        .unwrap();
    }
    FakeAnswer::xml(200, &format!("<R><reservationSet>{items}</reservationSet></R>"))
}

/// What is known of these instances, and how many requests for instances AWS got.
fn look(host: &FakeHost, ids: &[String]) -> (Instances, usize) {
    let of = |host: &FakeHost| {
        let all = host.requests();
        all.iter()
            .filter(|one| one.text().contains("Action=DescribeInstances&"))
            .count()
    };
    let before = of(host);
    let found = host.provider::<Aws>().known_instances(ids);
    (found.map_err(Failure::from).unwrap(), of(host) - before)
}

#[test]
fn fifty_thousand_instances_fit_in_state_requested_once() {
    for count in [5_000, 50_000] {
        let (host, ids) = (host(), ids(count));
        host.serve(describe);
        let (found, asked) = look(&host, &ids);
        assert_eq!((asked, &found.ids), (count / 1000, &ids));
        assert_eq!(found.groups, ["sg-0123456789abcdef0", "sg-0123456789abcdef1"]);
        assert_eq!(look(&host, &ids), (found, 0));
        // Of some only their own group is reported, and one that joins is requested alone.
        let some = [id(2), id(4), id(count)];
        let (found, asked) = look(&host, &some);
        assert_eq!((asked, found.ids.as_slice()), (1, some.as_slice()));
        assert_eq!(found.groups, ["sg-0123456789abcdef0"]);
        assert_eq!(look(&host, &some).1, 0);
        assert!(host.logs().is_empty(), "{:?}", host.logs());
    }
}

#[test]
fn full_state_fails_nothing_and_is_reported_once() {
    let (host, ids) = (host(), ids(2_000));
    host.state_limit(30_000).serve(describe);
    for _ in 0..3 {
        let (found, asked) = look(&host, &ids);
        assert_eq!((asked, &found.ids), (2, &ids), "each time anew");
        assert_eq!(found.groups.len(), 2);
    }
    let logs = host.logs();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert!(logs[0].message.contains("grants.state.maxBytes"), "{logs:?}");
    // What fits is still kept.
    assert_eq!(look(&host, &ids[..1_000]).1, 1);
    assert_eq!(look(&host, &ids[..1_000]).1, 0);
}
