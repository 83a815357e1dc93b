//! For tests: a host, and an engine with machines.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use crate::Ovirt;

/// Where the engine is.
pub const CONFIG: &str = "[connection]\nuri = https://engine.test/ovirt-engine/api\n";

/// A token for every request.
pub fn token(name: &str) -> FakeAnswer {
    // As engines have it: a text, in milliseconds, and so far away that it means never.
    let answer =
        json!({ "access_token": name, "scope": "ovirt-app-api", "token_type": "bearer", "exp": "9223372036854775807" });
    FakeAnswer::json(200, &answer)
}

/// A host with this configuration and engine.
pub fn host_with(config: &str, engine: impl Fn(&SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(config).now(1_795_430_000);
    host.secret("password", "S").secret("username", "cloudwit@internal");
    host.serve(move |request| match request.url.contains("/sso/") {
        true => token("t"),
        false => engine(request),
    });
    host
}

/// A host with this engine.
pub fn host(engine: impl Fn(&SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    host_with(CONFIG, engine)
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> Ovirt {
    host.provider()
}

/// A machine as the engine shows it.
pub fn machine(id: &str, fqdn: &str) -> Value {
    let device = |ips: Value| json!({ "reported_device": [{ "name": "eth0", "ips": { "ip": ips } }] });
    json!({
        "id": id, "name": format!("vm-{id}"), "fqdn": fqdn, "status": "up", "memory": "8589934592",
        "cpu": { "topology": { "cores": "2", "sockets": "2", "threads": "1" } }, "cluster": { "id": "c-1" },
        "nics": { "nic": [{ "name": "nic1", "reported_devices": device(json!([
            { "address": "fe80::1", "version": "v6" }, { "address": "fd00::7", "version": "v6" }, { "address": "10.1.0.7", "version": "v4" },
        ])) }] },
        "affinity_labels": { "affinity_label": [{ "id": "l-1", "name": "fast" }, { "id": "l-2", "name": "zone-north" }] },
    })
}

/// An engine with these machines, one cluster and one data centre.
pub fn engine(machines: Vec<Value>) -> impl Fn(&SentRequest) -> FakeAnswer {
    move |request| {
        let path = request.url.split("/api").nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        match path {
            "/clusters" => FakeAnswer::json(
                200,
                &json!({ "cluster": [{ "id": "c-1", "name": "Cluster One", "data_center": { "id": "d-1" } }] }),
            ),
            "/datacenters" => FakeAnswer::json(200, &json!({ "data_center": [{ "id": "d-1", "name": "North" }] })),
            "/vms" => {
                let search = request.query("search").unwrap_or_default();
                let fqdn = search.split_whitespace().find_map(|word| word.strip_prefix("fqdn="));
                let fits = machines
                    .iter()
                    .filter(|one| fqdn.is_none_or(|fqdn| one["fqdn"] == fqdn));
                let found: Vec<&Value> = fits.collect();
                match found.len() {
                    0 => FakeAnswer::json(200, &json!({})),
                    _ => FakeAnswer::json(200, &json!({ "vm": found })),
                }
            }
            one => match machines
                .iter()
                .find(|machine| one.ends_with(machine["id"].as_str().unwrap()))
            {
                Some(machine) => FakeAnswer::json(200, machine),
                None => FakeAnswer::new(404, &[], ""),
            },
        }
    }
}

/// Paths of all requests but those for tokens.
pub fn paths(host: &FakeHost) -> Vec<String> {
    let requests = host.requests().into_iter();
    let of_api = requests.filter_map(|request| request.url.split("/api").nth(1).map(str::to_owned));
    of_api
        .map(|path| path.split('?').next().unwrap_or_default().to_owned())
        .collect()
}
