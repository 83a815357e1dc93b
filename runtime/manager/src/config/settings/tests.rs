use clap::Parser;

use super::*;

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
    dir
}

fn of(dir: &Path, flags: &[&str]) -> Result<Settings, Mistakes> {
    let dir = format!("--provider-dir={}", dir.display());
    resolve(&Args::parse_from(
        ["cloudwit", &dir].into_iter().chain(flags.iter().copied()),
    ))
}

#[test]
fn every_mistake_is_reported_together() {
    let dir = folder();
    let error = of(
        dir.path(),
        &[
            "--cloud-provider=azure",
            "--cloud-config=/gone.json",
            "--provider-settings=/gone.yaml",
            "--controllers=nope",
            "--cluster-cidr=10.0.0.0/33",
            "--node-monitor-period=0s",
            "--max-retry-pause=1ms",
            "--leader-elect-lease-duration=1s",
        ],
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with("8 mistakes in the configuration, nothing was started:"),
        "{error}"
    );
    for part in [
        "azure",
        "known: sim",
        "/gone.json",
        "/gone.yaml",
        "\"nope\"",
        "10.0.0.0/33",
        "--node-monitor-period=0s",
        "--max-retry-pause=1ms",
    ] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
}

#[test]
fn an_empty_provider_name_is_upstreams_message() {
    let error = of(folder().path(), &[]).unwrap_err().to_string();
    assert!(error.starts_with("--cloud-provider cannot be empty"), "{error}");
}

#[test]
fn unknown_keys_of_the_settings_file_are_mistakes() {
    let dir = folder();
    let file = dir.path().join("settings.yaml");
    std::fs::write(&file, "grant: {}\n").unwrap();
    let flag = format!("--provider-settings={}", file.display());
    let error = of(dir.path(), &["--cloud-provider=sim", &flag])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("settings.yaml:1: grant: unknown key, did you mean grants?"),
        "{error}"
    );
}

#[test]
fn mistakes_of_the_settings_file_are_reported_with_their_lines() {
    let dir = folder();
    let file = dir.path().join("settings.yaml");
    let flag = format!("--provider-settings={}", file.display());
    for (text, expected) in [
        (
            "limits:\n  wallTime: soon\n  events: -1\n",
            [
                ":2: limits.wallTime: \"soon\" is not a valid duration",
                ":3: limits.events: -1 is out of range",
            ],
        ),
        (
            "grants:\n  http:\n    - {host: 'h:1'}\n  secrets:\n    - {name: a, file: f, uses: [reveal]}\n    - {name: a, file: f, uses: [reveal]}\n",
            [
                ":3: grants.http[0].host: \"h:1\" is not a valid host",
                ":6: grants.secrets[1].name: \"a\" is there twice",
            ],
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = of(dir.path(), &["--cloud-provider=sim", &flag])
            .unwrap_err()
            .to_string();
        for part in expected {
            assert!(
                error.contains(&format!("{flag}{part}")),
                "{part} is missing in: {error}"
            );
        }
    }
    std::fs::write(&file, "# nothing yet\n").unwrap();
    of(dir.path(), &["--cloud-provider=sim", &flag]).unwrap();
}

#[test]
fn a_settings_file_is_read_whole() {
    let dir = folder();
    let file = dir.path().join("settings.yaml");
    std::fs::write(
        &file,
        "grants:\n  http:\n    - {scheme: https, host: api.example.com, methods: [GET]}\nvalues:\n  region: north\n",
    )
    .unwrap();
    let flag = format!("--provider-settings={}", file.display());
    let settings = of(
        dir.path(),
        &["--cloud-provider=sim", &flag, "--cluster-cidr=10.1.2.3/16, fd00::/48"],
    )
    .unwrap();
    assert_eq!(
        settings.providers[0].settings.values,
        [("region".to_owned(), "north".to_owned())]
    );
    assert_eq!(settings.providers[0].settings.grants.http.len(), 1);
    assert_eq!(
        settings.providers[0].settings.cluster_cidrs,
        ["10.1.0.0/16", "fd00::/48"]
    );
    assert_eq!(settings.providers[0].component, dir.path().join("sim.wasm").into());
}

#[test]
fn the_examples_under_deploy_are_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
    let dir = folder();
    let examples = std::fs::read_dir(examples)
        .unwrap()
        .map(|example| example.unwrap().path());
    for example in examples.filter(|example| example.join("settings.yaml").exists()) {
        let provider = example.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::write(dir.path().join(format!("{provider}.wasm")), b"x").unwrap();
        let named = [example.join("cloud.conf"), example.join(format!("{provider}.json"))];
        let config = named.iter().find(|file| file.exists()).unwrap();
        let flags = [
            format!("--cloud-provider={provider}"),
            format!("--cloud-config={}", config.display()),
            format!("--provider-settings={}", example.join("settings.yaml").display()),
        ];
        let settings = of(dir.path(), &flags.each_ref().map(String::as_str)).unwrap();
        assert!(!settings.providers[0].settings.grants.http.is_empty(), "{provider}");
        let text = std::fs::read_to_string(config).unwrap();
        assert_eq!(settings.providers[0].settings.config_text, text);
    }
}

#[test]
fn two_ranges_of_one_family_are_refused() {
    let dir = folder();
    let error = of(
        dir.path(),
        &["--cloud-provider=sim", "--cluster-cidr=10.0.0.0/16,10.1.0.0/16"],
    )
    .unwrap_err();
    assert!(error.to_string().contains("two ranges of one family"), "{error}");
}
