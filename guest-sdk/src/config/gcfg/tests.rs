//! What git-config text becomes, and the errors for text that is none.

use serde::Deserialize;

use super::*;
use crate::Problems;
use crate::config::reader;

#[derive(Debug, Deserialize, PartialEq)]
struct Config {
    global: Global,
    #[serde(default, rename = "virtualcenter")]
    centers: std::collections::BTreeMap<String, Center>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
struct Global {
    auth_url: String,
    #[serde(default)]
    tls_insecure: bool,
    #[serde(default)]
    node_security_group: Vec<String>,
    timeout: Option<u32>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Center {
    port: u16,
}

fn read(text: &str) -> Result<Config, Problems> {
    let mut problems = Problems::default();
    let tree = parse(text).map_err(|problem| {
        let mut problems = Problems::default();
        problems.add(problem.at, problem.message);
        problems
    })?;
    reader::read(&tree, &mut problems).ok_or(problems)
}

fn value(written: &str) -> String {
    let tree = parse(&format!("[s]\nv = {written}")).unwrap();
    tree.value["s"]["v"][0].as_str().unwrap().to_owned()
}

fn wrong(text: &str) -> String {
    parse(text).unwrap_err().message
}

#[test]
fn a_cloud_config_of_upstream_is_read_into_types() {
    let text = "\u{feff}; for the lab\r\n[Global]\r\nAuth-URL = https://keystone.test/v3 ; the public one\r\ntls-insecure\r\n\
                node-security-group = a\r\nnode-security-group = b\r\ntimeout = 30\r\n\r\n\
                [VirtualCenter \"10.0.0.1\"] # first\nport = \"443\"\n[virtualcenter \"vc.Test\"]\nport=8443";
    let config = read(text).unwrap();
    assert_eq!(
        config.global,
        Global {
            auth_url: "https://keystone.test/v3".into(),
            tls_insecure: true,
            node_security_group: vec!["a".into(), "b".into()],
            timeout: Some(30),
        }
    );
    assert_eq!(config.centers.keys().collect::<Vec<_>>(), ["10.0.0.1", "vc.Test"]);
    assert_eq!(
        (config.centers["10.0.0.1"].port, config.centers["vc.Test"].port),
        (443, 8443)
    );
}

#[test]
fn single_value_becomes_list_and_last_one_wins_elsewhere() {
    let config = read("[global]\nauth-url=a\nauth-url=b\nnode-security-group=c").unwrap();
    assert_eq!(config.global.auth_url, "b");
    assert_eq!(config.global.node_security_group, ["c"]);
}

#[test]
fn section_that_comes_again_continues() {
    let config = read("[global]\nauth-url=a\n[virtualcenter \"x\"]\nport=1\n[GLOBAL]\ntimeout=2\n").unwrap();
    assert_eq!((config.global.auth_url.as_str(), config.global.timeout), ("a", Some(2)));
}

#[test]
fn values_are_read_as_git_reads_them() {
    for (written, expected) in [
        ("plain words  ", "plain words"),
        ("a # comment", "a"),
        ("a;b", "a"),
        (r#""a # b;c""#, "a # b;c"),
        (r#"" padded ""#, " padded "),
        (r#"a" b "c"#, "a b c"),
        (r#"p\"w\\d"#, r#"p"w\d"#),
        (r"tab\tline\n", "tab\tline\n"),
        ("one \\\n two", "one  two"),
        ("one\\\r\ntwo", "onetwo"),
        ("a = b", "a = b"),
        ("", ""),
        ("grüße", "grüße"),
    ] {
        assert_eq!(value(written), expected, "{written:?}");
    }
}

#[test]
fn words_for_true_and_false_are_gits() {
    for (written, expected) in [
        ("yes", true),
        ("On", true),
        ("1", true),
        ("TRUE", true),
        ("no", false),
        ("off", false),
        ("0", false),
    ] {
        let config = read(&format!("[global]\nauth-url=a\ntls-insecure={written}")).unwrap();
        assert_eq!(config.global.tls_insecure, expected, "{written}");
    }
    let problems = read("[global]\nauth-url=a\ntls-insecure=maybe").unwrap_err();
    assert_eq!(problems.iter().next().unwrap().at, "global.tls-insecure");
}

#[test]
fn type_and_name_mistakes_come_with_suggestions() {
    let problems = read("[global]\nauth-ur=a\ntimeout=soon\n[loadbalancer]\n").unwrap_err();
    let told: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.at, problem.message))
        .collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(
        told.iter()
            .any(|one| one.starts_with("global.auth-ur:") && one.contains("did you mean \"auth-url\"")),
        "{told:?}"
    );
    assert!(told.iter().any(|one| one.starts_with("loadbalancer:")), "{told:?}");
}

#[test]
fn malformed_text_is_reported_by_line_without_values() {
    for (text, line, what) in [
        ("password = hunter2", "line 1", "before the first section"),
        ("[global]\n[more", "line 2", "end with ]"),
        ("[]\n", "line 1", "no name"),
        ("[a \"b]\n", "line 1", "not closed"),
        ("[a]\npassword = \"hunter2\n", "line 2", "not closed"),
        ("[a]\npassword = hunter2\\x\n", "line 2", "backslash"),
        ("[a]\nb c\n", "line 2", "="),
        ("[a]\n= hunter2", "line 2", "name = value"),
        ("[a]\nb=1\n[a \"b\"]\n", "line 3", "variable's"),
        ("[a \"b\"]\n[a]\nb=1\n", "line 3", "section's"),
        ("{\"json\": 1}", "line 1", "section like [Global]"),
    ] {
        let message = wrong(text);
        assert!(message.contains(line) && message.contains(what), "{text:?}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn no_text_panics() {
    for text in [
        "[",
        "[a",
        "[a \"",
        "[a \"\\",
        "[a]\nb=\\",
        "[a]\nb=\"",
        "\\",
        "[a]\nb\\",
        "\u{0}",
        "[ä]\nö=ü",
    ] {
        let _ = parse(text);
    }
}
