//! `cloudwit inspect` and `cloudwit config check`, as somebody runs them who is about to ship a component or a configuration: what is told of
//! real components and files, what is refused, and that it is refused in the words of the start.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloudwit_host::HostOptions;
use cloudwit_suite::hosting::{Hosting, settings};
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::{ApiServer, programs};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::Value;

fn run(words: &[&str]) -> Output {
    // Nothing on this machine or in its environment may lead to a cluster.
    Command::new(programs::cloudwit())
        .args(words)
        .env("KUBECONFIG", "/nowhere")
        .output()
        .unwrap()
}

fn said(output: &Output, code: i32) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}\n{err}");
    if code == 0 { out } else { err }
}

fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

fn shown(file: &Path) -> &str {
    file.to_str().unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.0.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    }
}

#[test]
fn sim_provider_is_reported_with_pasteable_grants() {
    let (sim, folder) = (guests::provider("sim"), Folder::new());
    let text = said(&run(&["inspect", shown(&sim)]), 0);
    let digest = xtask_digest(&sim);
    contains_all(
        &text,
        &[
            "provider      sim ",
            "contract      cloudwit:provider 0.1\n",
            "interfaces    instances, load-balancers, routes, volumes, volume-expansion, ",
            "provider ids  sim://\n",
            &format!("sha256        {digest}\n"),
            &format!("size          {} bytes, ", std::fs::metadata(&sim).unwrap().len()),
            "cloudwit:provider/info@0.1.0",
            "wasi:http/",
            "without a configuration (--cloud-config=FILE takes yours into account); add:\n\ngrants:\n  secrets:\n",
        ],
    );
    let config = folder.write("sim.json", r#"{"endpoint": "https://api.sim.example:8443"}"#);
    let text = said(&run(&["inspect", shown(&sim), "--cloud-config", shown(&config)]), 0);
    contains_all(
        &text,
        &[
            "Missing grants; add:\n\ngrants:\n  http:\n",
            "port: 8443",
            "  secrets:\n",
        ],
    );
    let yaml = &text[text.find("\ngrants:\n").unwrap()..];
    let pasted = format!(
        "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: a\n    component: {}\n{}",
        sim.display(),
        yaml.lines().map(|line| format!("    {line}\n")).collect::<String>()
    );
    let file = folder.write("cloudwit.yaml", pasted);
    let text = said(&run(&["config", "check", shown(&file)]), 0);
    contains_all(
        &text,
        &["may reach https://api.sim.example:8443 with GET, POST, PUT, DELETE"],
    );
}

fn xtask_digest(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[test]
fn as_json_a_compressed_component_is_the_same_with_another_size() {
    let (sim, folder) = (guests::provider("sim"), Folder::new());
    let content = std::fs::read(&sim).unwrap();
    let packed = ruzstd::encoding::compress_to_vec(content.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let small = folder.write("sim.wasm.zst", &packed);
    let json = |file: &Path| -> Value {
        serde_json::from_str(&said(&run(&["inspect", shown(file), "-o", "json"]), 0)).unwrap()
    };
    let (plain, packed_told) = (json(&sim), json(&small));
    for key in [
        "name",
        "version",
        "contract",
        "abilities",
        "exports",
        "imports",
        "grantRequests",
        "sha256",
        "providerIdPrefixes",
    ] {
        assert_eq!(plain[key], packed_told[key], "{key}");
        assert!(!plain[key].is_null(), "{key}");
    }
    assert_eq!(plain["size"]["isCompressed"], false);
    assert_eq!(packed_told["size"]["isCompressed"], true);
    assert_eq!(packed_told["size"]["file"], packed.len());
    assert_eq!(packed_told["size"]["component"], content.len());
    let strong = plain["size"]["compressed"].as_u64().unwrap();
    let quick = u64::try_from(packed.len()).unwrap();
    assert!(strong > 0 && strong < quick, "{strong} and {quick}");
    assert_eq!(
        packed_told["size"]["compressed"], strong,
        "packed weakly, it is measured as packed well"
    );
    assert_eq!(packed_told["configMap"]["fits"], true);
    assert_eq!(plain["grantRequests"][0]["list"], "grants.secrets");
}

#[tokio::test]
async fn what_cannot_be_loaded_is_refused_in_the_words_of_the_load() {
    let folder = Folder::new();
    let component = |export: &str| {
        wat::parse_str(format!("(component (instance $i) (export \"{export}\" (instance $i)))")).unwrap()
    };
    let database = tokio::task::spawn_blocking(|| guests::test_guest("wants_database"));
    let damaged = {
        let sim = tokio::task::spawn_blocking(|| guests::provider("sim")).await.unwrap();
        let mut content = std::fs::read(sim).unwrap();
        content.truncate(content.len() / 2);
        content
    };
    let hosting = Hosting::new(HostOptions::default());
    for (file, part) in [
        (folder.write("text.wasm", "#!/bin/sh\n"), "is not WebAssembly"),
        (folder.write("core.wasm", b"\0asm\x01\0\0\0"), "core WebAssembly module"),
        (
            folder.write("half.wasm", damaged),
            "is not a valid WebAssembly component",
        ),
        (
            folder.write("new.wasm", component("cloudwit:provider/info@0.2.0")),
            "speaks cloudwit:provider 0.2, and this Cloudwit",
        ),
        (
            folder.write("other.wasm", component("acme:thing/x@1.0.0")),
            "nothing of cloudwit:provider",
        ),
        (
            folder.write("packed.wasm.zst", b"\x28\xb5\x2f\xfd????"),
            "cannot be unpacked",
        ),
        (database.await.unwrap(), "imports "),
        (folder.0.path().join("gone.wasm"), "cannot be read"),
    ] {
        let path = file.clone();
        let output = tokio::task::spawn_blocking(move || run(&["inspect", shown(&path), "-o", "json"]))
            .await
            .unwrap();
        let told = said(&output, 1);
        let loaded = hosting.load_file(&file, settings()).await.unwrap_err().to_string();
        assert_eq!(told, format!("cloudwit: {loaded}\n"));
        assert!(told.contains(part), "{part:?} is missing in: {told}");
        assert!(output.stdout.is_empty());
    }
}

/// Upstream's keys that cannot be honoured are told before anything runs: the operator changes her file once.
#[test]
fn rejected_cloud_config_reports_all_mistakes() {
    let folder = Folder::new();
    for (provider, right, wrong, mistakes) in [
        (
            "sim",
            r#"{"endpoint": "https://api.sim.example"}"#,
            r#"{"endpont": "https://api.sim.example", "colour": "red"}"#,
            &[
                "endpont: there is no such key; did you mean \"endpoint\"?",
                "colour: there is no such key",
                "endpoint: this key is missing",
            ][..],
        ),
        (
            "aws",
            "[Global]\nZone = us-east-1a\n",
            "[Global]\nVPC = 1\nRoleARN = role\nNodeIPFamilies = ipv5\n",
            &[
                "global.region: ",
                "global.vpc: ",
                "global.rolearn: ",
                "global.nodeipfamilies: \"ipv5\" is no address family; write ipv4 or ipv6, one in a line",
            ],
        ),
        (
            "openstack",
            "[Global]\nauth-url = https://k.example/v3\nuser-id = u\ntenant-id = p\n",
            "[Global]\nauth-url = keystone\nuser-id = u\ntenant-id = p\ntls-insecure = true\n[Networking]\naddress-sort-order = ten\n",
            &[
                "global.auth-url: \"keystone\" is no URL",
                "global.tls-insecure: ",
                "networking.address-sort-order: ",
            ],
        ),
        (
            "vsphere",
            "[Global]\nserver = vc.example.com\n",
            "vcenter:\n  a:\n    server: https://a\nlabels:\n  zone: z\n",
            &[
                "vcenter.a.server: \"https://a\" is no server",
                "labels.region: this is missing",
            ],
        ),
    ] {
        let component = guests::provider(provider);
        let inspected = |config: &str, code| {
            let config = folder.write("cloud.conf", config);
            let words = ["inspect", shown(&component), "--cloud-config", shown(&config)];
            (said(&run(&words), code), config)
        };
        inspected(right, 0);
        let (told, config) = inspected(wrong, 1);
        let (head, list) = told.split_once('\n').unwrap();
        let refused = "cloudwit: the provider does not accept its configuration, --cloud-config=";
        assert_eq!(head, format!("{refused}{}:", config.display()));
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), mistakes.len(), "{told}");
        for mistake in mistakes {
            let mistake = format!("  - {mistake}");
            assert!(
                lines.iter().any(|line| line.starts_with(&mistake)),
                "{mistake:?} is missing in:\n{told}"
            );
        }
    }
}

/// What holds for every provider is checked once more by the API server that will take the file.
#[tokio::test]
async fn config_map_takes_the_size_that_inspect_states() {
    let server = ApiServer::shared().await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let map = |name: &str, size: usize| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.binary_data = Some([("sim.wasm".to_owned(), ByteString(vec![7; size]))].into());
        map
    };
    maps.create(&PostParams::default(), &map("inspect-full", 1 << 20))
        .await
        .unwrap();
    let error = maps
        .create(&PostParams::default(), &map("inspect-over", (1 << 20) + 1))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("may not be more than 1048576 bytes"),
        "{error}"
    );
}

const HEAD: &str = "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\n";

#[test]
fn right_file_is_reported_in_short() {
    let folder = Folder::new();
    std::fs::copy(guests::provider("sim"), folder.0.path().join("sim.wasm")).unwrap();
    let file = folder.write(
        "cloudwit.yaml",
        format!(
            "{HEAD}providers:\n  - name: north\n    component: sim.wasm\n    grants:\n      http: [{{host: n.example.com, methods: [GET]}}]\n      \
             secrets: [{{name: token, file: /gone/token, hosts: [n.example.com], uses: [placeholder]}}]\n      cluster: {{nodes: true}}\n  \
             - name: south\n    component: sim.wasm\nrouting:\n  default: north\n  nodes: [{{provider: south, providerIDPrefixes: ['sim://s']}}]\n  \
             services: [{{provider: south, classes: [x/s], annotations: {{tier: edge}}}}]\n"
        ),
    );
    let text = said(&run(&["config", "check", shown(&file)]), 0);
    contains_all(
        &text,
        &[
            "cloudwit.yaml: nothing is wrong.\n",
            "Provider north\n",
            "sim.wasm, ",
            "  may reach https://n.example.com with GET\n",
            "  has the secret token from /gone/token, for placeholder\n",
            "  may see all Nodes\n",
            "Provider south\n",
            "  may reach nothing\n",
            "  Nodes with ids that begin with sim://s: south\n",
            "  Services of class x/s: south\n",
            "  Services annotated tier=edge: south\n",
            "  all that names no other: north\n",
        ],
    );
}

/// The lines of the mistakes, without what stands before them.
fn mistakes(text: &str) -> Vec<&str> {
    let marks = |line: &str| line.contains(".yaml:");
    let lines = text.lines().filter(|line| marks(line));
    lines
        .map(|line| line.trim_start_matches("cloudwit: ").trim_start_matches("  - "))
        .collect()
}

#[test]
fn wrong_file_is_refused_with_every_mistake_of_start() {
    let folder = Folder::new();
    folder.write("a.wasm", "x");
    for (name, providers, wanted) in [
        (
            "ranges",
            "  - name: a\n    component: a.wasm\n    limits:\n      cpuTime: 1ms\n      wallTime: 2h\n      concurrency: 0\n    grant: {}\n",
            &[
                "ranges.yaml:7: providers[0].limits.cpuTime: 1ms is out of range; give 10 to 600000 ms",
                "ranges.yaml:8: providers[0].limits.wallTime: 2h is out of range; give 100 to 3600000 ms",
                "ranges.yaml:9: providers[0].limits.concurrency: 0 is out of range",
                "ranges.yaml:10: providers[0].grant: unknown key, did you mean grants?",
            ][..],
        ),
        (
            "whole",
            "  - {name: a, component: gone.wasm}\n  - {name: a, component: a.wasm, grants: {http: [{host: 'a b'}]}}\n",
            &[
                "whole.yaml:4: providers[0].component: there is no file",
                "whole.yaml:5: providers[1].name: \"a\" is the name of another provider already",
                "whole.yaml:5: providers[1].grants.http[0].host: ",
                "routing.default: is missing",
            ],
        ),
    ] {
        let file = folder.write(&format!("{name}.yaml"), format!("{HEAD}providers:\n{providers}"));
        let checked = said(&run(&["config", "check", shown(&file)]), 1);
        let started = said(&run(&[&format!("--config={}", file.display())]), 1);
        contains_all(&checked, wanted);
        assert_eq!(mistakes(&checked).len(), wanted.len(), "{checked}");
        assert_eq!(mistakes(&checked), mistakes(&started));
    }
    let file = folder.write(
        "component.yaml",
        format!("{HEAD}providers:\n  - {{name: a, component: a.wasm}}\n"),
    );
    let told = said(&run(&["config", "check", shown(&file)]), 1);
    contains_all(
        &told,
        &["component.yaml: providers[0].component: ", "a.wasm: is not WebAssembly"],
    );
}

#[test]
fn help_teaches_and_invalid_command_line_has_its_exit_code() {
    let inspect = said(&run(&["inspect", "--help"]), 0);
    contains_all(
        &inspect,
        &["Exit codes:", "cloudwit inspect sim.wasm", "--cloud-config", "--output"],
    );
    let check = said(&run(&["config", "check", "--help"]), 0);
    contains_all(&check, &["Exit codes:", "cloudwit config check cloudwit.yaml"]);
    let all = said(&run(&["--help"]), 0);
    contains_all(&all, &["  config", "  inspect"]);
    said(&run(&["inspect"]), 2);
    said(&run(&["config"]), 2);
    said(&run(&["config", "check"]), 2);
    said(&run(&["inspect", "a.wasm", "--output=xml"]), 2);
}
