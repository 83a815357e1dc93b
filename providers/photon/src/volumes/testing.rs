//! For tests: a small Photon Controller with disks, whose tasks end when a test ends them.

use std::cell::RefCell;
use std::rc::Rc;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::volumes::new_volume;
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use super::GIB;
use crate::Photon;

pub use cloudwit_guest_sdk::testing::volumes::{kind, token};

/// All that there is.
#[derive(Default)]
pub struct SmallState {
    pub disks: Vec<Value>,
    /// Flavors of disks.
    pub flavors: Vec<&'static str>,
    /// The state of every task.
    pub tasks: &'static str,
    /// The errors of tasks in the state `ERROR`.
    pub errors: Value,
    /// Requests whose method and path contain this are refused with this status and code.
    pub refusals: Vec<(&'static str, u16, &'static str)>,
    /// The project's resource ticket.
    pub ticket: Value,
}

/// The cloud and a host for the provider.
pub struct SmallPhoton {
    pub host: FakeHost,
    pub state: Rc<RefCell<SmallState>>,
}

impl SmallPhoton {
    /// With one flavor, and tasks that are completed at once.
    pub fn new() -> Self {
        let state = Rc::new(RefCell::new(SmallState {
            flavors: vec!["standard"],
            tasks: "COMPLETED",
            ..SmallState::default()
        }));
        let host = FakeHost::new();
        host.config("[Global]\ntarget = https://photon.test\nproject = p-1\n");
        host.cluster("blue", &[]);
        let cloud = Rc::clone(&state);
        host.serve(move |request| cloud.borrow_mut().answer(request));
        Self { host, state }
    }

    /// The provider, for one call.
    pub fn call(&self) -> Photon {
        self.host.provider()
    }

    /// Puts a disk of the volume `pvc-ID` there.
    pub fn disk(&self, id: &str, state: &str, machines: &[&str]) {
        let tags = json!([format!("cloudwit:volume=pvc-{id}"), "cloudwit:cluster=blue"]);
        self.state.borrow_mut().disks.push(json!({
            "id": id, "name": format!("pvc-{id}"), "state": state, "flavor": "standard", "capacityGb": 2, "vms": machines, "tags": tags,
        }));
    }

    /// Method and path of what was sent, from the request of this number on; what only reads the project is left out.
    pub fn sent(&self, from: usize) -> Vec<String> {
        let requests = self.host.requests().into_iter().skip(from);
        let line = requests.map(|request| format!("{} {}", request.method, path(&request)));
        line.filter(|line| line != "GET /projects/p-1").collect()
    }
}

fn path(request: &SentRequest) -> String {
    request.url.replace("https://photon.test/v1", "")
}

/// A volume of two GiB.
pub fn wanted(name: &str) -> NewVolume {
    new_volume(name, 2 * GIB)
}

/// Attaches these volumes to `vm-1`.
pub fn attach(cloud: &SmallPhoton, volumes: &[&str], token: Option<&str>) -> Each<Attached> {
    let one = |volume: &&str| NewAttachment {
        volume: (*volume).to_owned(),
        node_id: "vm-1".into(),
        read_only: false,
        volume_use: VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        },
        token: token.map(str::to_owned),
    };
    let attachments: Vec<NewAttachment> = volumes.iter().map(one).collect();
    cloud.call().attach_volumes(&attachments).unwrap()
}

/// Detaches a volume from `vm-1`.
pub fn detach(cloud: &SmallPhoton, volume: &str, token: Option<&str>) -> Result<(), Failure> {
    let one = Detachment {
        volume: volume.into(),
        node_id: "vm-1".into(),
        token: token.map(str::to_owned),
    };
    cloud.call().detach_volumes(&[one]).unwrap().remove(0)
}

impl SmallState {
    fn answer(&mut self, request: &SentRequest) -> FakeAnswer {
        let (path, method) = (path(request), request.method.as_str());
        let line = format!("{method} {path}");
        let refuse = |status, code: &str| FakeAnswer::json(status, &json!({ "code": code, "message": "in words" }));
        if let Some((_, status, code)) = self.refusals.iter().find(|(part, ..)| line.contains(part)) {
            return refuse(*status, code);
        }
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let at = |disks: &[Value], id: &str| disks.iter().position(|disk| disk["id"] == id);
        match (method, parts.as_slice()) {
            ("GET", ["projects", "p-1"]) => {
                FakeAnswer::json(200, &json!({ "id": "p-1", "name": "p", "resourceTicket": self.ticket }))
            }
            ("GET", ["projects", "p-1", "disks"]) => {
                let name = query.strip_prefix("name=");
                let disks = self
                    .disks
                    .iter()
                    .filter(|disk| name.is_none_or(|name| disk["name"] == name));
                FakeAnswer::json(200, &json!({ "items": disks.collect::<Vec<_>>() }))
            }
            ("GET", ["projects", "p-1", "vms"]) => FakeAnswer::json(
                200,
                &json!({ "items": [{ "id": "vm-1", "name": "one", "state": "STARTED" }] }),
            ),
            ("GET", ["flavors"]) => {
                let flavors = self
                    .flavors
                    .iter()
                    .map(|name| json!({ "name": name, "kind": "persistent-disk" }));
                FakeAnswer::json(200, &json!({ "items": flavors.collect::<Vec<_>>() }))
            }
            ("GET", ["disks", id]) => match at(&self.disks, id) {
                Some(number) => FakeAnswer::json(200, &self.disks[number]),
                None => refuse(404, "DiskNotFound"),
            },
            ("GET", ["tasks", id]) => self.task(id, ""),
            ("GET", ["vms", _]) => refuse(404, "VmNotFound"),
            ("POST", ["projects", "p-1", "disks"]) => {
                let mut disk = request.json();
                let id = format!("d-{}", self.disks.len() + 1);
                (disk["id"], disk["state"]) = (json!(id), json!(self.of_tasks("CREATING", "DETACHED")));
                self.disks.push(disk);
                self.task("t-create", &id)
            }
            ("DELETE", ["disks", id]) => {
                if let (Some(number), "COMPLETED") = (at(&self.disks, id), self.tasks) {
                    self.disks.remove(number);
                }
                self.task("t-delete", id)
            }
            ("POST", ["vms", machine, what @ ("attach_disk" | "detach_disk")]) => {
                let id = request.json()["diskId"].as_str().unwrap().to_owned();
                let (machines, state) = match *what {
                    "attach_disk" => (vec![*machine], "ATTACHED"),
                    _ => (Vec::new(), "DETACHED"),
                };
                if let (Some(number), "COMPLETED") = (at(&self.disks, &id), self.tasks) {
                    (self.disks[number]["vms"], self.disks[number]["state"]) = (json!(machines), json!(state));
                }
                self.task(&format!("t-{what}").replace('_', "-"), machine)
            }
            other => panic!("{other:?}"),
        }
    }

    /// What a new disk is while its task runs, when it has ended, and when it failed.
    fn of_tasks(&self, running: &'static str, completed: &'static str) -> &'static str {
        match self.tasks {
            "COMPLETED" => completed,
            "ERROR" => "ERROR",
            _ => running,
        }
    }

    fn task(&self, id: &str, entity: &str) -> FakeAnswer {
        let task =
            json!({ "id": id, "state": self.tasks, "entity": { "id": entity }, "steps": [{ "errors": self.errors }] });
        FakeAnswer::json(201, &task)
    }
}
