//! Readers of the guest SDK.

use cloudwit_guest_sdk::cidr as sdk_cidr;
use cloudwit_guest_sdk::xml::Element;
use cloudwit_guest_sdk::{config, names as sdk_names, yaml as sdk_yaml};

use crate::texts;

/// Longest text of a mistake, in bytes: it never quotes what it read.
const MISTAKE: usize = 400;

/// A tree or a short problem.
pub fn gcfg(data: &[u8]) {
    let (text, _) = texts(data);
    for text in [text.clone(), format!("[Global]\n{text}")] {
        if let Err(problem) = cloudwit_guest_sdk::gcfg::parse(&text) {
            assert!(problem.message.len() < MISTAKE, "{}", problem.message);
        }
    }
}

/// A tree or a short problem; what is read of a cloud config too.
pub fn json(data: &[u8]) {
    let (text, _) = texts(data);
    if let Err(problem) = config::parse_json(&text) {
        assert!(problem.message.len() < MISTAKE, "{}", problem.message);
    }
    let _ = config::parse_any(&text);
}

/// An element with a name, or a failure.
pub fn xml(data: &[u8]) {
    let (text, _) = texts(data);
    for text in [text.clone(), format!("<a>{text}</a>"), format!("<a {text}/>")] {
        if let Ok(read) = Element::parse(&text) {
            assert!(!read.name.is_empty(), "{text}");
        }
    }
}

/// A tree or a short problem.
pub fn yaml(data: &[u8]) {
    let (text, _) = texts(data);
    if let Err(problem) = sdk_yaml::parse(&text) {
        assert!(problem.message.len() < MISTAKE, "{}", problem.message);
    }
}

/// A network contains its first address, and is read the same from what it shows.
pub fn cidr(data: &[u8]) {
    let (text, _) = texts(data);
    if let Ok(cidr) = sdk_cidr::parse(&text) {
        assert!(cidr.contains(&cidr.network()));
        assert_eq!(sdk_cidr::parse(&cidr.to_string()), Ok(cidr));
    }
}

/// Names keep to their rules, whatever they are made of.
pub fn names(data: &[u8]) {
    let (text, _) = texts(data);
    let label = sdk_names::label_value(&text);
    assert!(
        label.len() <= 63 && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
        "{label}"
    );
    assert_eq!(sdk_names::label_value(&label), label);
    assert!(sdk_names::default_load_balancer_name(&text).chars().count() <= 32);
}
