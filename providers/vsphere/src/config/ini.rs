//! The older spelling of the cloud config: `[VirtualCenter "10.0.0.1"]`, `insecure-flag`. Its sections and keys are turned into those of the YAML.

use serde_json::Value;

/// Sections whose names are not the same in both; gcfg gives them in lower case.
const SECTIONS: [(&str, &str); 3] = [
    ("virtualcenter", "vcenter"),
    ("loadbalancer", "loadBalancer"),
    ("loadbalancerclass", "loadBalancerClass"),
];

/// The tree of an INI text under the names of the YAML. Of a variable that occurs several times the last value counts.
pub fn renamed(tree: Value) -> Value {
    let Value::Object(sections) = tree else { return tree };
    let renamed = sections.into_iter().map(|(name, content)| {
        let known = SECTIONS.iter().find(|(ini, _)| *ini == name);
        let content = match name.as_str() {
            "virtualcenter" | "loadbalancerclass" => each_value(content, with_camel_case),
            _ => with_camel_case(content),
        };
        (known.map_or(name, |(_, yaml)| (*yaml).into()), content)
    });
    renamed.collect()
}

fn each_value(tree: Value, change: fn(Value) -> Value) -> Value {
    match tree {
        Value::Object(entries) => entries.into_iter().map(|(name, value)| (name, change(value))).collect(),
        other => other,
    }
}

fn with_camel_case(section: Value) -> Value {
    match section {
        Value::Object(entries) => entries
            .into_iter()
            .map(|(name, value)| (camel_case(&name), last(value)))
            .collect(),
        other => other,
    }
}

fn last(value: Value) -> Value {
    match value {
        Value::Array(mut values) => values.pop().unwrap_or_default(),
        other => other,
    }
}

/// `soap-roundtrip-count` is `soapRoundtripCount`.
fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.chars() {
        if letter == '-' {
            upper = true;
        } else if upper {
            camel.push(letter.to_ascii_uppercase());
            upper = false;
        } else {
            camel.push(letter);
        }
    }
    camel
}
