//! What `install` makes of a configuration and of mistakes in it.

use std::path::Path;

use clap::Parser;
use serde_json::Value;

use crate::commands::explain::Command;
use crate::commands::install::bundle::Bundle;
use crate::commands::install::command::InstallArgs;
use crate::commands::install::manifests::{self, Settings};
use crate::commands::install::webhooks::{self, Pair};
use crate::commands::install::yaml;
use crate::flags::args::Args;

fn args(flags: &[&str]) -> InstallArgs {
    match Args::parse_from(["cloudwit", "install"].iter().chain(flags)).command {
        Some(Command::Install(args)) => *args,
        other => panic!("{other:?}"),
    }
}

/// A folder with a configuration of two providers and all their files.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("sim.wasm", "\0asm\r\0\u{1}\0");
    write("north.json", "{}");
    write("ca.pem", "authorities");
    write("client.pem", "client certificate");
    write("client.key", "-----BEGIN PRIVATE KEY-----");
    write("token", "secret\n");
    write(
        "cloudwit.yaml",
        "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n\
         - name: north\n  component: sim.wasm\n  cloudConfigFile: north.json\n  grants:\n    \
         http: [{host: a.example.com, ca: ca.pem, clientCertificate: client.pem, clientKey: client.key}]\n    \
         secrets: [{name: token, file: token, hosts: [a.example.com], uses: [placeholder]}, {name: volume/key, uses: [sign]}]\n\
         - name: south\n  component: ./sim.wasm\n  cloudConfig: 'on: yes'\n\
         routing: {default: north, services: [{provider: south, classes: [example.com/south]}]}\n",
    );
    dir
}

fn config(dir: &Path) -> String {
    format!("--config={}", dir.join("cloudwit.yaml").display())
}

fn objects(flags: &[&str]) -> Result<Vec<Value>, Vec<String>> {
    let args = args(flags);
    manifests::objects(&Settings::new(&args), &Bundle::read(&args)?)
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(is).unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn arguments(objects: &[Value]) -> Vec<&str> {
    let container = &named(objects, "Deployment", "cloudwit")["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().unwrap();
    arguments.iter().map(|argument| argument.as_str().unwrap()).collect()
}

#[test]
fn port_moves_probes_and_labels_select_nodes() {
    let dir = folder();
    let config = config(dir.path());
    let pod = |flags: &[&str]| {
        let flags: Vec<&str> = [config.as_str()].iter().chain(flags).copied().collect();
        named(&objects(&flags).unwrap(), "Deployment", "cloudwit")["spec"]["template"]["spec"].clone()
    };
    let port = |pod: &Value| pod["containers"][0]["ports"][0].clone();
    let usual = pod(&[]);
    let https = serde_json::json!({ "name": "https", "containerPort": 10258 });
    assert_eq!(port(&usual), https);
    let moved = pod(&["--", "--secure-port=10358"]);
    assert_eq!(port(&moved)["containerPort"], 10358);
    assert_eq!(
        moved["containers"][0]["livenessProbe"],
        usual["containers"][0]["livenessProbe"]
    );
    assert!(usual["containers"][0]["livenessProbe"].is_object());
    let silent = pod(&["--", "--secure-port=0"]);
    assert_eq!(port(&silent), Value::Null);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        assert!(silent["containers"][0].get(probe).is_none(), "{probe}");
    }

    let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let expressions = |pod: &Value| pod.pointer(terms).unwrap()[0]["matchExpressions"].clone();
    let control_plane = serde_json::json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" }]);
    assert_eq!(expressions(&usual), control_plane);
    let chosen = pod(&[
        "--node-selector=example.com/clouds",
        "--node-selector=kubernetes.io/os=linux",
    ]);
    assert_eq!(
        expressions(&chosen),
        serde_json::json!([
            { "key": "example.com/clouds", "operator": "Exists" },
            { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
        ])
    );
    assert_eq!(
        chosen["affinity"]["podAntiAffinity"],
        usual["affinity"]["podAntiAffinity"]
    );
}

#[test]
fn every_file_travels_and_the_paths_become_those_of_the_pod() {
    let dir = folder();
    let objects = objects(&[&config(dir.path())]).unwrap();
    let map = &named(&objects, "ConfigMap", "cloudwit-config")["data"];
    let configuration: Value = serde_saphyr::from_str(map["cloudwit.yaml"].as_str().unwrap()).unwrap();
    let north = &configuration["providers"][0];
    assert_eq!(north["component"], "sim.wasm");
    assert_eq!(north["cloudConfigFile"], "north-north.json");
    assert_eq!(north["grants"]["http"][0]["ca"], "north-ca.pem");
    assert_eq!(
        north["grants"]["secrets"][0]["file"],
        "/etc/cloudwit/secrets/north-token"
    );
    assert_eq!(
        north["grants"]["secrets"][1],
        serde_json::json!({ "name": "volume/key", "uses": ["sign"] }),
        "it comes with requests and has no file"
    );
    assert_eq!(configuration["providers"][1]["component"], "sim.wasm");
    assert_eq!(configuration["providers"][1]["cloudConfig"], "on: yes");
    assert_eq!(map["north-north.json"], "{}");
    assert_eq!(map["north-ca.pem"], "authorities");
    assert_eq!(north["grants"]["http"][0]["clientCertificate"], "north-client.pem");
    assert_eq!(map["north-client.pem"], "client certificate");
    assert_eq!(
        north["grants"]["http"][0]["clientKey"],
        "/etc/cloudwit/secrets/north-client.key"
    );
    let components = &named(&objects, "ConfigMap", "cloudwit-providers")["binaryData"];
    assert_eq!(components, &serde_json::json!({ "sim.wasm": "AGFzbQ0AAQA=" }));
    let secrets = &named(&objects, "Secret", "cloudwit-secrets")["data"];
    assert_eq!(secrets["north-token"], "c2VjcmV0Cg==");
    assert_eq!(decoded(&secrets["north-client.key"]), "-----BEGIN PRIVATE KEY-----");
    assert_eq!(secrets.as_object().unwrap().len(), 2);
    assert!(!map.to_string().contains("PRIVATE KEY"), "{map}");
    assert_eq!(
        objects.last().unwrap()["kind"],
        "Deployment",
        "what it mounts comes first"
    );
}

#[test]
fn keys_and_login_of_a_registry_travel_and_component_does_not() {
    let dir = folder();
    let component = format!("oci://registry.example/sim@sha256:{}", "0".repeat(64));
    for (name, text) in [("cosign.pub", "a key"), ("login.json", "{}")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let text = format!(
        "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n- name: north\n  component: {component}\n  \
         registry: {{ca: ca.pem, dockerConfig: login.json}}\n  verify: {{keys: [cosign.pub]}}\n"
    );
    std::fs::write(dir.path().join("cloudwit.yaml"), text).unwrap();
    let objects = objects(&[&config(dir.path())]).unwrap();
    let beside = &named(&objects, "ConfigMap", "cloudwit-config")["data"];
    assert_eq!(
        (&beside["north-ca.pem"], &beside["north-cosign.pub"]),
        (&"authorities".into(), &"a key".into())
    );
    let read: Value = crate::config::yaml::read(beside["cloudwit.yaml"].as_str().unwrap()).unwrap();
    let provider = &read["providers"][0];
    assert_eq!(provider["component"], component);
    assert_eq!(provider["verify"]["keys"][0], "north-cosign.pub");
    assert_eq!(provider["registry"]["ca"], "north-ca.pem");
    assert_eq!(
        provider["registry"]["dockerConfig"],
        "/etc/cloudwit/secrets/north-registry.json"
    );
    assert_eq!(
        decoded(&named(&objects, "Secret", "cloudwit-secrets")["data"]["north-registry.json"]),
        "{}"
    );
}

#[test]
fn what_is_printed_reads_back_as_what_it_was() {
    let dir = folder();
    std::fs::write(dir.path().join("sim.wasm"), [b'\0'; 300_000]).unwrap();
    let objects = objects(&[&config(dir.path()), "--controller-accounts"]).unwrap();
    let text = yaml::stream(&objects).unwrap();
    assert!(
        text.starts_with("# kubectl apply --server-side -f -\n# (Without --server-side"),
        "{}",
        &text[..100]
    );
    let back: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(back, objects);
}

#[test]
fn flags_change_the_deployment() {
    let dir = folder();
    let of = |flags: &[&str]| objects(&[&[config(dir.path()).as_str()], flags].concat()).unwrap();
    let plain = of(&[]);
    assert!(arguments(&plain).contains(&"--configure-cloud-routes=false"));
    let changed = of(&[
        "--cluster-cidr=10.244.0.0/16",
        "--cluster-name=c",
        "--replicas=1",
        "--image=registry.example.com/x:1",
        "--api-server=[fd00::1]:6443",
        "--controller-accounts",
        "--",
        "--v=2",
        "--cache-dir=/elsewhere",
    ]);
    let flags = arguments(&changed);
    for flag in [
        "--cluster-cidr=10.244.0.0/16",
        "--cluster-name=c",
        "--v=2",
        "--cache-dir=/elsewhere",
        "--use-service-account-credentials",
    ] {
        assert!(flags.contains(&flag), "{flag} is missing in {flags:?}");
    }
    let names: std::collections::BTreeSet<&str> = flags.iter().map(|flag| flag.split('=').next().unwrap()).collect();
    assert_eq!(names.len(), flags.len(), "each is there once: {flags:?}");
    assert!(!flags.contains(&"--configure-cloud-routes=false"));
    let deployment = named(&changed, "Deployment", "cloudwit");
    assert_eq!(deployment["spec"]["replicas"], 1);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/x:1");
    let env = pod["containers"][0]["env"].as_array().unwrap();
    assert!(
        env.iter()
            .any(|one| one["name"] == "KUBERNETES_SERVICE_HOST" && one["value"] == "fd00::1")
    );
    let restarts = |objects: &[Value]| {
        let template = &named(objects, "Deployment", "cloudwit")["spec"]["template"];
        template["metadata"]["annotations"]["cloudwit.dev/restarts-with"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let before = restarts(&plain);
    std::fs::write(dir.path().join("north.json"), "{\"changed\": true}").unwrap();
    assert_eq!(restarts(&of(&[])), before, "the running process follows this one");
    let file = dir.path().join("cloudwit.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("default: north", "default: south")).unwrap();
    assert_ne!(restarts(&of(&[])), before, "and this one not");
}

#[test]
fn one_provider_needs_no_configuration_file() {
    let dir = folder();
    let at = |flag: &str, name: &str| format!("--{flag}={}", dir.path().join(name).display());
    let token = dir.path().join("token");
    let settings = format!(
        "grants: {{secrets: [{{name: token, file: {}, hosts: ['a:1'], uses: [placeholder]}}], http: [{{host: a, port: 1}}]}}\nlimits: {{wallTime: 30s}}\n",
        token.display()
    );
    std::fs::write(dir.path().join("settings.yaml"), settings).unwrap();
    let objects = objects(&[
        "--cloud-provider=sim",
        &at("component", "sim.wasm"),
        &at("cloud-config", "north.json"),
        &at("provider-settings", "settings.yaml"),
    ])
    .unwrap();
    let map = &named(&objects, "ConfigMap", "cloudwit-config")["data"];
    let configuration: Value = serde_saphyr::from_str(map["cloudwit.yaml"].as_str().unwrap()).unwrap();
    let sim = &configuration["providers"][0];
    assert_eq!(
        (&sim["name"], &sim["limits"]["wallTime"]),
        (&"sim".into(), &"30s".into())
    );
    assert_eq!(sim["grants"]["secrets"][0]["file"], "/etc/cloudwit/secrets/sim-token");
    assert_eq!(map["sim-north.json"], "{}");
}

#[test]
fn secrets_may_stay_where_they_are_kept() {
    let dir = folder();
    let refused = objects(&[&config(dir.path()), "--existing-secret=theirs"]).unwrap_err();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0].contains("grants.http[0].clientKey") && refused[1].contains("grants.secrets[0].file"),
        "{refused:?}"
    );
    for one in &refused {
        assert!(one.contains("/etc/cloudwit/secrets/KEY"), "{one}");
    }
    let file = dir.path().join("cloudwit.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("file: token", "file: /etc/cloudwit/secrets/t");
    std::fs::write(&file, text.replace("clientKey: ", "clientKey: /etc/cloudwit/secrets/")).unwrap();
    let objects = objects(&[&config(dir.path()), "--existing-secret=theirs"]).unwrap();
    assert!(!objects.iter().any(|object| object["kind"] == "Secret"));
    let volumes = &named(&objects, "Deployment", "cloudwit")["spec"]["template"]["spec"]["volumes"];
    let volumes = volumes.as_array().unwrap();
    assert!(volumes.iter().any(|volume| volume["secret"]["secretName"] == "theirs"));
}

#[test]
fn private_key_never_goes_into_the_configmap() {
    let dir = folder();
    let of = || objects(&[&config(dir.path())]).unwrap_err();
    for file in ["client.pem", "ca.pem"] {
        let before = std::fs::read(dir.path().join(file)).unwrap();
        let both = "client certificate\n-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        std::fs::write(dir.path().join(file), both).unwrap();
        let mistakes = of();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert!(
            mistakes[0].contains(file)
                && mistakes[0].contains("contains a private key")
                && !mistakes[0].contains("AAAA"),
            "{mistakes:?}"
        );
        std::fs::write(dir.path().join(file), before).unwrap();
    }
    let file = dir.path().join("cloudwit.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("clientKey: client.key", "clientKey: client.pem")).unwrap();
    let mistakes = of();
    assert!(
        mistakes[0].contains("is the file of clientCertificate too"),
        "{mistakes:?}"
    );
}

#[test]
fn files_of_one_name_are_not_taken_for_each_other() {
    let dir = folder();
    let file = dir.path().join("cloudwit.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let other = "[{host: b.example.com, ca: other/ca.pem, clientCertificate: other/client.pem, clientKey: other/client.key}, {host: a";
    std::fs::write(&file, text.replace("[{host: a", other)).unwrap();
    for name in ["ca.pem", "client.pem", "client.key"] {
        std::fs::copy(dir.path().join(name), dir.path().join("other").join(name)).unwrap();
    }
    assert!(objects(&[&config(dir.path())]).is_ok(), "they are the same");
    for name in ["ca.pem", "client.pem", "client.key"] {
        std::fs::write(dir.path().join("other").join(name), "another").unwrap();
    }
    let mistakes = objects(&[&config(dir.path())]).unwrap_err();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    for mistake in &mistakes {
        assert!(mistake.contains("give one of the two a name of its own"), "{mistake}");
    }
}

#[test]
fn all_mistakes_are_reported_with_file_and_fix() {
    let dir = folder();
    for (file, content) in [("token", Some("")), ("ca.pem", None)] {
        let file = dir.path().join(file);
        match content {
            Some(text) => std::fs::write(file, text).unwrap(),
            None => std::fs::remove_file(file).unwrap(),
        }
    }
    let file = dir.path().join("cloudwit.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("./sim.wasm", "./my sim.wasm")).unwrap();
    std::fs::copy(dir.path().join("sim.wasm"), dir.path().join("my sim.wasm")).unwrap();
    let mistakes = objects(&[&config(dir.path())]).unwrap_err();
    assert_eq!(mistakes.len(), 3, "{mistakes:?}");
    assert!(
        mistakes[2].contains("my sim.wasm: a key of a ConfigMap"),
        "{mistakes:?}"
    );
    assert!(
        mistakes
            .iter()
            .any(|mistake| mistake.contains("grants.http[0].ca") && mistake.contains("ca.pem")),
        "{mistakes:?}"
    );
    assert!(
        mistakes
            .iter()
            .any(|mistake| mistake.contains("grants.secrets[0].file") && mistake.contains("it is empty")),
        "{mistakes:?}"
    );
}

#[test]
fn misfits_and_unknown_flags_are_refused() {
    let dir = folder();
    let component = dir.path().join("sim.wasm");
    std::fs::write(&component, vec![0; 1 << 20]).unwrap();
    assert!(objects(&[&config(dir.path())]).is_ok(), "exactly as much as fits");
    std::fs::write(&component, vec![0; (1 << 20) + 1]).unwrap();
    let mistakes = objects(&[&config(dir.path()), "--", "--clod-provider=x"]).unwrap_err();
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(
        mistakes[0].contains("--clod-provider: there is no such flag"),
        "{mistakes:?}"
    );
    assert!(
        mistakes[1].contains("sim.wasm) have 1048577 bytes together, and only 1048576 fit: pack them with zstd -19"),
        "{mistakes:?}"
    );
}

fn decoded(value: &Value) -> String {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(value.clone()).unwrap();
    String::from_utf8(bytes.0).unwrap()
}

#[test]
fn webhooks_register_with_pair_signed_by_their_authority() {
    let dir = folder();
    let args = args(&[&config(dir.path()), "--webhooks=*", "--", "--webhook-secure-port=10300"]);
    let settings = Settings::new(&args);
    let mut objects = manifests::objects(&settings, &Bundle::read(&args).unwrap()).unwrap();
    let before = objects.len();
    let (selected, port) = settings.webhooks().unwrap();
    let now = jiff::Timestamp::now();
    let (pair, next) = (
        Pair::generate("kube-system", now).unwrap(),
        Pair::generate("kube-system", now).unwrap(),
    );
    webhooks::register(&mut objects, &selected, port, &pair, None);
    assert_eq!(objects.len(), before + 3);
    let kinds: Vec<&str> = objects[objects.len() - 4..]
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["Secret", "Service", "Deployment", "MutatingWebhookConfiguration"]
    );

    let arguments = arguments(&objects);
    for flag in [
        "--webhooks=*",
        "--webhook-secure-port=10300",
        "--webhook-tls-cert-file=/etc/cloudwit/webhook/tls.crt",
        "--webhook-tls-private-key-file=/etc/cloudwit/webhook/tls.key",
    ] {
        assert!(arguments.contains(&flag), "{flag}: {arguments:?}");
    }
    let pod = &named(&objects, "Deployment", "cloudwit")["spec"]["template"];
    let service = &named(&objects, "Service", "cloudwit-webhook")["spec"];
    assert_eq!(service["ports"][0]["targetPort"], 10300);
    for (key, value) in service["selector"].as_object().unwrap() {
        assert_eq!(&pod["metadata"]["labels"][key], value, "{key}");
    }
    let has = |list: &Value, name: &str| list.as_array().unwrap().iter().any(|one| one["name"] == name);
    assert!(has(&pod["spec"]["volumes"], "webhook") && has(&pod["spec"]["containers"][0]["volumeMounts"], "webhook"));

    let webhook = &named(&objects, "MutatingWebhookConfiguration", "cloudwit")["webhooks"][0];
    let bundle = decoded(&webhook["clientConfig"]["caBundle"]);
    let secret = &named(&objects, "Secret", "cloudwit-webhook")["data"];
    let (certificate, key) = (decoded(&secret["tls.crt"]), decoded(&secret["tls.key"]));
    verify(&bundle, &certificate, &key);

    // The next pair: trusted, and the one before with it, but not the one before that.
    let mut renewed = manifests::objects(&settings, &Bundle::read(&args).unwrap()).unwrap();
    let known = format!("{bundle}\n{}", bundle.replace('A', "B"));
    webhooks::register(&mut renewed, &selected, port, &next, Some(&known));
    let webhook = &named(&renewed, "MutatingWebhookConfiguration", "cloudwit")["webhooks"][0];
    let both = decoded(&webhook["clientConfig"]["caBundle"]);
    assert_eq!(both.matches("BEGIN CERTIFICATE").count(), 2, "{both}");
    verify(&both, &certificate, &key);
    let secret = &named(&renewed, "Secret", "cloudwit-webhook")["data"];
    verify(&both, &decoded(&secret["tls.crt"]), &decoded(&secret["tls.key"]));
}

/// Whether a client that trusts these authorities takes this pair for the Service.
fn verify(authorities: &str, certificate: &str, key: &str) {
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let served = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), crypto.clone());
    let verifier = verifier.build().unwrap();
    let name = ServerName::try_from("cloudwit-webhook.kube-system.svc").unwrap();
    use rustls::client::danger::ServerCertVerifier as _;
    verifier
        .verify_server_cert(&served, &[], &name, &[], UnixTime::now())
        .unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    rustls::sign::CertifiedKey::from_der(vec![served], key, &crypto).unwrap();
}

#[test]
fn nothing_is_registered_without_webhooks_or_foreign_pair() {
    let dir = folder();
    let of = |flags: &[&str]| {
        let config = config(dir.path());
        let all: Vec<&str> = [config.as_str()].into_iter().chain(flags.iter().copied()).collect();
        Settings::new(&args(&all)).webhooks()
    };
    assert_eq!(of(&[]), None);
    assert_eq!(
        of(&[
            "--webhooks=*",
            "--",
            "--webhook-tls-cert-file=/a",
            "--webhook-tls-private-key-file=/b"
        ]),
        None
    );
    assert_eq!(of(&["--", "--webhooks=*"]).unwrap().1, 10260);
    let wrong = objects(&[&config(dir.path()), "--webhooks=pvl"]).unwrap_err();
    assert!(
        wrong[0].contains("\"pvl\" is not in the list of known webhooks"),
        "{wrong:?}"
    );
}

#[test]
fn another_namespace_has_everything_but_the_lease() {
    let dir = folder();
    let config = config(dir.path());
    let objects = objects(&[&config, "--namespace=cloud-system"]).unwrap();
    assert_eq!(objects[0]["kind"], "Namespace");
    let labels = &objects[0]["metadata"]["labels"];
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
    for object in &objects {
        let namespace = object["metadata"]["namespace"].as_str();
        let expected = match object["kind"].as_str().unwrap() {
            "Namespace" | "ClusterRole" | "ClusterRoleBinding" => None,
            "Role" | "RoleBinding" => Some("kube-system"),
            _ => Some("cloud-system"),
        };
        assert_eq!(namespace, expected, "{object}");
        for subject in object["subjects"].as_array().into_iter().flatten() {
            assert_eq!(subject["namespace"], "cloud-system", "{object}");
        }
    }
    let usual = self::objects(&[&config]).unwrap();
    assert!(usual.iter().all(|object| object["kind"] != "Namespace"));
}

#[test]
fn controllers_accounts_stay_in_kube_system() {
    let dir = folder();
    let config = config(dir.path());
    let objects = objects(&[&config, "--namespace=cloud-system", "--controller-accounts"]).unwrap();
    let text = serde_json::to_string(&objects).unwrap();
    let subjects = objects
        .iter()
        .filter_map(|object| object["subjects"].as_array())
        .flatten();
    for subject in subjects {
        let expected = if subject["name"] == "cloudwit" {
            "cloud-system"
        } else {
            "kube-system"
        };
        assert_eq!(subject["namespace"], expected, "{text}");
    }
}

#[test]
fn a_namespace_has_the_letters_that_kubernetes_takes() {
    let parse = |name: &str| {
        let flag = format!("--namespace={name}");
        Args::try_parse_from(["cloudwit", "install", "--config=x", flag.as_str()])
    };
    assert!(parse("cloud-system").is_ok());
    for wrong in ["", "A", "-a", "a.b", &"a".repeat(64)] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}
