//! The dashboard and the alerts ask for metrics that exist, and each alert has its runbook.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use cloudwit_suite::root;
use serde_json::Value;

/// Where the runbooks are read.
const RUNBOOKS: &str = "https://github.com/cloudwit/cloudwit/blob/main/docs/guide/runbooks.md";

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// All strings under this key, wherever it is.
fn below(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == key => found.push(text.clone()),
            value => below(value, key, found),
        }),
        Value::Array(list) => list.iter().for_each(|value| below(value, key, found)),
        _ => {}
    }
}

fn expressions() -> Vec<String> {
    let mut found = Vec::new();
    below(
        &serde_json::from_str(&read("deploy/chart/dashboards/cloudwit.json")).unwrap(),
        "expr",
        &mut found,
    );
    below(
        &serde_saphyr::from_str(&read("deploy/chart/dashboards/alerts.yaml")).unwrap(),
        "expr",
        &mut found,
    );
    found
}

/// The metrics in an expression: all words with an underscore but for functions, and for labels, which stand in braces or after `by`.
fn metrics(expression: &str) -> BTreeSet<String> {
    let mut outside = expression.to_owned();
    for (open, close) in [("{", '}'), ("[", ']'), ("by (", ')')] {
        while let Some(start) = outside.find(open) {
            let length = outside[start..].find(close).unwrap();
            outside.replace_range(start..=start + length, " ");
        }
    }
    let words = outside.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words
        .filter(|word| word.contains('_') && *word != "histogram_quantile")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_metric_that_is_requested_is_served() {
    let page = read("docs/reference/metrics.md");
    let mut asked = BTreeSet::new();
    for expression in expressions() {
        let named = metrics(&expression);
        assert!(!named.is_empty(), "no metric in {expression}");
        asked.extend(named);
    }
    assert!(asked.len() > 20, "{asked:?}");
    let parts = ["_bucket", "_sum", "_count"];
    let known = |name: &str| page.contains(&format!("| `{name}` |"));
    let unknown: Vec<&String> = asked
        .iter()
        .filter(|name| !known(name) && !parts.iter().any(|part| name.strip_suffix(part).is_some_and(known)))
        .collect();
    assert!(
        unknown.is_empty(),
        "docs/reference/metrics.md does not have {unknown:?}"
    );
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let mut alerts = Vec::new();
    let mut links = Vec::new();
    let rules: Value = serde_saphyr::from_str(&read("deploy/chart/dashboards/alerts.yaml")).unwrap();
    below(&rules, "alert", &mut alerts);
    below(&rules, "runbook_url", &mut links);
    let page = read("docs/guide/runbooks.md");
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(alerts, headings, "in the same order");
    let anchors = alerts
        .iter()
        .map(|alert| format!("{RUNBOOKS}#{}", alert.to_lowercase()));
    assert_eq!(links, anchors.collect::<Vec<_>>());
}

/// With the series of other components beside: Prometheus' own tool plays the stories.
#[test]
fn alerts_fire_for_cloudwit_and_for_nothing_else() {
    let played = Command::new(xtask::servers::promtool::program().unwrap())
        .args(["test", "rules", "tests/suite/tests/deploy/alerts.test.yaml"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&played.stdout).into_owned() + &String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{said}");
}

#[test]
fn metrics_are_distinguished_from_labels_and_functions() {
    let found = metrics(
        r#"histogram_quantile(0.9, sum by (le) (rate(a_b_bucket{c_d="e_f"}[$__interval]))) > max by (i_j) (g_h)"#,
    );
    assert_eq!(found, ["a_b_bucket", "g_h"].map(str::to_owned).into());
}
