//! The cloud of the templates' READMEs, in memory: machines, pages of one, and load balancers that take two requests to become ready.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The token that each request has to carry.
pub const TOKEN: &str = "t0ken";

/// It ends when it is dropped.
pub struct MachinesCloud {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    inventory: Inventory,
    server: JoinHandle<()>,
}

type Inventory = Arc<Mutex<Contents>>;

#[derive(Default)]
struct Contents {
    machines: Vec<Value>,
    balancers: BTreeMap<String, Value>,
}

impl MachinesCloud {
    /// With these machines, which run and have an address each.
    pub async fn start(names: &[&str]) -> Self {
        let machine = |(number, name): (usize, &&str)| {
            json!({
                "id": format!("vm-{number}"), "name": name, "state": "running", "type": "small", "zone": "a-1", "region": "a",
                "addresses": [{"kind": "internal-ip", "value": format!("10.0.0.{number}")}, {"kind": "hostname", "value": name}],
            })
        };
        let contents = Contents {
            machines: (1..).zip(names).map(machine).collect(),
            balancers: BTreeMap::new(),
        };
        let inventory = Arc::new(Mutex::new(contents));
        let router = Router::new()
            .route("/machines", get(machines))
            .route("/balancers", get(balancers))
            .route("/balancers/{name}", put(ensure).patch(change).delete(remove))
            .layer(middleware::from_fn(with_token))
            .with_state(Arc::clone(&inventory));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { url, inventory, server }
    }

    /// The port on loopback.
    pub fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    /// The load balancers as they are.
    pub fn balancers(&self) -> Vec<Value> {
        locked(&self.inventory).balancers.values().cloned().collect()
    }

    /// Takes a machine away: its id is among the missing ones from now on.
    pub fn remove_machine(&self, name: &str) {
        locked(&self.inventory)
            .machines
            .retain(|machine| machine["name"] != name);
    }
}

impl Drop for MachinesCloud {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn locked(inventory: &Inventory) -> std::sync::MutexGuard<'_, Contents> {
    inventory.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn with_token(request: Request, next: Next) -> Response {
    let given = request.headers().get("authorization");
    if given.is_some_and(|value| value.as_bytes() == format!("Bearer {TOKEN}").as_bytes()) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, Json(json!({}))).into_response()
}

type Words = Query<HashMap<String, String>>;

fn list(words: &Words, key: &str) -> Vec<String> {
    let text = words.get(key).map(String::as_str).unwrap_or_default();
    text.split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// A page of one machine, so that each answer about two has two pages.
async fn machines(State(inventory): State<Inventory>, words: Words) -> Json<Value> {
    let machines = locked(&inventory).machines.clone();
    let (ids, names) = (list(&words, "ids"), list(&words, "names"));
    let has = |wanted: &[String], value: &Value| wanted.iter().any(|word| value == word.as_str());
    let found: Vec<&Value> = machines
        .iter()
        .filter(|machine| has(&ids, &machine["id"]) || has(&names, &machine["name"]))
        .collect();
    let is_there = |id: &String| machines.iter().any(|machine| machine["id"] == id.as_str());
    let missing: Vec<&String> = ids.iter().filter(|id| !is_there(id)).collect();
    let page: usize = words.get("page").and_then(|page| page.parse().ok()).unwrap_or(0);
    let next = (page + 1 < found.len()).then(|| (page + 1).to_string());
    Json(json!({"machines": found.get(page).into_iter().collect::<Vec<_>>(), "missing": missing, "next": next}))
}

async fn balancers(State(inventory): State<Inventory>, words: Words) -> Json<Value> {
    let owners = list(&words, "owners");
    let inventory = locked(&inventory);
    let found = inventory.balancers.values();
    let found = found.filter(|balancer| owners.iter().any(|owner| balancer["owner"] == owner.as_str()));
    Json(json!({"balancers": found.collect::<Vec<_>>()}))
}

/// The first request for a load balancer begins to build it, the second finds it ready.
async fn ensure(State(inventory): State<Inventory>, Path(name): Path<String>, body: Bytes) -> Response {
    let Ok(Value::Object(wanted)) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut inventory = locked(&inventory);
    let number = inventory.balancers.len() + 1;
    let state = match inventory.balancers.contains_key(&name) {
        true => "ready",
        false => "building",
    };
    let balancer = inventory
        .balancers
        .entry(name.clone())
        .or_insert_with(|| json!({"name": name, "address": format!("192.0.2.{number}")}));
    let fields = balancer.as_object_mut().unwrap();
    fields.extend(wanted);
    fields.insert("state".into(), state.into());
    Json(balancer.clone()).into_response()
}

async fn change(State(inventory): State<Inventory>, Path(name): Path<String>, Json(wanted): Json<Value>) -> Response {
    match locked(&inventory).balancers.get_mut(&name) {
        Some(balancer) => {
            balancer["targets"] = wanted["targets"].clone();
            Json(balancer.clone()).into_response()
        }
        None => (StatusCode::NOT_FOUND, Json(json!({}))).into_response(),
    }
}

async fn remove(State(inventory): State<Inventory>, Path(name): Path<String>) -> StatusCode {
    match locked(&inventory).balancers.remove(&name) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}
