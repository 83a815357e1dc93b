//! Cloud configs in YAML, as the tree of the same config in JSON.

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};

use crate::config::WHOLE;
use crate::types::Problem;

/// Reads the text; [`Provider::parse_config`](crate::Provider::parse_config) may pass its own on to this.
///
/// # Errors
/// Line and what is wrong there, without the text around it: it may be a password.
pub fn parse(text: &str) -> Result<Value, Problem> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options::<Option<Value>>(text, options)
        .map(Option::unwrap_or_default)
        .map_err(|wrong| Problem::new(WHOLE, format!("this is no valid YAML: {wrong}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(text: &str) -> String {
        parse(text).unwrap_err().message
    }

    #[test]
    fn a_config_in_yaml_is_the_tree_of_the_same_config_in_json() {
        // The shape of the upstream vSphere provider's YAML.
        let yaml = "# comment\nglobal:\n  port: 443\n  insecureFlag: true\nvcenter:\n  tenant-finance:\n    server: 1.1.1.1\n    datacenters:\n      - finanace\n      - 'east'\n    secretName: ~\n    thumbprint: \"AB:CD\"\n";
        let expected = json!({"global": {"port": 443, "insecureFlag": true}, "vcenter": {"tenant-finance": {"server": "1.1.1.1",
            "datacenters": ["finanace", "east"], "secretName": null, "thumbprint": "AB:CD"}}});
        assert_eq!(parse(yaml), Ok(expected.clone()));
        assert_eq!(parse(&expected.to_string()), Ok(expected), "JSON is YAML");
    }

    #[test]
    fn quotes_make_any_value_a_text() {
        let yaml = "a: '1'\nb: \"true\"\nc: 1.5e3\ne: |\n  one\n  two\nf: 1.2.3\ng: yes\n";
        let expected = json!({"a": "1", "b": "true", "c": 1.5e3, "e": "one\ntwo\n", "f": "1.2.3", "g": "yes"});
        assert_eq!(parse(yaml), Ok(expected));
    }

    #[test]
    fn an_alias_stands_for_what_is_anchored() {
        let expected = json!({"a": {"k": [1, 2]}, "b": {"k": [1, 2]}});
        assert_eq!(parse("a: &x {k: [1, 2]}\nb: *x\n"), Ok(expected));
    }

    #[test]
    fn aliases_cannot_blow_a_config_up() {
        let mut yaml = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        for level in 1..8 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            yaml.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
        }
        assert!(parse(&yaml).is_err());
        assert!(parse(&"[".repeat(5000)).is_err());
    }

    #[test]
    fn malformed_text_is_refused_with_its_line() {
        for yaml in ["a: 1\na: 2\n", "x: 1\n<<: {a: 1}\n", "x: 1\na: [1\n", "x: 1\na: b: c\n"] {
            assert!(wrong(yaml).contains("line"), "{yaml:?}: {}", wrong(yaml));
        }
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
    }

    #[test]
    fn nothing_is_null() {
        assert_eq!(parse("# only a comment\n"), Ok(Value::Null));
    }
}
