use super::*;

const HEAD: &str = "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\n";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("providers")).unwrap();
    std::fs::write(dir.path().join("north.wasm"), b"x").unwrap();
    std::fs::write(dir.path().join("providers/south.wasm"), b"x").unwrap();
    std::fs::write(dir.path().join("north.json"), b"{}").unwrap();
    dir
}

fn of(dir: &Path, body: &str) -> Result<Configured, Vec<String>> {
    let common = Common {
        provider_dir: &dir.join("providers"),
        cluster_name: "kubernetes",
        cluster_cidrs: &["10.0.0.0/8".to_owned()],
    };
    parse(&dir.join("cloudwit.yaml"), &format!("{HEAD}{body}"), common)
}

fn mistakes(body: &str) -> Vec<String> {
    let dir = folder();
    let prefix = format!("{}/cloudwit.yaml:", dir.path().display());
    let found = of(dir.path(), body).unwrap_err();
    found
        .iter()
        .map(|one| one.strip_prefix(&prefix).unwrap_or(one).to_owned())
        .collect()
}

const TWO: &str = "providers:
  - name: north
    component: north.wasm
    cloudConfigFile: north.json
    values: {region: 'n'}
    grants:
      http: [{host: api.north.example, requestsPerSecond: 2.5, ca: ca.pem, clientCertificate: tls/client.pem, clientKey: /run/client.key}]
      secrets: [{name: token, file: secrets/north, hosts: [api.north.example], uses: [placeholder]}]
    limits: {wallTime: 30s}
  - name: south
    component: south.wasm
    cloudConfig: '{\"a\": 1}'
routing:
  default: north
  nodes:
    - {provider: south, providerIDPrefixes: ['os://south/']}
  services:
    - {provider: south, classes: [example.com/south], annotations: {lb: south}}
";

#[test]
fn a_file_is_read_whole_and_its_paths_begin_at_its_folder() {
    let dir = folder();
    let read = of(dir.path(), TWO).unwrap();
    let [north, south] = read.providers.as_slice() else {
        panic!("{read:?}")
    };
    assert_eq!(north.component, dir.path().join("north.wasm").into());
    assert_eq!(
        south.component,
        dir.path().join("providers/south.wasm").into(),
        "a bare name may be in --provider-dir"
    );
    assert_eq!(
        (north.settings.config_text.as_str(), south.settings.config_text.as_str()),
        ("{}", "{\"a\": 1}")
    );
    assert_eq!(north.settings.grants.secrets[0].file, dir.path().join("secrets/north"));
    let http = &north.settings.grants.http[0];
    assert_eq!(
        [&http.ca, &http.client_certificate, &http.client_key].map(|file| file.clone().unwrap()),
        [
            dir.path().join("ca.pem"),
            dir.path().join("tls/client.pem"),
            PathBuf::from("/run/client.key")
        ]
    );
    assert_eq!(north.settings.limits.wall_time.as_secs(), 30);
    assert_eq!(north.settings.values, [("region".to_owned(), "n".to_owned())]);
    assert_eq!(north.settings.cluster_cidrs, ["10.0.0.0/8"]);
    assert_eq!(
        north.files,
        [dir.path().join("cloudwit.yaml"), dir.path().join("north.json")]
    );
    assert!(
        south.settings.grants.http.is_empty(),
        "what one may do says nothing about another"
    );
    assert_eq!(read.routing.default, "north");
    assert_eq!(read.routing.prefixes["south"], ["os://south/"]);
    assert_eq!(read.routing.services.classes["example.com/south"], "south");
    assert_eq!(
        read.routing.services.annotations[&("lb".to_owned(), "south".to_owned())],
        "south"
    );
}

const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[test]
fn component_in_registry_is_pinned_and_its_paths_begin_at_folder() {
    let dir = folder();
    let text = format!(
        "providers:
  - name: a
    component: oci://registry.example/a@{DIGEST}
    registry: {{ca: ca.pem, dockerConfig: /etc/login.json}}
    verify: {{keys: [cosign.pub]}}
    limits: {{componentBytes: 65536}}
"
    );
    let read = of(dir.path(), &text).unwrap();
    let Component::Pinned(pinned) = &read.providers[0].component else {
        panic!("{read:?}")
    };
    assert_eq!(
        pinned.reference.to_string(),
        format!("oci://registry.example/a@{DIGEST}")
    );
    let files: Vec<&PathBuf> = pinned.files().collect();
    let beside = |name: &str| dir.path().join(name);
    assert_eq!(
        files,
        [
            &beside("cosign.pub"),
            &beside("ca.pem"),
            &PathBuf::from("/etc/login.json")
        ]
    );
    assert_eq!(pinned.limit, 65536);
}

#[test]
fn keys_of_registries_beside_a_file_are_mistakes() {
    let found = mistakes(&format!(
        "providers:
  - name: c
    component: oci://registry.example/c@{DIGEST}
    registry: {{plainHTTP: true}}
"
    ));
    assert!(
        found
            .iter()
            .any(|one| one.contains("plainHTTP: unknown key, did you mean plainHttp?")),
        "{found:?}"
    );
    let found = mistakes(&format!(
        "providers:
  - name: a
    component: north.wasm
    verify: {{keys: [cosign.pub]}}
    registry: {{}}
  - name: b
    component: oci://registry.example/A@{DIGEST}
    verify: {{keys: []}}
routing: {{default: a}}
"
    ))
    .join("\n");
    for part in [
        "7: providers[0].registry: is for components of registries",
        "6: providers[0].verify: is for components of registries",
        "providers[1].component: \"oci://registry.example/A@",
        "providers[1].verify.keys: is empty",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn a_single_provider_needs_no_routing() {
    let read = of(folder().path(), "providers: [{name: a, component: north.wasm}]\n").unwrap();
    assert_eq!(read.routing.default, "a");
}

#[test]
fn what_only_the_whole_shows_is_reported_with_its_line() {
    let found = mistakes(
        "providers:
  - name: A
    component: oci://registry.example/north:1
  - name: b
    component: gone.wasm
    cloudConfig: text
    cloudConfigFile: file
  - name: b
    component: ./gone/c.wasm
    cloudConfigFile: gone.json
    grants:
      secrets: [{name: token, file: f, hosts: [elsewhere.example], uses: [placeholder]}]
routing:
  nodes: [{provider: c, providerIDPrefixes: []}]
  services:
    - {provider: b, classes: [k]}
    - {provider: b, classes: [k]}
    - {provider: b}
",
    );
    let parts = [
        "4: providers[0].name: \"A\" is not a valid name",
        "5: providers[0].component: oci://registry.example/north:1 has no digest, so it could be another component tomorrow; `cloudwit provider pin oci://registry.example/north:1` prints",
        "7: providers[1].component: there is no file",
        "9: providers[1].cloudConfigFile: stands beside cloudConfig",
        "10: providers[2].name: \"b\" is the name of another provider already",
        "11: providers[2].component: there is no file",
        "12: providers[2].cloudConfigFile:",
        "14: providers[2].grants.secrets[0].hosts[0]: \"elsewhere.example\" is not granted",
        "15: routing.default: is missing; with several providers",
        "16: routing.nodes[0].provider: there is no provider \"c\"; known: A, b, b",
        "16: routing.nodes[0].providerIDPrefixes: is empty",
        "19: routing.services[1].classes: the class \"k\" is provider \"b\"'s already",
        "20: routing.services[2]: names neither classes nor annotations",
    ];
    for part in parts {
        assert!(
            found.iter().any(|one| one.starts_with(part)),
            "{part} is missing in {found:#?}"
        );
    }
    assert_eq!(found.len(), parts.len(), "{found:#?}");
}

#[test]
fn an_empty_list_of_providers_is_a_mistake() {
    assert!(mistakes("providers: []\n")[0].contains("providers: is empty"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let common = Common {
        provider_dir: Path::new("/nowhere"),
        cluster_name: "",
        cluster_cidrs: &[],
    };
    let found = read(Path::new("/nowhere/c.yaml"), common).unwrap_err();
    assert!(
        found[0].starts_with("--config=/nowhere/c.yaml: cannot be read"),
        "{found:?}"
    );
}

#[test]
fn the_example_with_several_clouds_is_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples/several-clouds");
    let dir = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(&examples).unwrap() {
        let file = file.unwrap().path();
        std::fs::copy(&file, dir.path().join(file.file_name().unwrap())).unwrap();
    }
    std::fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
    let common = Common {
        provider_dir: dir.path(),
        cluster_name: "kubernetes",
        cluster_cidrs: &[],
    };
    let configured = read(&dir.path().join("cloudwit.yaml"), common).unwrap();
    assert_eq!(configured.providers.len(), 2);
    let text = std::fs::read_to_string(dir.path().join("cloudwit.yaml")).unwrap();
    assert!(
        text.starts_with("# yaml-language-server: $schema="),
        "editors help with the example"
    );
}
