use serde::de::DeserializeOwned;

use super::*;
use crate::config::keys::{CLUSTER, GRANTS, HTTP, LIMITS, NODE_RULE, PROVIDER, ROUTING, SECRET, SERVICE_RULE, STATE};

fn of(text: &str) -> Vec<String> {
    mistakes("c.yaml", &Tree::parse(text).unwrap())
}

const HEAD: &str = "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\n";

#[test]
fn unknown_keys_are_told_with_line_path_and_what_was_probably_meant() {
    let text = format!(
        "{HEAD}providers:\n  - name: a\n    component: a.wasm\n    grant: {{}}\n    limits:\n      walltime: 5s\nroutes: {{}}\n"
    );
    let found = of(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].starts_with("c.yaml:6: providers[0].grant: unknown key, did you mean grants?; known: name,"),
        "{found:?}"
    );
    assert!(
        found[1].starts_with("c.yaml:8: providers[0].limits.walltime: unknown key, did you mean wallTime?"),
        "{found:?}"
    );
    assert!(
        found[2].starts_with("c.yaml:9: routes: unknown key, did you mean routing?"),
        "{found:?}"
    );
}

#[test]
fn a_key_that_is_like_no_other_gets_no_guess() {
    let found = of(&format!("{HEAD}providers: []\nzzz: 1\n"));
    assert!(found[0].contains("zzz: unknown key; known: apiVersion"), "{found:?}");
}

#[test]
fn what_is_missing_or_of_the_wrong_kind_is_told_in_one_go() {
    let found = of(
        "apiVersion: cloudwit.dev/v1\nproviders:\n  - component: 5\n    grants:\n      http:\n        - {host: h, port: 99999, allowLoopback: ja}\n    limits: {cpuTime: soon, concurrency: 0}\n",
    );
    let parts = [
        "c.yaml:1: apiVersion: \"cloudwit.dev/v1\" is not known; write cloudwit.dev/v1alpha1",
        "c.yaml:3: providers[0].component: a number is not allowed here; expected a text; put it into quotes",
        "c.yaml:6: providers[0].grants.http[0].port: 99999 is out of range; give 1 to 65535",
        "c.yaml:6: providers[0].grants.http[0].allowLoopback: a text is not allowed here; expected true or false",
        "c.yaml:7: providers[0].limits.cpuTime: \"soon\" is no duration",
        "c.yaml:7: providers[0].limits.concurrency: 0 is out of range",
        "c.yaml:3: providers[0].name: is missing",
        "c.yaml:1: kind: is missing",
    ];
    assert_eq!(found.len(), parts.len(), "{found:#?}");
    for part in parts {
        assert!(
            found.iter().any(|one| one.starts_with(part)),
            "{part} is missing in {found:#?}"
        );
    }
}

/// The keys that a type reads, from what serde says about one that it does not know.
fn read_by<T: DeserializeOwned + std::fmt::Debug>() -> Vec<String> {
    let error = serde_json::from_str::<T>("{\"zzz\": 1}").unwrap_err().to_string();
    assert!(error.contains("unknown field `zzz`"), "{error}");
    let after = &error[error.find("expected").expect("serde lists what it expects")..];
    let mut keys: Vec<String> = after.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

fn in_table(shape: &Shape) -> Vec<String> {
    let Shape::Keys(keys) = shape else {
        panic!("{shape:?} has no keys")
    };
    let mut names: Vec<String> = keys.iter().map(|key| key.name.to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_table_has_every_key_that_is_read_and_no_other() {
    use cloudwit_host::{Limits, grants};

    use crate::config::file::{File, NodeRule, ProviderEntry, RoutingEntry, ServiceRule};
    assert_eq!(in_table(&FILE), read_by::<File>());
    assert_eq!(in_table(&PROVIDER), read_by::<ProviderEntry>());
    assert_eq!(in_table(&GRANTS), read_by::<grants::Grants>());
    assert_eq!(in_table(&HTTP), read_by::<grants::HttpGrant>());
    assert_eq!(in_table(&SECRET), read_by::<grants::SecretGrant>());
    assert_eq!(in_table(&CLUSTER), read_by::<grants::ClusterGrant>());
    assert_eq!(in_table(&STATE), vec!["maxBytes".to_owned()]);
    assert!(serde_saphyr::from_str::<grants::StateGrant>("maxBytes: 7\n").is_ok());
    assert_eq!(in_table(&LIMITS), read_by::<Limits>());
    assert_eq!(in_table(&ROUTING), read_by::<RoutingEntry>());
    assert_eq!(in_table(&NODE_RULE), read_by::<NodeRule>());
    assert_eq!(in_table(&SERVICE_RULE), read_by::<ServiceRule>());
}

/// What the table gives as default, where it is a plain value, is the default.
#[test]
fn defaults_in_the_table_are_those_of_the_types() {
    use cloudwit_host::{Limits, grants};

    fn written<T: DeserializeOwned>(shape: &Shape, skip: &[&str]) -> T {
        let Shape::Keys(keys) = shape else { panic!("{shape:?}") };
        let lines = keys
            .iter()
            .filter(|key| !key.default.is_empty() && !skip.contains(&key.name));
        let text: String = lines.map(|key| format!("{}: {}\n", key.name, key.default)).collect();
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
    }
    assert_eq!(written::<Limits>(&LIMITS, &[]), Limits::default());
    let prose = ["port", "ca", "requestsPerSecond", "burst"];
    assert_eq!(
        written::<grants::HttpGrant>(&HTTP, &prose),
        grants::HttpGrant::default()
    );
    assert_eq!(
        written::<grants::StateGrant>(&STATE, &[]),
        grants::StateGrant::default()
    );
    assert_eq!(
        written::<grants::ClusterGrant>(&CLUSTER, &[]),
        grants::ClusterGrant::default()
    );
    assert_eq!(
        written::<grants::SecretGrant>(&SECRET, &[]),
        grants::SecretGrant::default()
    );
}

/// What is told with a line when the file is read, and what is refused when a provider is loaded, are the same.
#[test]
fn ranges_in_the_table_are_those_of_the_host() {
    use cloudwit_host::{HostOptions, Limits};

    let Shape::Keys(keys) = LIMITS else {
        panic!("{LIMITS:?}")
    };
    for key in keys {
        let (least, most, unit) = match key.shape {
            Shape::Whole(least, most) => (least, most, ""),
            Shape::Duration(least, most) => (least, most, "ms"),
            ref other => panic!("{other:?}"),
        };
        let below = least.checked_sub(1);
        for (value, fits) in [
            (below, false),
            (Some(least), true),
            (Some(most), true),
            (Some(most + 1), false),
        ] {
            let Some(value) = value else { continue };
            let limits: Limits = serde_saphyr::from_str(&format!("{}: {value}{unit}\n", key.name)).unwrap();
            let at_load = limits.problems(HostOptions::default().max_memory_bytes);
            assert_eq!(at_load.is_empty(), fits, "{}: {value}{unit}: {at_load:?}", key.name);
            let text = format!(
                "{HEAD}providers:\n  - name: a\n    component: a.wasm\n    limits:\n      {}: {value}{unit}\n",
                key.name
            );
            let found = of(&text);
            assert_eq!(found.is_empty(), fits, "{found:?}");
            let told = format!(
                "c.yaml:7: providers[0].limits.{}: {value}{unit} is out of range; give {least} to {most}",
                key.name
            );
            assert!(fits || found[0].starts_with(&told), "{found:?}");
        }
    }
}

/// `CLOUDWIT_UPDATE=1 cargo test -p cloudwit config::check` writes them anew.
#[test]
fn the_shipped_schema_and_the_reference_page_are_up_to_date() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = format!(
        "{}\n",
        serde_json::to_string_pretty(&crate::config::schema::schema()).unwrap()
    );
    let page = docs.join("configuration.md");
    let (begin, end) = ("<!-- keys: generated -->\n", "<!-- end of keys -->");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(end).expect("the table's end is marked");
    let expected = format!("{before}{begin}{}{end}{after}", crate::config::schema::table());
    for (file, expected) in [
        (docs.join("cloudwit-configuration.schema.json"), schema),
        (page, expected),
    ] {
        if std::env::var_os("CLOUDWIT_UPDATE").is_some() {
            std::fs::write(&file, &expected).unwrap();
        }
        let shipped = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            shipped == expected,
            "{} is old; CLOUDWIT_UPDATE=1 writes it anew",
            file.display()
        );
    }
}
