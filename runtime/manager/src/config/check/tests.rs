use super::*;

fn of(text: &str) -> Vec<String> {
    mistakes("c.yaml", &Tree::parse(text).unwrap(), &schema::configuration())
}

const HEAD: &str = "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\n";

#[test]
fn unknown_keys_are_reported_with_line_path_and_suggestion() {
    let text = format!(
        "{HEAD}providers:\n  - name: a\n    component: a.wasm\n    grant: {{}}\n    limits:\n      walltime: 5s\nroutes: {{}}\n"
    );
    let found = of(&text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].starts_with("c.yaml:6: providers[0].grant: unknown key, did you mean grants?; known: cloudConfig, "),
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
fn what_is_missing_or_of_the_wrong_kind_is_reported_together() {
    let found = of(
        "apiVersion: cloudwit.dev/v1\nproviders:\n  - component: 5\n    grants:\n      http:\n        - {host: h, port: 99999, allowLoopback: ja}\n    limits: {cpuTime: soon, concurrency: 0}\n",
    );
    let parts = [
        "c.yaml:1: apiVersion: \"cloudwit.dev/v1\" is not known; write cloudwit.dev/v1alpha1",
        "c.yaml:3: providers[0].component: a number is not allowed here; expected a text; put it into quotes",
        "c.yaml:6: providers[0].grants.http[0].port: 99999 is out of range; give 1 to 65535",
        "c.yaml:6: providers[0].grants.http[0].allowLoopback: a text is not allowed here; expected true or false",
        "c.yaml:7: providers[0].limits.cpuTime: \"soon\" is not a valid duration",
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

/// What is told with a line when the file is read, and what is refused when a provider is loaded, are the same.
#[test]
fn ranges_in_the_schema_are_those_of_the_host() {
    use cloudwit_host::{HostOptions, Limits};

    let schema = schema::of::<Limits>();
    for (name, key) in schema["properties"].as_object().unwrap() {
        let (least, most, unit) = match &key["x-milliseconds"] {
            Schema::Array(range) => (range[0].as_u64().unwrap(), range[1].as_u64().unwrap(), "ms"),
            _ => (key["minimum"].as_u64().unwrap(), key["maximum"].as_u64().unwrap(), ""),
        };
        let below = least.checked_sub(1);
        for (value, fits) in [
            (below, false),
            (Some(least), true),
            (Some(most), true),
            (Some(most + 1), false),
        ] {
            let Some(value) = value else { continue };
            let limits: Limits = serde_saphyr::from_str(&format!("{}: {value}{unit}\n", name)).unwrap();
            let at_load = limits.problems(HostOptions::default().max_memory_bytes);
            assert_eq!(at_load.is_empty(), fits, "{}: {value}{unit}: {at_load:?}", name);
            let text = format!(
                "{HEAD}providers:\n  - name: a\n    component: a.wasm\n    limits:\n      {}: {value}{unit}\n",
                name
            );
            let found = of(&text);
            assert_eq!(found.is_empty(), fits, "{found:?}");
            let told = format!(
                "c.yaml:7: providers[0].limits.{}: {value}{unit} is out of range; give {least} to {most}",
                name
            );
            assert!(fits || found[0].starts_with(&told), "{found:?}");
        }
    }
}

/// `CLOUDWIT_UPDATE=1 cargo test -p cloudwit config::check` writes them anew.
#[test]
fn the_shipped_schema_and_the_reference_page_are_up_to_date() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema::configuration()).unwrap());
    let page = docs.join("configuration.md");
    let (begin, end) = ("<!-- keys: generated -->\n", "<!-- end of keys -->");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(end).expect("the table's end is marked");
    let expected = format!("{before}{begin}{}{end}{after}", schema::table());
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
