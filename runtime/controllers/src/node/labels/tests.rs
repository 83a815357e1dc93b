//! `Test_reconcileNodeLabels`, the label rows of `Test_syncNode`, and the values the API server refuses.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn successors_follow_their_deprecated_twins() {
    let beta = [
        (BETA_ZONE, "foo"),
        (BETA_REGION, "bar"),
        (BETA_INSTANCE_TYPE, "the-best-type"),
    ];
    let stable = [(ZONE, "foo"), (REGION, "bar"), (INSTANCE_TYPE, "the-best-type")];
    let wrong = [(ZONE, "wrong"), (REGION, "wrong"), (INSTANCE_TYPE, "wrong")];
    for (name, current, expected) in [
        ("needs reconcile", labels(&beta), labels(&stable)),
        (
            "already right",
            labels(&[&beta[..], &stable[..]].concat()),
            Labels::new(),
        ),
        (
            "secondaries differ",
            labels(&[&beta[..], &wrong[..]].concat()),
            labels(&stable),
        ),
        ("a successor alone is left alone", labels(&stable), Labels::new()),
        ("no labels", Labels::new(), Labels::new()),
    ] {
        assert_eq!(reconciled(&current.into_iter().collect()), expected, "{name}");
    }
}

#[test]
fn type_zone_and_region_overwrite_under_both_names() {
    let instance = Instance {
        instance_type: Some("t1.micro".into()),
        zone: Some("us-west-1a".into()),
        region: Some("us-west".into()),
        ..Instance::default()
    };
    let current = labels(&[(ZONE, "elsewhere"), (BETA_ZONE, "us-west-1a"), ("other", "kept")]);
    let (wanted, dropped) = for_instance(&current.into_iter().collect(), &instance);
    assert_eq!(
        wanted,
        labels(&[
            (INSTANCE_TYPE, "t1.micro"),
            (BETA_INSTANCE_TYPE, "t1.micro"),
            (ZONE, "us-west-1a"),
            (REGION, "us-west"),
            (BETA_REGION, "us-west"),
        ])
    );
    assert_eq!(dropped, []);
}

#[test]
fn keys_in_a_kubernetes_namespace_are_reserved() {
    for key in [
        "kubernetes.io/x",
        "k8s.io/x",
        "topology.kubernetes.io/x",
        "foo.k8s.io/x",
        "a.b.kubernetes.io/x",
    ] {
        assert!(is_reserved(key), "{key}");
    }
    for key in [
        "k8snio/x",
        "app.k8snio/x",
        "topology.k8s.cp/x",
        "mykubernetes.io/x",
        "mykubernetes.io.k8s.org/x",
        "x",
    ] {
        assert!(!is_reserved(key), "{key}");
    }
}

#[test]
fn label_invalid_for_api_server_is_dropped_alone() {
    let long = "x".repeat(64);
    let instance = Instance {
        zone: Some("Zone with spaces".into()),
        region: Some("good".into()),
        labels: labels(&[
            ("good", "ok"),
            ("empty", ""),
            ("value", "-starts-badly"),
            ("long", &long),
            ("Bad Key", "x"),
            ("UPPER.example/x", "x"),
            ("example.com/", "x"),
            ("a/b/c", "x"),
            ("umlaut", "zürich"),
        ]),
        ..Instance::default()
    };
    let (wanted, dropped) = for_instance(&CompactLabels::default(), &instance);
    assert_eq!(
        wanted,
        labels(&[(REGION, "good"), (BETA_REGION, "good"), ("good", "ok"), ("empty", "")])
    );
    assert!(
        dropped
            .iter()
            .all(|label| matches!(label.reason, DropReason::Invalid(_))),
        "{dropped:?}"
    );
    let keys: Vec<&str> = dropped.iter().map(|label| label.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            BETA_ZONE,
            ZONE,
            "Bad Key",
            "UPPER.example/x",
            "a/b/c",
            "example.com/",
            "long",
            "umlaut",
            "value"
        ]
    );
}

/// `Test_syncNode`, row 19.
#[test]
fn further_labels_never_overrule_the_node_or_kubernetes() {
    let instance = Instance {
        zone: Some("us-west-1a".into()),
        region: Some("us-west".into()),
        labels: labels(&[
            (REGION, "us-other-west"),
            ("topology.k8s.io/region", "us-other-west"),
            ("kubernetes.io/region", "us-other-west"),
            ("k8s.io/region", "us-other-west"),
            ("my.custom.label/foo", "bar"),
            ("my.custom.label/bar", "foo"),
            ("app.k8snio/bar", "foo"),
            ("k8snio/bar", "foo"),
        ]),
        ..Instance::default()
    };
    let current = labels(&[("my.custom.label/foo", "fizz"), ("my.custom.label/bar", "foo")]);
    let (wanted, dropped) = for_instance(&current.into_iter().collect(), &instance);
    assert_eq!(
        wanted,
        labels(&[
            (ZONE, "us-west-1a"),
            (BETA_ZONE, "us-west-1a"),
            (REGION, "us-west"),
            (BETA_REGION, "us-west"),
            ("app.k8snio/bar", "foo"),
            ("k8snio/bar", "foo"),
        ])
    );
    let reasons: Vec<(&str, &DropReason)> = dropped
        .iter()
        .map(|label| (label.key.as_str(), &label.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            ("k8s.io/region", &DropReason::Reserved),
            ("kubernetes.io/region", &DropReason::Reserved),
            ("my.custom.label/foo", &DropReason::Present("fizz".into())),
            ("topology.k8s.io/region", &DropReason::Reserved),
            (REGION, &DropReason::Reserved),
        ]
    );
}
