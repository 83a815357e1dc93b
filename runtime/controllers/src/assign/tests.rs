use cloudwit_model::Instance;
use proptest::prelude::*;

use super::*;
use crate::testing::FakeCloud;

/// Providers with these names and prefixes; the fake cloud has machines and no load balancers, so abilities are set below.
fn providers(all: &[(&str, &[&str])], default: &str, rules: ServiceRules) -> Providers {
    let provider = |(name, prefixes): &(&str, &[&str])| Provider {
        name: (*name).into(),
        cloud: FakeCloud::new(Ok(Presence::Absent(Evidence::ById))),
        provider_id_prefixes: Some(prefixes.iter().map(|prefix| (*prefix).to_owned()).collect()),
        volumes: None,
    };
    Providers {
        list: all.iter().map(provider).collect(),
        default: default.into(),
        rules,
    }
}

fn two() -> Providers {
    providers(&[("a", &["a://"]), ("b", &["b://"])], "a", ServiceRules::default())
}

/// The same, all of which have load balancers but `without`.
fn balancing<'a>(providers: &'a Providers, without: &str) -> Assignment<'a> {
    let mut assignment = providers.assignment();
    for member in &mut assignment.members {
        member.abilities.load_balancers = member.identity.name != without;
    }
    assignment
}

fn name<'a>(assignment: &'a Assignment<'_>, id: Option<&str>, label: Option<&str>) -> Option<&'a str> {
    assignment
        .of_node(id, label)
        .map(|member| member.identity.name.as_str())
}

fn service(annotations: &[(&str, &str)], class: Option<&str>) -> Service {
    Service {
        name: "web".into(),
        annotations: annotations.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        load_balancer_class: class.map(Into::into),
        ..Service::default()
    }
}

#[test]
fn id_decides_before_label_and_label_before_default() {
    let providers = providers(
        &[("a", &["a://", "old-a://"]), ("b", &["b://"])],
        "b",
        ServiceRules::default(),
    );
    let all = providers.assignment();
    assert_eq!(name(&all, Some("a://1"), None), Some("a"));
    assert_eq!(name(&all, Some("old-a://1"), Some("b")), Some("a"));
    assert_eq!(name(&all, None, Some("a")), Some("a"));
    assert_eq!(name(&all, None, None), Some("b"));
    assert_eq!(
        name(&all, Some("c://1"), None),
        None,
        "a foreign id is not the default's"
    );
    assert_eq!(
        name(&all, Some("c://1"), Some("a")),
        None,
        "a label changes nothing about that"
    );
    assert_eq!(name(&all, None, Some("c")), None, "a wrong name is not the default's");
    assert_eq!(all.explains(None, Some("c")), Some("b"), "which says so on the Node");
    assert_eq!(all.explains(Some("c://1"), None), Some("b"));
}

#[test]
fn provider_without_prefixes_has_every_node_only_alone() {
    let single = providers(&[("a", &[])], "a", ServiceRules::default());
    let single = single.assignment();
    assert_eq!(name(&single, Some("x://1"), Some("b")), Some("a"));
    assert_eq!(
        name(&single, None, Some("b")),
        Some("a"),
        "there is nothing to choose from"
    );
    let several = providers(&[("a", &[]), ("b", &["b://"])], "a", ServiceRules::default());
    assert_eq!(name(&several.assignment(), Some("x://1"), None), None);
    assert_eq!(name(&several.assignment(), None, None), Some("a"));
}

#[test]
fn stray_nodes_give_reason() {
    let providers = two();
    let mut all = providers.assignment();
    all.members[1].abilities.instances = false;
    let node = |id: Option<&str>, label: Option<&str>| NodeRef {
        provider_id: id.map(Into::into),
        provider: label.map(Into::into),
        ..NodeRef::default()
    };
    let why = |node: NodeRef| all.stray(&node).map(|failure| failure.to_string());
    assert_eq!(why(node(Some("a://1"), None)), None);
    assert!(
        why(node(None, Some("c")))
            .unwrap()
            .contains("names the provider \"c\", which is not configured")
    );
    assert!(
        why(node(Some("b://1"), None))
            .unwrap()
            .contains("cannot be asked about machines")
    );
    assert!(
        why(node(Some("c://1"), None))
            .unwrap()
            .contains("c://1 is not of a configured provider")
    );
}

#[test]
fn machine_with_foreign_id_is_refused() {
    let providers = two();
    let all = providers.assignment();
    let machine = |id: &str| {
        Presence::Running(Instance {
            provider_id: id.into(),
            ..Instance::default()
        })
    };
    let node = NodeRef::default();
    assert!(all.checked("a", &node, machine("a://1")).is_ok());
    for id in ["b://9", "z://1"] {
        let text = all.checked("a", &node, machine(id)).unwrap_err().to_string();
        assert!(
            text.contains("provider \"a\" answers with the machine") && text.contains(id),
            "{text}"
        );
    }
    let absent = all.checked("a", &node, Presence::Absent(Evidence::ById));
    assert_eq!(
        absent,
        Ok(Presence::Absent(Evidence::ByName)),
        "without an id it was only a search"
    );
}

#[test]
fn class_precedes_annotation_and_annotation_precedes_default() {
    let rules = ServiceRules {
        classes: [
            ("example.com/a".into(), "a".into()),
            ("example.com/b".into(), "b".into()),
        ]
        .into(),
        annotations: [(("lb".into(), "south".into()), "b".into())].into(),
    };
    let providers = providers(&[("a", &["a://"]), ("b", &["b://"])], "a", rules);
    let all = providers.assignment();
    let wanted = |annotations: &[(&str, &str)], class| {
        all.wanted(&service(annotations, class))
            .map(|name| name.unwrap().to_owned())
    };
    assert_eq!(wanted(&[], None).unwrap(), "a");
    assert_eq!(wanted(&[], Some("example.com/b")).unwrap(), "b");
    assert_eq!(wanted(&[(PROVIDER, "b")], None).unwrap(), "b");
    assert_eq!(wanted(&[("lb", "south")], None).unwrap(), "b");
    assert_eq!(wanted(&[("lb", "north")], None).unwrap(), "a");
    assert_eq!(wanted(&[(PROVIDER, "b")], Some("example.com/a")).unwrap(), "a");
    assert_eq!(wanted(&[(PROVIDER, "a"), ("lb", "south")], None).unwrap(), "a");
    let wrong = wanted(&[(PROVIDER, "c")], None).unwrap_err();
    assert_eq!(wrong.to_string(), "invalid: there is no provider \"c\"; known: a, b");
}

#[test]
fn service_stays_with_the_provider_that_has_its_balancer() {
    let providers = two();
    let all = balancing(&providers, "");
    let moved = service(&[(BALANCER_PROVIDER, "b"), (PROVIDER, "a")], None);
    assert_eq!((all.balances(&moved), all.wanted(&moved)), (Some("b"), Ok(Some("a"))));
    let lost = service(&[(BALANCER_PROVIDER, "c")], None);
    let text = all.of_service(&lost).unwrap_err().to_string();
    assert!(
        text.contains("provider \"c\"") && text.contains("not configured"),
        "{text}"
    );
    assert_eq!(all.balances(&lost), Some("a"), "which says so");
    let without = balancing(&providers, "b");
    let text = without
        .of_service(&service(&[(PROVIDER, "b")], None))
        .unwrap_err()
        .to_string();
    assert!(text.contains("provider \"b\" offers no load balancers"), "{text}");
}

#[test]
fn provider_cannot_move_a_balancer_itself() {
    let change = |key: &str| AnnotationChange {
        key: key.into(),
        value: None,
    };
    let left = strip_reserved(vec![
        change(BALANCER_PROVIDER),
        change("cloud.example/id"),
        change(PROVIDER),
    ]);
    assert_eq!(left, [change("cloud.example/id")]);
}

#[test]
fn unknown_names_in_the_rules_are_all_reported() {
    let rules = ServiceRules {
        classes: [("c".into(), "x".into())].into(),
        annotations: [(("k".into(), "v".into()), "y".into())].into(),
    };
    let mistakes = Providers::new(
        providers(&[("a", &["a://"])], "a", ServiceRules::default()).list,
        "z",
        rules,
    )
    .unwrap_err();
    for name in ["\"x\"", "\"y\"", "\"z\""] {
        let told = mistakes
            .iter()
            .any(|one| one.contains(name) && one.ends_with("known: a"));
        assert!(told, "{mistakes:?}");
    }
}

#[test]
fn overlapping_prefixes_are_named_with_the_way_out() {
    let clashes = |a: &[&str], b: &[&str]| {
        providers(&[("a", a), ("b", b)], "a", ServiceRules::default())
            .assignment()
            .clashes()
    };
    assert_eq!(clashes(&["os://"], &["aws://"]), Vec::<String>::new());
    let text = clashes(&["os://"], &["os://region/"]).join("");
    assert!(
        text.contains("\"os://region/\"") && text.contains("providerIDPrefixes"),
        "{text}"
    );
}

fn prefixes() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec("[ab]{1,3}", 0..3), 2..4)
}

fn numbered(prefixes: &[Vec<String>], default: usize) -> Providers {
    let provider = |(at, prefixes): (usize, &Vec<String>)| Provider {
        name: format!("p{at}"),
        cloud: FakeCloud::new(Ok(Presence::Absent(Evidence::ById))),
        provider_id_prefixes: Some(prefixes.clone()),
        volumes: None,
    };
    Providers {
        list: prefixes.iter().enumerate().map(provider).collect(),
        default: format!("p{default}"),
        rules: ServiceRules::default(),
    }
}

proptest! {
    #[test]
    fn node_with_id_belongs_to_the_only_claimant(prefixes in prefixes(), id in "[ab]{1,4}", label in "p[0-3]") {
        let providers = numbered(&prefixes, 0);
        let all = providers.assignment();
        let claims = |all: &Vec<String>| all.iter().any(|prefix| id.starts_with(prefix.as_str()));
        let claimants: Vec<String> = (0..prefixes.len()).filter(|at| claims(&prefixes[*at])).map(|at| format!("p{at}")).collect();
        let expected = if let [only] = &claimants[..] { Some(only.as_str()) } else { None };
        prop_assert_eq!(name(&all, Some(&id), Some(&label)), expected);
        prop_assert_eq!(name(&all, Some(&id), None), expected, "a label decides nothing beside an id");
        if claimants.len() > 1 {
            prop_assert!(!all.clashes().is_empty());
        }
    }

    #[test]
    fn node_without_id_belongs_to_its_label_or_the_default(prefixes in prefixes(), default in 0usize..5, label in prop::option::of("p[0-5]")) {
        let providers = numbered(&prefixes, default);
        let all = providers.assignment();
        let expected = label.clone().unwrap_or_else(|| format!("p{default}"));
        let known = (0..prefixes.len()).any(|at| format!("p{at}") == expected);
        prop_assert_eq!(name(&all, None, label.as_deref()), known.then_some(expected.as_str()));
    }
}
