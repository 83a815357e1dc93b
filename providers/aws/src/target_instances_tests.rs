//! Instances behind targets and the groups to open for them.

use super::*;

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
fn the_only_group_or_the_only_one_with_the_clusters_tag_lets_traffic_in() {
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
        let Err(Failure::Invalid(text)) = of(&["sg-a", "sg-b"], tagged).map_err(Failure::from) else {
            panic!("{tagged:?} was taken");
        };
        assert!(
            text.contains("i-1") && text.contains("sg-a, sg-b") && text.contains(word),
            "{text}"
        );
    }
}

#[test]
fn ids_come_from_every_form_of_provider_id_and_only_instances_count() {
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
fn nodes_need_every_label_and_an_empty_value_asks_for_the_key() {
    let labels = [Pair::new("role", "edge"), Pair::new("zone", "a")];
    let has = |wanted: &[(&str, &str)]| {
        let wanted: Vec<Pair> = wanted.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
        has_labels(&labels, &wanted)
    };
    assert!(has(&[("role", "edge"), ("zone", "")]));
    assert!(!has(&[("role", "edge"), ("zone", "b")]) && !has(&[("other", "")]));
}
