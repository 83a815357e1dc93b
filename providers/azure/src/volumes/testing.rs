//! For tests: a small Azure with disks, machines and snapshots, whose operations end when a test ends them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use super::{GIB, ZONE_KEY};
use crate::Azure;
use crate::arm::ids::folded;

pub use cloudwit_guest_sdk::testing::volumes::{kind, token};

const API: &str = "https://management.azure.com";
const COMPUTE: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute";

/// The zone of the machines.
pub const ZONE: &str = "westeurope-1";

/// All that there is, by path in small letters.
#[derive(Default)]
pub struct SmallState {
    pub resources: BTreeMap<String, Value>,
    /// Whether operations keep running, with what they are to do.
    pub is_slow: bool,
    waiting: Vec<SentRequest>,
    /// The error with which operations end: code and message.
    pub error: Option<(&'static str, &'static str)>,
    /// Requests whose method and path contain this are refused with this status, code and message.
    pub refusals: Vec<(&'static str, u16, &'static str, &'static str)>,
    /// Requests whose body contains this are refused, the same.
    pub refused_bodies: Vec<(&'static str, u16, &'static str)>,
    edits: u32,
}

/// The cloud and a host for the provider.
pub struct SmallCompute {
    pub host: FakeHost,
    pub state: Rc<RefCell<SmallState>>,
}

/// The id of a disk.
pub fn disk_id(name: &str) -> String {
    format!("{COMPUTE}/disks/{name}")
}

/// The id of a machine.
pub fn machine_id(name: &str) -> String {
    format!("{COMPUTE}/virtualMachines/{name}")
}

impl SmallCompute {
    /// With the machines `one` and `two`, of a size that takes four disks.
    pub fn new() -> Self {
        let state = Rc::new(RefCell::new(SmallState::default()));
        let host = FakeHost::new();
        host.config(
            r#"{"useManagedIdentityExtension": true, "subscriptionId": "s", "resourceGroup": "rg", "location": "westeurope", "vmType": "standard"}"#,
        );
        let cloud = Rc::clone(&state);
        host.serve(move |request| cloud.borrow_mut().answer(request));
        let small = Self { host, state };
        for name in ["one", "two"] {
            small.machine(&machine_id(name), name);
        }
        small
    }

    /// A machine of this id and computer name.
    pub fn machine(&self, id: &str, computer: &str) {
        let properties = json!({
            "provisioningState": "Succeeded", "hardwareProfile": { "vmSize": "Standard_B1s" }, "osProfile": { "computerName": computer },
            "storageProfile": { "dataDisks": [] },
        });
        let name = id.rsplit('/').next().unwrap();
        self.put(
            id,
            json!({ "id": id, "name": name, "location": "westeurope", "zones": ["1"], "etag": "\"1\"", "properties": properties }),
        );
    }

    /// The provider, for one call.
    pub fn call(&self) -> Azure {
        self.host.provider()
    }

    /// Puts something there.
    pub fn put(&self, path: &str, resource: Value) {
        self.state.borrow_mut().resources.insert(folded(path), resource);
    }

    /// What is there.
    pub fn get(&self, path: &str) -> Value {
        self.state
            .borrow()
            .resources
            .get(&folded(path))
            .cloned()
            .unwrap_or_default()
    }

    /// Changes what is there.
    pub fn edit(&self, path: &str, pointer: &str, value: Value) {
        let mut state = self.state.borrow_mut();
        *state
            .resources
            .get_mut(&folded(path))
            .unwrap()
            .pointer_mut(pointer)
            .unwrap() = value;
    }

    /// A disk of two GiB in [`ZONE`] that is ready.
    pub fn disk(&self, name: &str) -> String {
        let id = disk_id(name);
        let disk = json!({
            "id": id, "name": name, "location": "westeurope", "zones": ["1"], "sku": { "name": "StandardSSD_LRS" },
            "tags": { "k8s-azure-created-by": "kubernetes-azure-dd" },
            "properties": { "provisioningState": "Succeeded", "diskState": "Unattached", "diskSizeGB": 2, "creationData": { "createOption": "Empty" } },
        });
        self.put(&id, disk);
        id
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
    path.strip_prefix(API).unwrap_or_default().to_owned()
}

/// A volume of two GiB in [`ZONE`].
pub fn wanted(name: &str) -> NewVolume {
    NewVolume {
        allowed: vec![Topology::of(ZONE_KEY, ZONE)],
        ..new_volume(name, 2 * GIB)
    }
}

fn refuse(status: u16, code: &str, message: &str) -> FakeAnswer {
    FakeAnswer::json(status, &json!({ "error": { "code": code, "message": message } }))
}

impl SmallState {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        if request.url.contains("/metadata/identity") {
            return FakeAnswer::json(200, &json!({ "access_token": "t", "expires_in": "9999" }));
        }
        let (path, method) = (path(request), request.method.as_str());
        let line = format!("{method} {path}");
        if let Some((_, status, code, message)) = self.refusals.iter().find(|(part, ..)| line.contains(part)) {
            return refuse(*status, code, message);
        }
        let body = request.text();
        if let Some((_, status, code)) = self.refused_bodies.iter().find(|(part, ..)| body.contains(part)) {
            return refuse(*status, code, "in words");
        }
        let there = self.resources.get(&folded(&path));
        match method {
            "GET" if path.ends_with("/vmSizes") => FakeAnswer::json(
                200,
                &json!({ "value": [{ "name": "Standard_B1s", "maxDataDiskCount": 4 }] }),
            ),
            "GET" if path.contains("perations/") => self.operation(),
            "GET" if path.split('/').count() % 2 == 0 => {
                let start = format!("{}/", folded(&path));
                let all = self.resources.iter().filter(|(path, _)| path.starts_with(&start));
                FakeAnswer::json(200, &json!({ "value": all.map(|(_, one)| one).collect::<Vec<_>>() }))
            }
            "GET" => there.map_or_else(
                || refuse(404, "ResourceNotFound", "in words"),
                |found| FakeAnswer::json(200, found),
            ),
            _ if request
                .header("if-match")
                .is_some_and(|etag| there.is_some_and(|there| there["etag"] != etag)) =>
            {
                refuse(412, "PreconditionFailed", "in words")
            }
            "DELETE" if there.is_none() => FakeAnswer::new(204, &[], ""),
            _ => self.begin(request),
        }
    }

    fn begin(&mut self, request: &SentRequest) -> FakeAnswer {
        match self.is_slow {
            true => self.waiting.push(request.clone()),
            false if self.error.is_none() => self.change(request),
            false => {}
        }
        if !self.is_slow && self.error.is_none() {
            return FakeAnswer::json(200, &json!({}));
        }
        let link = format!(
            "{API}/subscriptions/s/providers/Microsoft.Compute/locations/westeurope/DiskOperations/1?api-version=2025-01-02&t=x"
        );
        FakeAnswer::new(202, &[("Azure-AsyncOperation", &link), ("Retry-After", "1")], "{}")
    }

    fn operation(&self) -> FakeAnswer {
        match self.error {
            _ if self.is_slow => FakeAnswer::json(200, &json!({ "status": "InProgress" })),
            Some((code, message)) => FakeAnswer::json(
                200,
                &json!({ "status": "Failed", "error": { "code": code, "message": message } }),
            ),
            None => FakeAnswer::json(200, &json!({ "status": "Succeeded" })),
        }
    }

    fn change(&mut self, request: &SentRequest) {
        let path = path(request);
        let key = folded(&path);
        if request.method == "DELETE" {
            self.resources.remove(&key);
            return;
        }
        let mut body = request.json();
        if key.contains("/virtualmachines/") {
            return self.write_machine(&path, &body);
        }
        if request.method == "PATCH" {
            let there = self.resources.get_mut(&key).unwrap();
            for (field, value) in body["properties"].as_object().into_iter().flatten() {
                there["properties"][field] = value.clone();
            }
            if body.get("sku").is_some() {
                there["sku"] = body["sku"].clone();
            }
            return;
        }
        body["id"] = json!(path);
        body["name"] = json!(path.rsplit('/').next().unwrap());
        body["properties"]["provisioningState"] = json!("Succeeded");
        body["properties"]["timeCreated"] = json!("2026-01-02T03:04:05.0000000+00:00");
        if path.contains("/snapshots/") {
            let source = folded(body["properties"]["creationData"]["sourceResourceId"].as_str().unwrap());
            body["properties"]["diskSizeGB"] = self.resources[&source]["properties"]["diskSizeGB"].clone();
        }
        self.resources.insert(key, body);
    }

    fn write_machine(&mut self, id: &str, body: &Value) {
        let mut disks = body["properties"]["storageProfile"]["dataDisks"]
            .as_array()
            .unwrap()
            .clone();
        disks.retain(|disk| disk["toBeDetached"] != json!(true));
        let held: Vec<String> = disks
            .iter()
            .map(|disk| folded(disk["managedDisk"]["id"].as_str().unwrap()))
            .collect();
        for (path, disk) in self.resources.iter_mut().filter(|(path, _)| path.contains("/disks/")) {
            let is_here = disk["managedBy"].as_str() == Some(id);
            match held.contains(path) {
                true => disk["managedBy"] = json!(id),
                false if is_here => drop(disk.as_object_mut().unwrap().remove("managedBy")),
                false => {}
            }
        }
        self.edits += 1;
        let machine = self.resources.get_mut(&folded(id)).unwrap();
        machine["properties"]["storageProfile"]["dataDisks"] = json!(disks);
        machine["etag"] = json!(format!("\"edit-{}\"", self.edits));
    }
}
