//! Properties of the readers and writers of single values: networks, names, URLs, annotations, times, encodings.

use proptest::prelude::*;

use crate::annotations::{Annotation, Table};
use crate::http::Http;
use crate::types::{Pair, Service};
use crate::url::{is_url, percent_encode};
use crate::{config, names, time};

/// Enough to find what is there, and within a second.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

static ROWS: [Annotation; 4] = [
    Annotation::new("text", "", "a text"),
    Annotation::new("count", "", "a number"),
    Annotation::new("networks", "", "networks"),
    Annotation::new("tags", "", "pairs"),
];

/// A Service with this annotation.
fn annotated(key: &str, value: &str) -> Service {
    Service {
        annotations: vec![Pair::new(format!("x/{key}"), value)],
        ..Service::new("default", "web", "1")
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn label_value_is_always_one(text in any::<String>()) {
        let value = names::label_value(&text);
        prop_assert!(value.len() <= 63, "{value}");
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        prop_assert!(value.chars().all(inner));
        let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
        prop_assert!(edge(value.chars().next()) && edge(value.chars().last()), "{value}");
        prop_assert_eq!(names::label_value(&value), value);
    }

    #[test]
    fn balancer_name_has_at_most_32_characters(uid in any::<String>()) {
        let name = names::default_load_balancer_name(&uid);
        prop_assert!(name.starts_with('a') && name.chars().count() <= 32 && !name.contains('-'));
    }

    #[test]
    fn query_of_a_request_is_read_back(pairs in prop::collection::vec((any::<String>(), any::<String>()), 1..4), path in "(/[a-z0-9]{1,5}){1,3}") {
        let request = Http::new().base("https://api.example.com").get(&path);
        let request = pairs.iter().fold(request, |request, (name, value)| request.query(name, value));
        let read = url::Url::parse(&request.url).unwrap();
        let read: Vec<(String, String)> = read.query_pairs().into_owned().collect();
        prop_assert_eq!(read, pairs);
        prop_assert_eq!(request.name(), format!("GET https://api.example.com{path}"));
    }

    #[test]
    fn what_is_a_url_here_is_one_elsewhere(text in "https?://[a-zA-Z0-9@:./?#\\[\\]%_-]{0,20}") {
        if is_url(&text)
            && let Ok(read) = url::Url::parse(&text)
        {
            prop_assert!(read.query().is_none() && read.username().is_empty() && read.password().is_none(), "{text}");
            let ours = crate::url::split_url(&text).unwrap();
            let host = read.host_str().unwrap_or_default();
            // Browsers' reader writes numbers as IPv4 addresses, and decodes percent signs in names.
            let rewritten = host.parse::<std::net::Ipv4Addr>().is_ok() || ours.authority.contains('%');
            prop_assert!(rewritten || ours.authority.to_ascii_lowercase().starts_with(host), "{text}: {host}");
        }
    }

    #[test]
    fn percent_encoding_is_read_back(text in any::<String>()) {
        let encoded = percent_encode(&text);
        let read: Vec<(String, String)> = url::form_urlencoded::parse(encoded.as_bytes()).into_owned().collect();
        let expected = if text.is_empty() { vec![] } else { vec![(text.clone(), String::new())] };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn annotations_give_a_value_or_a_mistake(value in any::<String>(), key in 0usize..4) {
        let table = Table::new("x/", &ROWS);
        let name = ["text", "count", "networks", "tags"][key];
        let service = annotated(name, &value);
        let mut reader = table.read(&service);
        let blank = value.trim_ascii().is_empty();
        let found = match key {
            0 => reader.text(name).is_some(),
            1 => reader.integer(name, 0..=100).is_some_and(|number| value.trim_ascii().parse() == Ok(number)),
            2 => reader.cidrs(name).is_some(),
            _ => reader.map(name).is_some(),
        };
        prop_assert_eq!(reader.finish().is_ok(), found || blank);
    }

    #[test]
    fn unknown_annotations_are_reported_once_each(keys in prop::collection::btree_set("[a-z]{1,6}", 0..5)) {
        let table = Table::new("x/", &ROWS);
        let annotations = keys.iter().map(|key| Pair::new(format!("x/{key}"), "")).collect();
        let service = Service { annotations, ..Service::new("default", "web", "1") };
        let unknown = keys.iter().filter(|key| !["text", "count", "networks", "tags"].contains(&key.as_str())).count();
        prop_assert_eq!(table.unknown(&service).len(), unknown);
    }

    #[test]
    fn any_config_text_ends_in_a_tree_or_a_problem(text in any::<String>()) {
        let _ = config::parse_any(&text);
        for begin in ["{", "[a]\n", "a: "] {
            let _ = config::parse_any(&format!("{begin}{text}"));
        }
    }

    #[test]
    fn single_values_are_found_where_their_keys_lead(values in prop::collection::btree_map("[a-c](\\.[a-c]){0,3}", "[a-z]{0,5}", 0..6)) {
        let pairs: Vec<Pair> = values.iter().map(|(key, value)| Pair::new(key, value)).collect();
        let (tree, problems) = config::merged_values(pairs);
        for (key, value) in &values {
            let found = key.split('.').try_fold(&tree, |tree, part| tree.get(part)).and_then(|found| found.as_str());
            // A key in the way of a deeper one loses or is replaced; both cannot be.
            let in_the_way = values.keys().any(|other| other.starts_with(&format!("{key}.")) || key.starts_with(&format!("{other}.")));
            prop_assert!(found == Some(value.as_str()) || in_the_way, "{key} in {tree:?}");
        }
        let apart = values.keys().all(|key| !values.keys().any(|other| other.starts_with(&format!("{key}."))));
        prop_assert!(!apart || problems == 0);
    }

    #[test]
    fn times_are_read_back(seconds in 0u64..253_402_300_799) {
        prop_assert_eq!(time::parse_rfc3339(&time::rfc3339(seconds)), Some(seconds));
    }
}
