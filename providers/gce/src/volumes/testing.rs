//! For tests: a small Compute Engine with disks, machines and snapshots, whose operations end when a test ends them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use cloudwit_guest_sdk::volumes::*;

use super::{GIB, ZONE_KEY};
use crate::Gce;

pub use cloudwit_guest_sdk::testing::volumes::{kind, token};

const API: &str = "https://gce.test/compute/v1";

/// The zone of the machines.
pub const ZONE: &str = "us-central1-a";

/// All that there is, by path.
#[derive(Default)]
pub struct SmallState {
    pub resources: BTreeMap<String, Value>,
    /// Whether operations keep running, with what they are to do.
    pub is_slow: bool,
    waiting: Vec<SentRequest>,
    /// The error with which operations end: code and message.
    pub error: Option<(&'static str, &'static str)>,
    /// Requests whose method and path contain this are refused with this status and reason.
    pub refusals: Vec<(&'static str, u16, &'static str)>,
}

/// The cloud and a host for the provider.
pub struct SmallPd {
    pub host: FakeHost,
    pub state: Rc<RefCell<SmallState>>,
}

/// The path of a disk in [`ZONE`].
pub fn disk_path(name: &str) -> String {
    format!("projects/p/zones/{ZONE}/disks/{name}")
}

/// The path of a machine in [`ZONE`].
pub fn machine_path(name: &str) -> String {
    format!("projects/p/zones/{ZONE}/instances/{name}")
}

impl SmallPd {
    /// In the zones a to c of a region, with the machines `one` and `two`.
    pub fn new() -> Self {
        let state = Rc::new(RefCell::new(SmallState::default()));
        let host = FakeHost::new();
        let config = json!({ "global": {
            "project-id": "p", "local-zone": ZONE, "network-name": "default", "token-url": "nil", "api-endpoint": API, "multizone": "true",
        }});
        host.config(config.to_string());
        let cloud = Rc::clone(&state);
        host.serve(move |request| cloud.borrow_mut().answer(request));
        let small = Self { host, state };
        for name in ["one", "two"] {
            small.put(&machine_path(name), json!({ "disks": [] }));
        }
        small
    }

    /// The provider, for one call.
    pub fn call(&self) -> Gce {
        self.host.provider()
    }

    /// Puts something there.
    pub fn put(&self, path: &str, resource: Value) {
        self.state.borrow_mut().resources.insert(path.into(), resource);
    }

    /// A disk of two GB that is ready.
    pub fn disk(&self, name: &str) -> String {
        let disk = json!({ "name": name, "sizeGb": "2", "status": "READY", "type": format!("{API}/projects/p/zones/{ZONE}/diskTypes/pd-standard"),
            "zone": format!("{API}/projects/p/zones/{ZONE}"), "description": super::class::description(&[]) });
        let path = disk_path(name);
        self.put(&path, disk);
        path
    }

    /// What running operations do is done.
    pub fn finish(&self) {
        let mut state = self.state.borrow_mut();
        state.is_slow = false;
        for request in std::mem::take(&mut state.waiting) {
            state.change(&request);
        }
    }

    /// Method and path of the changes that were requested.
    pub fn changes(&self) -> Vec<String> {
        let requests = self.host.requests().into_iter();
        let changes = requests.filter(|request| request.method != "GET");
        changes
            .map(|request| format!("{} {}", request.method, path(&request)))
            .collect()
    }
}

fn path(request: &SentRequest) -> String {
    let path = request.url.split('?').next().unwrap_or_default();
    path.strip_prefix(API)
        .unwrap_or_default()
        .trim_start_matches('/')
        .to_owned()
}

/// A volume of two GiB in [`ZONE`].
pub fn wanted(name: &str) -> NewVolume {
    NewVolume {
        allowed: vec![Topology::of(ZONE_KEY, ZONE)],
        ..new_volume(name, 2 * GIB)
    }
}

fn refuse(status: u16, reason: &str, message: &str) -> FakeAnswer {
    let error = json!({ "error": { "code": status, "message": message, "errors": [{ "reason": reason }] } });
    FakeAnswer::json(status, &error)
}

impl SmallState {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        let (path, method) = (path(request), request.method.as_str());
        let line = format!("{method} {path}");
        if let Some((_, status, reason)) = self.refusals.iter().find(|(part, ..)| line.contains(part)) {
            return refuse(*status, reason, "in words");
        }
        let missing = || refuse(404, "notFound", &format!("The resource '{path}' was not found"));
        match (method, path.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["projects", "p", "zones"]) => {
                let zones =
                    ["a", "b", "c"].map(|letter| json!({ "name": format!("us-central1-{letter}"), "status": "UP" }));
                FakeAnswer::json(200, &json!({ "items": zones }))
            }
            ("GET", ["projects", "p", "aggregated", "disks"]) => {
                let filter = request.query("filter").unwrap_or_default();
                let named = |name: &str| filter.is_empty() || filter.contains(&format!("\"{name}\""));
                let mut scopes: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
                for (path, disk) in &self.resources {
                    let parts: Vec<&str> = path.split('/').collect();
                    if parts[parts.len() - 2] == "disks" && named(parts[parts.len() - 1]) {
                        scopes
                            .entry(format!("{}/{}", parts[2], parts[3]))
                            .or_default()
                            .push(disk);
                    }
                }
                let scopes: BTreeMap<_, _> = scopes
                    .into_iter()
                    .map(|(scope, disks)| (scope, json!({ "disks": disks })))
                    .collect();
                FakeAnswer::json(200, &json!({ "items": scopes }))
            }
            ("GET", ["projects", "p", "global", "snapshots"]) => {
                let all = self.resources.iter().filter(|(path, _)| path.contains("/snapshots/"));
                FakeAnswer::json(200, &json!({ "items": all.map(|(_, one)| one).collect::<Vec<_>>() }))
            }
            ("GET", [.., "operations", _]) => self.operation(&path),
            ("GET", _) => self
                .resources
                .get(&path)
                .map_or_else(missing, |found| FakeAnswer::json(200, found)),
            _ if path.ends_with("/disks") => {
                let made = format!("{path}/{}", request.json()["name"].as_str().unwrap());
                match self.resources.contains_key(&made) {
                    true => refuse(409, "alreadyExists", "it is there"),
                    false => self.begin(request),
                }
            }
            (_, parts) => {
                let what = if method == "DELETE" {
                    path.clone()
                } else {
                    parts[..parts.len() - 1].join("/")
                };
                match self.resources.contains_key(&what) {
                    true => self.begin(request),
                    false => refuse(404, "notFound", &format!("The resource '{what}' was not found")),
                }
            }
        }
    }

    fn begin(&mut self, request: &SentRequest) -> FakeAnswer {
        match self.is_slow {
            true => self.waiting.push(request.clone()),
            false if self.error.is_none() => self.change(request),
            false => {}
        }
        let path = path(request);
        let place: Vec<&str> = path.split('/').take(4).collect();
        let place = if place[2] == "global" {
            place[..3].join("/")
        } else {
            place.join("/")
        };
        self.operation(&format!("{place}/operations/operation-1"))
    }

    fn operation(&self, path: &str) -> FakeAnswer {
        let error = self.error.filter(|_| !self.is_slow);
        let error = error.map(|(code, message)| json!({ "errors": [{ "code": code, "message": message }] }));
        let status = if self.is_slow { "RUNNING" } else { "DONE" };
        FakeAnswer::json(
            200,
            &json!({ "name": "operation-1", "status": status, "selfLink": format!("{API}/{path}"), "error": error }),
        )
    }

    fn change(&mut self, request: &SentRequest) {
        let path = path(request);
        let (what, verb) = path.rsplit_once('/').unwrap();
        match (request.method.as_str(), verb) {
            ("DELETE", _) => drop(self.resources.remove(&path)),
            (_, "disks") => {
                let (mut disk, place) = (request.json(), format!("{API}/{what}"));
                disk["status"] = json!("READY");
                disk[if what.contains("/zones/") { "zone" } else { "region" }] = json!(place);
                self.resources
                    .insert(format!("{path}/{}", disk["name"].as_str().unwrap()), disk);
            }
            (_, "resize") => self.resources.get_mut(what).unwrap()["sizeGb"] = request.json()["sizeGb"].clone(),
            (_, "createSnapshot") => {
                let mut snapshot = request.json();
                snapshot["sourceDisk"] = json!(format!("{API}/{what}"));
                snapshot["diskSizeGb"] = self.resources[what]["sizeGb"].clone();
                (snapshot["status"], snapshot["creationTimestamp"]) =
                    (json!("UPLOADING"), json!("2026-01-02T03:04:05.000-07:00"));
                self.resources.insert(
                    format!("projects/p/global/snapshots/{}", snapshot["name"].as_str().unwrap()),
                    snapshot,
                );
            }
            (_, "attachDisk") => {
                let disk = request.json();
                let source = disk["source"].as_str().unwrap().replace(&format!("{API}/"), "");
                self.resources.get_mut(&source).unwrap()["users"] = json!([format!("{API}/{what}")]);
                self.resources.get_mut(what).unwrap()["disks"]
                    .as_array_mut()
                    .unwrap()
                    .push(disk);
            }
            (_, "detachDisk") => {
                let device = request.query("deviceName").unwrap();
                let held = self.resources.get_mut(what).unwrap()["disks"].as_array_mut().unwrap();
                let at = held
                    .iter()
                    .position(|disk| disk["deviceName"] == device.as_str())
                    .unwrap();
                let source = held.remove(at)["source"]
                    .as_str()
                    .unwrap()
                    .replace(&format!("{API}/"), "");
                self.resources.get_mut(&source).unwrap()["users"] = json!([]);
            }
            other => panic!("{other:?}"),
        }
    }
}
