//! What YAML becomes, and what is said about YAML that cannot be used.

use super::*;

fn json(text: &str) -> Json<'_> {
    Json::parse(text).unwrap()
}

fn wrong(text: &str) -> String {
    parse(text).unwrap_err().message
}

#[test]
fn a_config_in_yaml_is_the_tree_of_the_same_config_in_json() {
    // The shape of the upstream vSphere provider's YAML.
    let yaml = "# comment\nglobal:\n  port: 443\n  insecureFlag: true\nvcenter:\n  tenant-finance:\n    server: 1.1.1.1\n    datacenters:\n      - finanace\n      - 'east'\n    secretName: ~\n    thumbprint: \"AB:CD\"\n";
    let expected = r#"{"global": {"port": 443, "insecureFlag": true}, "vcenter": {"tenant-finance": {"server": "1.1.1.1",
        "datacenters": ["finanace", "east"], "secretName": null, "thumbprint": "AB:CD"}}}"#;
    assert_eq!(parse(yaml), Ok(json(expected)));
    assert_eq!(parse(expected), Ok(json(expected)), "JSON is YAML");
}

#[test]
fn quotes_make_text_of_what_looks_like_something_else() {
    let yaml = "a: '1'\nb: \"true\"\nc: 1.5e3\nd: 0x10\ne: |\n  one\n  two\nf: 1.2.3\n";
    let expected = r#"{"a": "1", "b": "true", "c": 1.5e3, "d": "0x10", "e": "one\ntwo\n", "f": "1.2.3"}"#;
    assert_eq!(parse(yaml), Ok(json(expected)));
}

#[test]
fn an_alias_stands_for_what_is_anchored() {
    let yaml = "a: &x {k: [1, 2]}\nb: *x\n";
    assert_eq!(parse(yaml), Ok(json(r#"{"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}"#)));
}

#[test]
fn aliases_cannot_blow_a_config_up() {
    let mut yaml = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..8 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        yaml.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    assert!(wrong(&yaml).contains("too many values"));
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    assert!(wrong(&deep).contains("nested"), "{}", wrong(&deep));
}

#[test]
fn what_cannot_be_used_is_said_with_its_place() {
    for (yaml, place, what) in [
        ("a: 1\na: 2\n", "line 2, column 1", "twice"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", "one document"),
        ("a: !!str 1\n", "line 1", "tags"),
        ("<<: {a: 1}\n", "line 1, column 1", "merge keys"),
        ("[1]: 2\n", "line 1", "key has to be a text"),
        ("a: [1\n", "line 1", "unclosed"),
        ("a: b: c\n", "line 1", "mapping"),
        ("a: &x [*x]\n", "line 1", "alias"),
        (&"[".repeat(5000), "line 1", "recursion"),
    ] {
        let message = wrong(yaml);
        assert!(message.contains(place) && message.contains(what), "{yaml:?}: {message}");
    }
}

#[test]
fn nothing_is_null() {
    assert_eq!(parse("# only a comment\n"), Ok(Json::Null));
}
