//! The older spelling of the cloud config: `[VirtualCenter "10.0.0.1"]`, `insecure-flag`. Its sections and keys are turned into those of the YAML.

use std::borrow::Cow;

use cloudwit_guest_sdk::json::Json;

/// Sections whose names are not the same in both; gcfg gives them in lower case.
const SECTIONS: [(&str, &str); 3] = [
    ("virtualcenter", "vcenter"),
    ("loadbalancer", "loadBalancer"),
    ("loadbalancerclass", "loadBalancerClass"),
];

/// The tree of an INI text under the names of the YAML.
pub fn renamed(tree: Json<'static>) -> Json<'static> {
    let Json::Object(sections) = tree else { return tree };
    let renamed = sections.into_iter().map(|(name, content)| {
        let known = SECTIONS.iter().find(|(ini, _)| *ini == name);
        let content = match name.as_ref() {
            "virtualcenter" => each_value(content, with_camel_case),
            _ => with_camel_case(content),
        };
        (known.map_or(name, |(_, yaml)| Cow::Borrowed(*yaml)), content)
    });
    Json::Object(renamed.collect())
}

fn each_value(tree: Json<'static>, change: fn(Json<'static>) -> Json<'static>) -> Json<'static> {
    match tree {
        Json::Object(entries) => Json::Object(entries.into_iter().map(|(name, value)| (name, change(value))).collect()),
        other => other,
    }
}

fn with_camel_case(section: Json<'static>) -> Json<'static> {
    match section {
        Json::Object(entries) => Json::Object(
            entries
                .into_iter()
                .map(|(name, value)| (camel_case(&name), value))
                .collect(),
        ),
        other => other,
    }
}

/// `soap-roundtrip-count` is `soapRoundtripCount`.
fn camel_case(name: &str) -> Cow<'static, str> {
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
    Cow::Owned(camel)
}
