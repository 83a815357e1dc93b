//! Manifests of the admission webhooks: certificate, Service, registration. Pure but for the key pair.
//!
//! | object | what for |
//! | ------ | -------- |
//! | Secret `cloudwit-webhook` | the pair that Pods serve with; they read it again when it changes |
//! | Service `cloudwit-webhook` | called by the API server |
//! | MutatingWebhookConfiguration `cloudwit` | the objects to send, and the trusted authority |
//!
//! The authority signs one pair and its key is thrown away, so there is none to keep. `install --apply` makes another one each time; the three before are
//! trusted on, since Pods get the new Secret later than the API server the configuration.

use anyhow::Context;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use crate::webhook::Webhook;

/// The name of Secret and Service.
const NAME: &str = "cloudwit-webhook";
/// The name of the configuration.
pub const CONFIGURATION: &str = "cloudwit";
/// Where the Secret is mounted.
const FOLDER: &str = "/etc/cloudwit/webhook";
/// How long a pair is good.
const DAYS: i64 = 730;
/// What the API server waits; ours is shorter ([`crate::webhook::router::TIME_LIMIT`]).
const TIMEOUT_SECONDS: u8 = 10;

/// A pair and the authority that signed it, as PEM. Not `Debug`, since the key is in it.
pub struct Pair {
    authority: String,
    certificate: String,
    key: String,
}

impl Pair {
    /// A new one for the Service, good from yesterday on: clocks differ.
    pub fn generate(namespace: &str, now: Timestamp) -> anyhow::Result<Self> {
        let day = |days: i64| {
            let date = (now + SignedDuration::from_hours(24 * days))
                .to_zoned(TimeZone::UTC)
                .date();
            let part = |number: i8| u8::try_from(number).unwrap_or(1);
            rcgen::date_time_ymd(date.year().into(), part(date.month()), part(date.day()))
        };
        let params = |names: Vec<String>, common_name: &str| -> anyhow::Result<CertificateParams> {
            let mut params = CertificateParams::new(names)?;
            (params.not_before, params.not_after) = (day(-1), day(DAYS));
            params.distinguished_name.push(DnType::CommonName, common_name);
            Ok(params)
        };
        let make = || -> anyhow::Result<Self> {
            let mut authority = params(Vec::new(), "cloudwit-webhook-ca")?;
            authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
            authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
            let authority_key = KeyPair::generate()?;
            let signed = authority.self_signed(&authority_key)?;
            let host = format!("{NAME}.{namespace}.svc");
            let mut served = params(vec![host.clone(), format!("{host}.cluster.local")], &host)?;
            served.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            served.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            let key = KeyPair::generate()?;
            let certificate = served.signed_by(&key, &Issuer::new(authority, authority_key))?;
            Ok(Self {
                authority: signed.pem(),
                certificate: certificate.pem(),
                key: key.serialize_pem(),
            })
        };
        make().context("making the certificate of the webhooks")
    }
}

/// Authorities that were trusted before and still are.
const KNOWN: usize = 3;

/// Puts the webhooks into what is installed: the Deployment serves them on this port, and the API server calls them once a replica is ready. `known` are the
/// authorities that it trusts now, as PEM.
pub fn register(objects: &mut Vec<Value>, webhooks: &[Webhook], port: u16, pair: &Pair, known: Option<&str>) {
    let Some(at) = objects.iter().position(|object| object["kind"] == "Deployment") else {
        return;
    };
    serve(&mut objects[at], port);
    let selector = objects[at]["spec"]["selector"]["matchLabels"].clone();
    let labels = objects[at]["metadata"]["labels"].clone();
    let namespace = objects[at]["metadata"]["namespace"].clone();
    let metadata = json!({ "name": NAME, "namespace": namespace, "labels": labels });
    let bytes = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls",
        "data": { "tls.crt": bytes(&pair.certificate), "tls.key": bytes(&pair.key) },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {
            "selector": selector,
            "ports": [{ "name": "webhooks", "port": 443, "targetPort": port, "protocol": "TCP" }],
        },
    });
    let authorities = bytes(&authorities(&pair.authority, known));
    let webhooks: Vec<Value> = webhooks
        .iter()
        .map(|webhook| registration(*webhook, &namespace, &authorities))
        .collect();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": CONFIGURATION, "labels": labels }, "webhooks": webhooks,
    });
    if known.is_some() {
        // Trusted first and served then, so that what stops half way leaves the webhooks answering.
        objects.splice(at..at, [configuration, secret, service]);
    } else {
        objects.splice(at..at, [secret, service]);
        objects.push(configuration);
    }
}

/// The new authority, and the newest of those that were trusted before: Pods may serve an older pair for a while.
fn authorities(new: &str, known: Option<&str>) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let known = known.unwrap_or_default().split_inclusive(END).map(str::trim);
    let known = known.filter(|known| known.ends_with(END) && *known != new.trim());
    let all: Vec<&str> = [new.trim()].into_iter().chain(known.take(KNOWN)).collect();
    all.join("\n") + "\n"
}

fn registration(webhook: Webhook, namespace: &Value, authorities: &Value) -> Value {
    match webhook {
        Webhook::PersistentVolumeLabel => {
            let sources =
                cloudwit_model::InTreeSource::ALL.map(|source| format!("has(object.spec.{})", source.field()));
            json!({
                "name": "persistent-volume-label.cloudwit.dev",
                "clientConfig": {
                    "service": { "name": NAME, "namespace": namespace, "path": webhook.path(), "port": 443 },
                    "caBundle": authorities,
                },
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["persistentvolumes"],
                    "scope": "Cluster",
                }],
                // No other volume waits for us.
                "matchConditions": [{ "name": "disk-of-a-cloud", "expression": sources.join(" || ") }],
                "matchPolicy": "Equivalent",
                // As the admission plugin did: no volume without its place.
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "reinvocationPolicy": "Never",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "admissionReviewVersions": ["v1"],
            })
        }
    }
}

/// What the Deployment has besides to serve them.
fn serve(deployment: &mut Value, port: u16) {
    let pod = &mut deployment["spec"]["template"]["spec"];
    let container = &mut pod["containers"][0];
    let push = |list: &mut Value, item: Value| {
        if let Some(list) = list.as_array_mut() {
            list.push(item);
        }
    };
    push(
        &mut container["args"],
        json!(format!("--webhook-tls-cert-file={FOLDER}/tls.crt")),
    );
    push(
        &mut container["args"],
        json!(format!("--webhook-tls-private-key-file={FOLDER}/tls.key")),
    );
    push(
        &mut container["ports"],
        json!({ "name": "webhooks", "containerPort": port }),
    );
    push(
        &mut container["volumeMounts"],
        json!({ "name": "webhook", "mountPath": FOLDER, "readOnly": true }),
    );
    push(
        &mut pod["volumes"],
        json!({ "name": "webhook", "secret": { "secretName": NAME, "defaultMode": 0o440 } }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(name: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n")
    }

    #[test]
    fn new_authority_comes_first_and_the_last_three_stay_trusted() {
        let one = certificate("a");
        assert_eq!(authorities(&one, None), one);
        assert_eq!(authorities(&one, Some(&one)), one);
        let known = ["d", "c", "b", "a"].map(certificate).concat();
        assert_eq!(
            authorities(&certificate("e"), Some(&known)),
            ["e", "d", "c", "b"].map(certificate).concat()
        );
        assert_eq!(authorities(&one, Some("nothing")), one);
    }

    #[test]
    fn renewed_pair_is_trusted_before_it_is_served() {
        let deployment = json!({
            "kind": "Deployment", "metadata": { "labels": {} },
            "spec": { "selector": { "matchLabels": {} }, "template": { "spec": { "containers": [{}] } } },
        });
        let kinds = |known: Option<&str>| {
            let mut objects = vec![deployment.clone()];
            let pair = Pair {
                authority: certificate("b"),
                certificate: certificate("c"),
                key: String::new(),
            };
            register(&mut objects, &[Webhook::PersistentVolumeLabel], 10260, &pair, known);
            objects
                .iter()
                .map(|object| object["kind"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let configuration = "MutatingWebhookConfiguration";
        assert_eq!(kinds(None), ["Secret", "Service", "Deployment", configuration]);
        let known = certificate("a");
        assert_eq!(kinds(Some(&known)), [configuration, "Secret", "Service", "Deployment"]);
    }
}
