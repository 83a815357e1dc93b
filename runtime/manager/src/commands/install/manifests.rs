//! Manifests of deploy/manifests, embedded, with the changes of flags and bundle.
//!
//! Pure: no file, no cluster.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::commands::install::bundle::Bundle;
use crate::commands::install::command::InstallArgs;
use crate::flags::checks;
use crate::flags::command_line::{self, Parsed};
use crate::flags::groups::serving::DEFAULT_SECURE_PORT;
use crate::process::memory;
use crate::webhook::Webhook;

/// The image that belongs to this version.
pub const IMAGE: &str = concat!("ghcr.io/cloudwit/cloudwit:", env!("CARGO_PKG_VERSION"));

const MANIFESTS: &str = include_str!("../../../../../deploy/manifests/cloudwit.yaml");
const WITH_CONTROLLER_ACCOUNTS: &str =
    include_str!("../../../../../deploy/manifests/cloudwit-controller-accounts.yaml");

/// What a ConfigMap or a Secret may hold: the values of all keys together, in bytes (kubernetes pkg/apis/core/validation,
/// `core.MaxSecretSize`).
const LIMIT: usize = 1 << 20;

/// Where the manifests have everything, and where the Lease and the API server's own authorities stay.
pub const KUBE_SYSTEM: &str = "kube-system";

/// How it runs.
#[derive(Debug)]
pub struct Settings {
    namespace: String,
    image: String,
    replicas: u8,
    controller_accounts: bool,
    existing_secret: Option<String>,
    api_server: Option<(String, u16)>,
    node_selector: Vec<(String, Option<String>)>,
    flags: Vec<String>,
}

impl Settings {
    /// What the command line says.
    pub fn new(args: &InstallArgs) -> Self {
        let mut flags = vec![format!("--cluster-name={}", args.cluster_name)];
        flags.push(match args.cluster_cidr.as_str() {
            "" => "--configure-cloud-routes=false".into(),
            cidr => format!("--cluster-cidr={cidr}"),
        });
        if !args.webhooks.is_empty() {
            flags.push(format!("--webhooks={}", args.webhooks.join(",")));
        }
        flags.extend(args.flags.iter().cloned());
        Self {
            namespace: args.namespace.clone(),
            image: args.image.clone(),
            replicas: args.replicas,
            controller_accounts: args.controller_accounts,
            existing_secret: args.existing_secret.clone(),
            api_server: args.api_server.clone(),
            node_selector: args.node_selector.clone(),
            flags,
        }
    }

    /// Where HTTPS is served. ([`objects`] refuses flags that cannot be read.)
    fn secure_port(&self) -> u16 {
        parsed(&self.flags).map_or(DEFAULT_SECURE_PORT, |parsed| parsed.args.secure_serving.secure_port)
    }

    /// The webhooks that are served, and their port. None where there are none, or they get a certificate by flags: whoever has that registers them, too.
    pub fn webhooks(&self) -> Option<(Vec<Webhook>, u16)> {
        let args = parsed(&self.flags).ok()?.args.webhooks;
        let (selected, port) = (args.selected(), args.webhook_secure_port);
        (!selected.is_empty() && args.webhook_tls_cert_file.is_none()).then_some((selected, port))
    }
}

/// All objects, in the order in which they are to be applied: what the Pods need comes before the Deployment.
pub fn objects(settings: &Settings, bundle: &Bundle) -> Result<Vec<Value>, Vec<String>> {
    let mut mistakes = wrong_flags(&settings.flags);
    mistakes.extend(too_large(bundle));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut objects = manifests(settings);
    move_to(&settings.namespace, &mut objects);
    for object in objects.iter_mut().filter(|object| object["kind"] == "Deployment") {
        set_up(object, settings, bundle);
    }
    let labels = objects[0]["metadata"]["labels"].clone();
    let metadata = |name: &str| json!({ "name": name, "namespace": settings.namespace, "labels": labels });
    let mut data = json!({ "cloudwit.yaml": in_yaml(&bundle.configuration) });
    for (name, text) in &bundle.beside {
        data[name] = json!(text);
    }
    let mut files = vec![
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("cloudwit-config"), "data": data }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("cloudwit-providers"),
            "binaryData": base64(bundle.components.iter()),
        }),
    ];
    if !bundle.secrets.is_empty() {
        files.push(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata("cloudwit-secrets"), "type": "Opaque",
            "data": base64(bundle.secrets.iter()),
        }));
    }
    files.append(&mut objects);
    if settings.namespace != KUBE_SYSTEM {
        files.insert(0, namespace(&settings.namespace, &labels));
    }
    Ok(files)
}

fn in_yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("a JSON value can be written as YAML")
}

fn manifests(settings: &Settings) -> Vec<Value> {
    let text = if settings.controller_accounts {
        WITH_CONTROLLER_ACCOUNTS
    } else {
        MANIFESTS
    };
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(text).expect("a test reads the manifests");
    objects.sort_by_key(|object| object["kind"] == "Deployment");
    objects
}

/// The process and all that belongs to its Pods go to this namespace. Its rights to the Lease and to the API server's authorities stay where those are.
fn move_to(namespace: &str, objects: &mut [Value]) {
    for object in objects {
        if matches!(
            object["kind"].as_str(),
            Some("Deployment" | "ServiceAccount" | "PodDisruptionBudget")
        ) {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
        let own = subjects.into_iter().flatten();
        own.filter(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == ACCOUNT)
            .for_each(|subject| subject["namespace"] = json!(namespace));
    }
}

/// The service account of the process.
const ACCOUNT: &str = "cloudwit";

/// Pods on the Node's network are what Pod Security calls privileged.
fn namespace(name: &str, labels: &Value) -> Value {
    let mut labels = labels.clone();
    labels["pod-security.kubernetes.io/enforce"] = json!("privileged");
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// What the flags change in the Deployment.
fn set_up(deployment: &mut Value, settings: &Settings, bundle: &Bundle) {
    deployment["spec"]["replicas"] = json!(settings.replicas);
    let template = &mut deployment["spec"]["template"];
    template["metadata"]["annotations"]["cloudwit.dev/restarts-with"] = json!(fixed(&bundle.configuration));
    let pod = &mut template["spec"];
    if let Some(secret) = &settings.existing_secret {
        let volumes = pod["volumes"].as_array_mut().into_iter().flatten();
        for volume in volumes.filter(|volume| volume["name"] == "secrets") {
            volume["secret"]["secretName"] = json!(secret);
        }
    }
    if !settings.node_selector.is_empty() {
        pod["affinity"]["nodeAffinity"] = node_affinity(&settings.node_selector);
    }
    let container = &mut pod["containers"][0];
    serve_on(container, settings.secure_port());
    container["image"] = json!(settings.image);
    let guests = bundle.configuration["guestMemoryBytes"].as_u64();
    container["resources"]["limits"]["memory"] = json!(memory::quantity(&bundle.sources, guests));
    if let (Some(arguments), false) = (container["args"].as_array_mut(), settings.flags.is_empty()) {
        // Flags that are given stand for those of the same name.
        let names: Vec<&str> = settings.flags.iter().map(|flag| name(flag)).collect();
        arguments.retain(|argument| {
            let argument = argument.as_str().map(name).unwrap_or_default();
            argument != "--configure-cloud-routes" && !names.contains(&argument)
        });
        arguments.extend(settings.flags.iter().map(|flag| json!(flag)));
    }
    if let (Some((host, port)), Some(env)) = (&settings.api_server, container["env"].as_array_mut()) {
        env.push(json!({ "name": "KUBERNETES_SERVICE_HOST", "value": host }));
        env.push(json!({ "name": "KUBERNETES_SERVICE_PORT", "value": port.to_string() }));
    }
}

/// Nodes with all of these labels.
fn node_affinity(labels: &[(String, Option<String>)]) -> Value {
    let expression = |(key, value): &(String, Option<String>)| match value {
        Some(value) => json!({ "key": key, "operator": "In", "values": [value] }),
        None => json!({ "key": key, "operator": "Exists" }),
    };
    let expressions: Vec<Value> = labels.iter().map(expression).collect();
    json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": expressions }] } })
}

/// The port goes with --secure-port, and the probes with the port. Where nothing is served, there is nothing to probe.
fn serve_on(container: &mut Value, secure_port: u16) {
    let Some(parts) = container.as_object_mut() else { return };
    if secure_port == 0 {
        for part in ["livenessProbe", "readinessProbe", "startupProbe"] {
            parts.remove(part);
        }
    }
    if let Some(ports) = parts.get_mut("ports").and_then(Value::as_array_mut) {
        ports.retain(|port| secure_port != 0 || port["name"] != "https");
        let https = ports.iter_mut().filter(|port| port["name"] == "https");
        https.for_each(|port| port["containerPort"] = json!(secure_port));
    }
}

fn name(flag: &str) -> &str {
    flag.split_once('=').map_or(flag, |(name, _)| name)
}

/// What a running process does not follow: which providers there are, and the routing. Its change starts the Pods anew.
fn fixed(configuration: &Value) -> String {
    let providers = configuration["providers"].as_array();
    let names: Vec<&Value> = providers
        .into_iter()
        .flatten()
        .map(|provider| &provider["name"])
        .collect();
    let fixed = json!({ "names": names, "routing": configuration["routing"] }).to_string();
    Sha256::digest(fixed).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The process would not start with these.
fn wrong_flags(flags: &[String]) -> Vec<String> {
    match parsed(flags) {
        Ok(Parsed { args, .. }) => checks::mistakes(&args),
        Err(error) => vec![error.to_string()],
    }
}

fn parsed(flags: &[String]) -> Result<Parsed, clap::Error> {
    let line = ["cloudwit".to_owned()].into_iter().chain(flags.iter().cloned());
    command_line::parse(line)
}

fn too_large(bundle: &Bundle) -> Vec<String> {
    let beside: usize = bundle.beside.values().map(String::len).sum();
    let configuration = beside + in_yaml(&bundle.configuration).len();
    let components: usize = bundle.components.values().map(Vec::len).sum();
    let secrets: usize = bundle.secrets.values().map(Vec::len).sum();
    let large = |what: &str, size: usize, fix: &str| {
        (size > LIMIT).then(|| format!("{what} have {size} bytes together, and only {LIMIT} fit: {fix}"))
    };
    let names: Vec<&str> = bundle.components.keys().map(String::as_str).collect();
    [
        large("the configuration and the files beside it", configuration, "shorten the cloud config or the authorities"),
        large(
            &format!("the components ({})", names.join(", ")),
            components,
            "pack them with zstd -19 and name the .wasm.zst in the configuration; a larger one goes into an image volume, see \
             docs/guide/provider-files.md",
        ),
        large("the secrets", secrets, "a secret is a key or a token, not an archive"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn base64<'a>(files: impl Iterator<Item = (&'a String, &'a Vec<u8>)>) -> Value {
    files
        .map(|(name, content)| (name.clone(), json!(ByteString(content.clone()))))
        .collect()
}
