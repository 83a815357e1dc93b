//! What a configuration may look like, and the problems of one that is wrong.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::read;
use crate::Problems;
use crate::config::Tree;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    endpoint: String,
    region: Option<String>,
    #[serde(default = "five_hundred")]
    page_size: u16,
    #[serde(default)]
    verify: bool,
    #[serde(default)]
    load_balancer: Balancer,
    #[serde(default)]
    zones: Vec<Zone>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Balancer {
    scheme: Scheme,
    #[serde(default)]
    share: f64,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scheme {
    #[default]
    Public,
    Internal,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Zone {
    name: String,
}

fn five_hundred() -> u16 {
    500
}

fn read_value<T: DeserializeOwned>(tree: &Value, problems: &mut Problems) -> Option<T> {
    read(&Tree::from(tree.clone()), problems)
}

fn problems(tree: &Value) -> Vec<(String, String)> {
    let mut problems = Problems::default();
    let config: Option<Config> = read_value(tree, &mut problems);
    assert_eq!(config.is_none(), !problems.is_empty());
    problems
        .iter()
        .map(|problem| (problem.at.clone(), problem.message.clone()))
        .collect()
}

fn assert_problems(tree: &Value, expected: &[(&str, &str)]) {
    let found = problems(tree);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(at, message)| (at.as_str(), message.as_str()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_full_configuration_is_read_and_defaults_fill_the_rest() {
    let mut none = Problems::default();
    let config: Config = read_value(
        &json!({"endpoint": "https://x", "pageSize": "20", "verify": "true", "zones": [{"name": "a"}],
            "loadBalancer": {"scheme": "internal", "share": 0.5}, "labels": {"k": "v"}}),
        &mut none,
    )
    .unwrap();
    assert_eq!(
        config,
        Config {
            endpoint: "https://x".into(),
            region: None,
            page_size: 20,
            verify: true,
            load_balancer: Balancer {
                scheme: Scheme::Internal,
                share: 0.5
            },
            zones: vec![Zone { name: "a".into() }],
            labels: BTreeMap::from([("k".into(), "v".into())]),
        }
    );
    let small: Config = read_value(&json!({"endpoint": "x", "region": null}), &mut none).unwrap();
    assert_eq!((small.page_size, small.region), (500, None));
}

#[test]
fn all_mistakes_are_found_in_one_go() {
    assert_problems(
        &json!({"endpont": "https://x", "pageSize": 70_000, "verify": 1, "loadBalancer": {"scheme": "private"},
            "zones": [{"name": "a"}, {}, {"name": 7}], "labels": {"k": []}}),
        &[
            ("endpont", "there is no such key; did you mean \"endpoint\"?"),
            ("pageSize", "this must be a whole number from 0 to 65535, not 70000"),
            ("verify", "this must be true or false, not 1"),
            (
                "loadBalancer.scheme",
                "this must be one of public, internal, not the text \"private\"",
            ),
            ("zones[1].name", "this key is missing"),
            ("zones[2].name", "this must be text, not 7"),
            ("labels.k", "this must be text, not a list"),
            ("endpoint", "this key is missing"),
        ],
    );
}

#[test]
fn missing_object_is_one_mistake_not_one_per_key() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        inner: Zone,
    }
    let mut problems = Problems::default();
    assert!(read_value::<Outer>(&json!({}), &mut problems).is_none());
    assert_eq!(
        problems.iter().map(|problem| problem.at.as_str()).collect::<Vec<_>>(),
        ["inner"]
    );
}

#[test]
fn far_off_key_lists_the_known_ones() {
    let found = problems(&json!({"endpoint": "x", "loadBalancer": {"scheme": "public", "nonsense": 1}}));
    assert_eq!(
        found,
        [(
            "loadBalancer.nonsense".into(),
            "there is no such key; there are scheme, share".into()
        )]
    );
}

#[test]
fn wrong_containers_are_named() {
    assert_problems(
        &json!({"endpoint": {}, "zones": "a", "loadBalancer": 3, "region": 5}),
        &[
            ("endpoint", "this must be text, not an object"),
            ("region", "this must be text, not 5"),
            ("loadBalancer", "this must be an object with keys, not 3"),
            ("zones", "this must be a list, not the text \"a\""),
        ],
    );
}

#[test]
fn type_with_own_metrics_does_not_hide_others() {
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "u8")]
    struct Even;
    impl TryFrom<u8> for Even {
        type Error = String;
        fn try_from(number: u8) -> Result<Self, String> {
            if number.is_multiple_of(2) {
                Ok(Self)
            } else {
                Err(format!("{number} is odd"))
            }
        }
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        first: Even,
        second: String,
    }
    let mut problems = Problems::default();
    assert!(read_value::<Outer>(&json!({"first": 3}), &mut problems).is_none());
    let found: Vec<(&str, &str)> = problems.iter().map(|p| (p.at.as_str(), p.message.as_str())).collect();
    assert_eq!(found, [("first", "3 is odd"), ("second", "this key is missing")]);
}

#[test]
fn types_of_every_kind_are_read() {
    #[derive(Debug, PartialEq, Deserialize)]
    enum Shape {
        Point,
        Circle(u8),
        Line(i8, i8),
        Box { width: u64 },
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Loose {
        Number(i64),
        Text(String),
        Flag(bool),
        Many(Vec<f64>),
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "kind", rename_all = "lowercase")]
    enum Tagged {
        A { size: u16 },
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Flat {
        id: String,
        #[serde(flatten)]
        rest: BTreeMap<String, String>,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct All {
        shapes: Vec<Shape>,
        loose: Vec<Loose>,
        tagged: Tagged,
        flat: Flat,
        pair: (u8, String),
        #[serde(alias = "old")]
        new: i32,
        nothing: Option<Box<All>>,
    }
    let tree = json!({
        "shapes": ["Point", {"Circle": 3}, {"Line": [-1, 1]}, {"Box": {"width": 9}}],
        "loose": [-5, "x", true, [1, 2.5]],
        "tagged": {"kind": "a", "size": 7},
        "flat": {"id": "i", "more": "m"},
        "pair": [1, "one"],
        "old": -70_000,
    });
    let mut problems = Problems::default();
    let all: Option<All> = read_value(&tree, &mut problems);
    assert_eq!(problems, Problems::default());
    assert_eq!(
        all.unwrap(),
        All {
            shapes: vec![
                Shape::Point,
                Shape::Circle(3),
                Shape::Line(-1, 1),
                Shape::Box { width: 9 }
            ],
            loose: vec![
                Loose::Number(-5),
                Loose::Text("x".into()),
                Loose::Flag(true),
                Loose::Many(vec![1.0, 2.5])
            ],
            tagged: Tagged::A { size: 7 },
            flat: Flat {
                id: "i".into(),
                rest: BTreeMap::from([("more".into(), "m".into())])
            },
            pair: (1, "one".into()),
            new: -70_000,
            nothing: None,
        }
    );
}
