//! The chart, by a real Helm: the rendered files are up to date, say what a control plane needs, and wrong values are refused.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use xtask::commands::manifests;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

fn of_kind(documents: &[Value], kind: &str) -> Value {
    let mut found = documents.iter().filter(|document| document["kind"] == kind);
    found.next().unwrap_or_else(|| panic!("no {kind}")).clone()
}

#[test]
fn the_manifests_are_what_the_chart_renders() {
    for (file, rendered) in manifests::rendered().unwrap() {
        let there = fs::read_to_string(&file).unwrap();
        assert!(
            there == rendered,
            "{} is not what the chart renders; `cargo xtask manifests` writes it anew",
            file.display()
        );
    }
}

/// Where in the Deployment, and what has to be there.
fn wanted() -> Vec<(&'static str, Value)> {
    vec![
        ("/spec/replicas", json!(2)),
        (
            "/spec/strategy/rollingUpdate",
            json!({ "maxSurge": 0, "maxUnavailable": 1 }),
        ),
        ("/spec/template/spec/hostNetwork", json!(true)),
        ("/spec/template/spec/dnsPolicy", json!("Default")),
        (
            "/spec/template/spec/priorityClassName",
            json!("system-cluster-critical"),
        ),
        (
            "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
            // k3s and RKE2 give the label a value.
            json!([{ "matchExpressions": [{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" }] }]),
        ),
        ("/spec/template/spec/securityContext/runAsNonRoot", json!(true)),
        (
            "/spec/template/spec/securityContext/seccompProfile/type",
            json!("RuntimeDefault"),
        ),
        (
            "/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem",
            json!(true),
        ),
        (
            "/spec/template/spec/containers/0/securityContext/allowPrivilegeEscalation",
            json!(false),
        ),
        (
            "/spec/template/spec/containers/0/securityContext/capabilities/drop",
            json!(["ALL"]),
        ),
        (
            "/spec/template/spec/containers/0/livenessProbe/httpGet",
            json!({ "scheme": "HTTPS", "path": "/livez", "port": "https" }),
        ),
        (
            "/spec/template/spec/containers/0/readinessProbe/httpGet",
            json!({ "scheme": "HTTPS", "path": "/readyz", "port": "https" }),
        ),
    ]
}

#[test]
fn rendered_deployment_tolerates_uninitialised_nodes() {
    for (file, rendered) in manifests::rendered().unwrap() {
        let documents = documents(&rendered);
        let deployment = of_kind(&documents, "Deployment");
        let full = file.ends_with("full.yaml");
        for (path, value) in wanted()
            .into_iter()
            .filter(|(path, _)| !full || *path != "/spec/replicas")
        {
            assert_eq!(deployment.pointer(path), Some(&value), "{path} in {}", file.display());
        }
        let pod = &deployment["spec"]["template"]["spec"];
        for taint in [
            "node.cloudprovider.kubernetes.io/uninitialized",
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/network-unavailable",
            "node-role.kubernetes.io/control-plane",
        ] {
            let toleration = json!({ "key": taint, "operator": "Exists" });
            assert!(pod["tolerations"].as_array().unwrap().contains(&toleration), "{taint}");
        }
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
        let budget = of_kind(&documents, "PodDisruptionBudget");
        for selector in [
            &apart["labelSelector"],
            &budget["spec"]["selector"],
            &deployment["spec"]["selector"],
        ] {
            let wanted = selector["matchLabels"].as_object().unwrap();
            assert!(
                !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value),
                "{selector}"
            );
        }
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        let cache = pod["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|volume| volume["name"] == "cache");
        assert!(cache.unwrap()["emptyDir"].is_object(), "code of nobody else is there");
    }
}

/// The selector of each kind that has one, and the labels of the Pods that are made.
fn selectors(object: &Value) -> Vec<Value> {
    let paths = ["/spec/selector/matchLabels", "/spec/selector"];
    let found = paths.iter().find_map(|path| object.pointer(path));
    let apart = object.pointer("/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels");
    found.into_iter().chain(apart).cloned().collect()
}

/// A Deployment's selector cannot be changed, so what differs between versions and installers is in no selector.
#[test]
fn objects_have_standard_labels_and_selectors_lasting_ones() {
    let key = |name: &str| format!("app.kubernetes.io/{name}");
    for (file, rendered) in manifests::rendered().unwrap() {
        let by = match file.ends_with("full.yaml") {
            true => "Helm",
            false => "cloudwit-install",
        };
        for object in documents(&rendered) {
            let what = format!(
                "{} {} of {}",
                object["kind"],
                object["metadata"]["name"],
                file.display()
            );
            let pods = object.pointer("/spec/template/metadata/labels");
            for labels in [Some(&object["metadata"]["labels"]), pods].into_iter().flatten() {
                for name in ["name", "component"] {
                    assert!(labels[key(name)].is_string(), "{name} of {what}");
                }
                assert_eq!(labels[key("instance")], "cloudwit", "{what}");
                assert_eq!(labels[key("part-of")], "cloudwit", "{what}");
                assert_eq!(labels[key("managed-by")], by, "{what}");
                assert_eq!(labels[key("version")], env!("CARGO_PKG_VERSION"), "{what}");
            }
            for selector in selectors(&object) {
                let keys: BTreeSet<String> = selector.as_object().unwrap().keys().cloned().collect();
                assert_eq!(keys, BTreeSet::from([key("name"), key("instance")]), "{what}");
            }
        }
    }
}

#[test]
fn wrong_values_are_refused_with_what_is_wrong() {
    let refused = |flags: &[&str]| manifests::template(flags).unwrap_err().to_string();
    let good = "--set=existingConfiguration=x";
    assert!(manifests::template(&[good]).is_ok());
    for (flags, words) in [
        (&[][..], "configuration says nothing"),
        (
            &[
                good,
                "--set=configuration.providers[0].name=a,configuration.providers[0].component=a.wasm",
            ],
            "give one of them",
        ),
        (&[good, "--set=replica=3"], "'replica' not allowed"),
        (
            &[good, "--set=components.sim=bm90IHdhc20K"],
            "components.sim is neither a component nor a packed one",
        ),
        (
            &[good, "--set=components.sim=AGFzbQ0AAQA=,existingComponents=x"],
            "both bring components",
        ),
        (&[good, "--set=secrets.token=a,existingSecret=x"], "both bring secrets"),
        (
            &[good, "--set=webhook.enabled=true"],
            "needs a certificate that the API server trusts",
        ),
        (
            &[good, "--set=webhook.enabled=true,webhook.existingSecret=x"],
            "needs a certificate that the API server trusts",
        ),
        (
            &[
                good,
                "--set=webhook.enabled=true,webhook.issuer.name=a,webhook.caBundle=YQ==",
            ],
            "leave webhook.existingSecret and webhook.caBundle empty",
        ),
        (
            &["--set=configuration.providers[0].name=North"],
            "missing property 'component'",
        ),
    ] {
        let said = refused(flags);
        assert!(said.contains(words), "{flags:?}: {said}");
    }
}

#[test]
fn memory_limit_is_computed_unless_it_is_set() {
    let limit = |flags: &[&str]| {
        let rendered = documents(&manifests::template(flags).unwrap());
        let deployment = of_kind(&rendered, "Deployment");
        deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"].clone()
    };
    let one = r#"--set-json=configuration={"providers":[{"name":"a","component":"a.wasm"}]}"#;
    assert_eq!(limit(&[one]), "369Mi");
    assert_eq!(limit(&[one, "--set=configuration.guestMemoryBytes=104857600"]), "341Mi");
    assert_eq!(limit(&[one, "--set=resources.limits.memory=1Gi"]), "1Gi");
    assert_eq!(limit(&["--set=existingConfiguration=mine"]), Value::Null);
}

/// What `cloudwit install` registers with the API server.
fn installed_webhook() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let component = folder.path().join("sim.wasm");
    fs::write(&component, "\0asm\r\0\u{1}\0").unwrap();
    let mut install = std::process::Command::new(cloudwit_test_support::programs::cloudwit());
    install.args(["install", "--cloud-provider=sim", "--existing-secret=s", "--webhooks=*"]);
    let printed = install
        .arg(format!("--component={}", component.display()))
        .output()
        .unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    of_kind(
        &documents(&String::from_utf8(printed.stdout).unwrap()),
        "MutatingWebhookConfiguration",
    )
}

#[test]
fn webhook_registers_like_install_and_only_on_request() {
    let rendered = |more: &str| documents(&manifests::template(&["--set=existingConfiguration=x", more]).unwrap());
    let none = rendered("--set=replicas=2");
    assert!(
        none.iter()
            .all(|object| object["kind"] != "MutatingWebhookConfiguration")
    );

    let mut installed = installed_webhook();
    for certificate in [
        "--set=webhook.enabled=true,webhook.port=10300,webhook.issuer.name=a",
        "--set=webhook.enabled=true,webhook.port=10300,webhook.existingSecret=s,webhook.caBundle=YQ==",
    ] {
        let objects = rendered(certificate);
        let mut charted = of_kind(&objects, "MutatingWebhookConfiguration");
        for webhook in [&mut charted, &mut installed] {
            // The chart's is the operator's, or cert-manager's.
            webhook["webhooks"][0]["clientConfig"]
                .as_object_mut()
                .unwrap()
                .remove("caBundle");
        }
        assert_eq!(charted["webhooks"], installed["webhooks"]);
        assert_eq!(of_kind(&objects, "Service")["spec"]["ports"][0]["targetPort"], 10300);
        let deployment = of_kind(&objects, "Deployment").to_string();
        assert!(
            deployment.contains("--webhooks=persistent-volume-label")
                && deployment.contains("--webhook-secure-port=10300")
        );
        let has_certificate = objects.iter().any(|object| object["kind"] == "Certificate");
        assert_eq!(has_certificate, certificate.contains("issuer"));
    }
}
