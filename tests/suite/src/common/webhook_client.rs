//! The admission webhook as an API server asks it: its certificate, its registration, and PersistentVolumes that come before it.

use std::path::Path;
use std::process::Command;

use cloudwit_test_support::programs;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::PostParams;
use kube::{Api, Client};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

/// Flags of a process that serves its webhooks on this port, with the pair in this folder.
pub fn flags(folder: &Path, port: u16) -> [String; 5] {
    let file = |name: &str| folder.join(name).display().to_string();
    [
        "--webhooks=*".to_owned(),
        "--webhook-bind-address=127.0.0.1".to_owned(),
        format!("--webhook-secure-port={port}"),
        format!("--webhook-tls-cert-file={}", file("tls.crt")),
        format!("--webhook-tls-private-key-file={}", file("tls.key")),
    ]
}

/// Registers the webhook as `cloudwit install` does for this provider, but for where it is and who signed its certificate.
pub async fn register(client: &Client, provider: &str, component: &Path, client_config: Value) {
    let mut installing = Command::new(programs::cloudwit());
    installing
        .arg("install")
        .arg(format!("--cloud-provider={provider}"))
        .args(["--existing-secret=s", "--webhooks=persistent-volume-label"])
        .arg(format!("--component={}", component.display()));
    let printed = tokio::task::spawn_blocking(move || installing.output().unwrap())
        .await
        .unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let printed = String::from_utf8(printed.stdout).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    let is_it = |object: &&Value| object["kind"] == "MutatingWebhookConfiguration";
    let mut configuration = objects.iter().find(is_it).unwrap().clone();
    let webhook = &mut configuration["webhooks"][0];
    webhook["clientConfig"] = client_config;
    // Longer than the 8 s after which the webhook says that the cloud is late; and on a busy machine either of them may be stopped for a while.
    assert_eq!(webhook["timeoutSeconds"], 10);
    webhook["timeoutSeconds"] = json!(30);
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(configuration).unwrap();
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let _ = configurations.delete("cloudwit", &Default::default()).await;
    configurations
        .create(&PostParams::default(), &configuration)
        .await
        .unwrap();
}

/// Where the webhook is, and who signed its certificate.
pub fn client_config(port: u16, authority: &str) -> Value {
    json!({
        "url": format!("https://127.0.0.1:{port}/persistent-volume-label"),
        "caBundle": ByteString(authority.as_bytes().to_vec()),
    })
}

/// Creates a volume; or code and message of the refusal.
pub async fn create(client: &Client, params: &PostParams, volume: Value) -> Result<PersistentVolume, String> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volume = serde_json::from_value(volume).unwrap();
    let created = volumes.create(params, &volume).await;
    created.map_err(|error| match error {
        kube::Error::Api(refused) => format!("{}: {}", refused.code, refused.message),
        other => panic!("{other:?}"),
    })
}

/// A PersistentVolume of this source.
pub fn volume(name: &str, source: Value) -> Value {
    let mut volume = json!({
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
    });
    for (field, source) in source.as_object().unwrap() {
        volume["spec"][field] = source.clone();
    }
    volume
}

/// Writes a new pair for 127.0.0.1, and gives the authority that signed it.
pub fn pair(folder: &Path) -> String {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let pem = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let served = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let served = served.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    std::fs::write(folder.join("tls.crt"), served.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    pem
}

/// What it requires of Nodes.
pub fn terms(volume: &PersistentVolume) -> Value {
    json!(volume.spec.as_ref().unwrap().node_affinity)["required"]["nodeSelectorTerms"].clone()
}
