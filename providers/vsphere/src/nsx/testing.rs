//! For tests: a host, and a small NSX manager in memory. What a manager refuses is the stand-in's (`tests/stand-ins/nsx`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use super::object::merged;

/// Where the manager is.
pub const URL: &str = "https://nsx.test";

/// A vCenter, and all of NSX.
pub const CONFIG: &str = "vcenter: {vc.test: {}}\nnsxt: {host: nsx.test, secretName: nsx, secretNamespace: kube-system}\n\
    loadBalancer:\n  ipPoolName: public\n  tier1GatewayPath: /infra/tier-1s/t1\n  size: SMALL\n  tcpAppProfileName: tcp\n  udpAppProfilePath: /infra/lb-app-profiles/udp\n  \
    tags: {team: a, cluster: no}\nloadBalancerClass: {inside: {ipPoolId: private}}\nroute: {routerPath: /infra/tier-1s/t1}\n";

/// Objects by their paths, and what becomes of intents.
#[derive(Clone, Default)]
pub struct Manager(Rc<RefCell<Inner>>);

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Value>,
    /// State by parts of paths; `REALIZED` where none is set.
    states: BTreeMap<String, &'static str>,
    /// The next requests with this method and part of a path get this instead.
    faults: Vec<(&'static str, String, FakeAnswer)>,
    calls: Vec<String>,
}

impl Manager {
    /// A host with this manager and this cloud config.
    pub fn start(config: &str) -> (FakeHost, Self) {
        let (host, manager) = (FakeHost::new(), Self::default());
        for (path, body) in [
            ("/infra/ip-pools/p-1", json!({ "display_name": "public" })),
            (
                "/infra/lb-app-profiles/tcp-1",
                json!({ "display_name": "tcp", "resource_type": "LBFastTcpProfile" }),
            ),
            (
                "/infra/lb-app-profiles/udp",
                json!({ "display_name": "tcp", "resource_type": "LBFastUdpProfile" }),
            ),
        ] {
            manager.set(path, body);
        }
        host.config(config).cluster("c1", &["10.244.0.0/16"]).now(1_000_000);
        for name in ["nsxt.username", "nsxt.password", "vc.test.username", "vc.test.password"] {
            host.secret(name, "s");
        }
        let server = manager.clone();
        host.serve(move |request| server.answer(request));
        (host, manager)
    }

    /// Sets an object as it is.
    pub fn set(&self, path: &str, body: Value) {
        let id = path.rsplit('/').next().unwrap_or_default();
        let own = json!({ "path": path, "id": id, "_revision": 0 });
        self.0.borrow_mut().objects.insert(path.into(), merged(&own, &body));
    }

    /// Intents whose paths have this part are in this state.
    pub fn state(&self, part: &str, state: &'static str) {
        self.0.borrow_mut().states.insert(part.into(), state);
    }

    /// The next request with this method and this part in its path gets this.
    pub fn fails(&self, method: &'static str, part: &str, answer: FakeAnswer) {
        self.0.borrow_mut().faults.push((method, part.into(), answer));
    }

    /// What is there below this path.
    pub fn all(&self, collection: &str) -> Vec<Value> {
        let inner = self.0.borrow();
        let below = inner
            .objects
            .iter()
            .filter(|(path, _)| path.rsplit_once('/').is_some_and(|(parent, _)| parent == collection));
        below.map(|(_, object)| object.clone()).collect()
    }

    /// The only object there.
    pub fn one(&self, collection: &str) -> Value {
        let all = self.all(collection);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    /// Removes an object.
    pub fn remove(&self, path: &str) {
        self.0.borrow_mut().objects.remove(path);
    }

    /// The changes since the last time, as `METHOD PATH`.
    pub fn changes(&self) -> Vec<String> {
        let calls = std::mem::take(&mut self.0.borrow_mut().calls);
        calls.into_iter().filter(|call| !call.starts_with("GET")).collect()
    }

    fn answer(&self, request: &SentRequest) -> FakeAnswer {
        let mut inner = self.0.borrow_mut();
        let whole = request.url.strip_prefix(URL).unwrap_or(&request.url);
        let path = whole.split('?').next().unwrap_or_default();
        let fault = inner
            .faults
            .iter()
            .position(|(method, part, _)| *method == request.method && path.contains(part.as_str()));
        if let Some(at) = fault {
            return inner.faults.remove(at).2;
        }
        if path == "/api/session/create" {
            let headers = [("Set-Cookie", "JSESSIONID=s1; Path=/; Secure"), ("X-XSRF-TOKEN", "x1")];
            return FakeAnswer::new(200, &headers, "");
        }
        let path = path.trim_start_matches("/policy/api/v1").replace("%3A", ":");
        inner.calls.push(format!("{} {path}", request.method));
        let seen = inner.objects.get(&path).cloned();
        match (request.method.as_str(), seen) {
            ("GET", _) if path.ends_with("/realized-entities") => {
                let intent = request.query("intent_path").unwrap_or_default();
                let of = |(part, state): (&String, &&'static str)| intent.contains(part.as_str()).then_some(*state);
                let state = inner.states.iter().find_map(of).unwrap_or("REALIZED");
                let asked = inner
                    .objects
                    .get(&intent)
                    .and_then(|object| object.get("allocation_ip"))
                    .cloned();
                let attributes = match state {
                    "REALIZED" => {
                        json!([{ "key": "allocation_ip", "values": [asked.unwrap_or_else(|| "192.0.2.10".into())] }])
                    }
                    _ => json!([]),
                };
                let entity =
                    json!({ "state": state, "extended_attributes": attributes, "alarms": [{ "message": "no room" }] });
                FakeAnswer::json(200, &json!({ "results": [entity], "result_count": 1 }))
            }
            ("GET", Some(object)) => FakeAnswer::json(200, &object),
            ("GET", None) if path.rsplit('/').next().is_some_and(|last| last.ends_with('s')) => {
                let below = inner
                    .objects
                    .iter()
                    .filter(|(one, _)| one.rsplit_once('/').is_some_and(|(parent, _)| parent == path));
                let below: Vec<&Value> = below.map(|(_, object)| object).collect();
                FakeAnswer::json(200, &json!({ "results": below, "result_count": below.len() }))
            }
            ("PUT" | "PATCH", seen) => {
                let (body, before) = (request.json(), seen.clone().unwrap_or_default());
                if request.method == "PUT" && before.get("_revision") != body.get("_revision") {
                    return refused(412, 604, "The object was modified by somebody else. Please retry.");
                }
                let revision = before["_revision"].as_i64().map_or(0, |revision| revision + 1);
                let id = path.rsplit('/').next().unwrap_or_default().to_owned();
                let whole = merged(&body, &json!({ "path": path, "id": id, "_revision": revision }));
                inner.objects.insert(path, whole.clone());
                FakeAnswer::json(200, &whole)
            }
            ("DELETE", Some(_)) => {
                inner.objects.remove(&path);
                FakeAnswer::new(200, &[], "")
            }
            _ => refused(404, 500090, "The requested object could not be found"),
        }
    }
}

/// A refusal in NSX's words.
pub fn refused(status: u16, code: u32, text: &str) -> FakeAnswer {
    let body = json!({ "httpStatus": "X", "error_code": code, "module_name": "policy", "error_message": text });
    FakeAnswer::json(status, &body)
}
