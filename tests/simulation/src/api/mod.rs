//! The API server as a `tower` service: what a process sends arrives, is judged, takes effect, and is answered, unless a fault intervenes.

pub(crate) mod object;
mod patch;
pub(crate) mod store;
mod watch_stream;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudwit_controllers::ambient;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::BoxError;

use crate::api::object::text;
use crate::api::patch::{merge, strategic};
use crate::api::store::Kind;
use crate::api::watch_stream::{WatchRequest, events};
use crate::faults::{Area, Fault};
use crate::judge::judge;
use crate::process::kill;
use crate::world::World;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Longer than any client waits.
const HANG: Duration = Duration::from_secs(100);

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Merge,
    Strategic,
    Delete,
}

/// A request about one object.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) verb: Verb,
    pub(crate) kind: Kind,
    pub(crate) key: String,
    /// Of the `status` subresource.
    pub(crate) status: bool,
    pub(crate) body: Value,
}

/// A refusal: code, reason, message.
pub(crate) type Refusal = (u16, &'static str, String);

enum Asked {
    One(Operation),
    List(Kind),
    Watch(WatchRequest),
    /// And its reason.
    Event(String),
}

/// A client of one process.
pub(crate) fn client(world: Arc<World>, process: u32) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| serve(world.clone(), process, request));
    Client::new(service, "default")
}

async fn serve(world: Arc<World>, process: u32, request: Request<Body>) -> Result<Answer, BoxError> {
    let asked = read(request).await?;
    if world.lock().processes[&process].dead {
        return pending().await;
    }
    if let Asked::Event(reason) = asked {
        world.step(|| format!("p{process} Event {reason}"));
        sleep(world.millis(1, 10)).await;
        world.lock().calls.events += 1;
        return Ok(answer(StatusCode::CREATED, &json!({})));
    }
    let area = if matches!(asked, Asked::Watch(_)) {
        Area::Watches
    } else {
        Area::Requests
    };
    let fault = world.draw(area);
    sleep(world.millis(1, 20)).await;
    match fault {
        Some(Fault::Slow(time)) => sleep(time).await,
        Some(Fault::Unavailable) => return Ok(refused((503, "ServiceUnavailable", "etcd has no leader".into()))),
        Some(Fault::Throttled) => return Ok(refused((429, "TooManyRequests", "too many requests".into()))),
        Some(Fault::LostBefore) => return Err("connection reset by peer".into()),
        Some(Fault::Hang) => {
            sleep(HANG).await;
            return Err("connection timed out".into());
        }
        Some(Fault::DieBefore) => return kill(&world, process).await,
        _ => {}
    }
    // Its request dies with the process, also where both are at the same instant.
    if world.lock().processes[&process].dead {
        return pending().await;
    }
    let done = match asked {
        Asked::Watch(request) => return Ok(watch(world, request)),
        Asked::Event(_) => answer(StatusCode::CREATED, &json!({})),
        Asked::List(kind) => list(&world, kind),
        Asked::One(operation) => {
            if fault == Some(Fault::Touched) {
                touch(&world, &operation);
            }
            match carry_out(&world, process, &operation) {
                Ok(object) => answer(StatusCode::OK, &object),
                Err(refusal) => refused(refusal),
            }
        }
    };
    match fault {
        Some(Fault::LostAfter) => return Err("connection reset by peer".into()),
        Some(Fault::HangAfter) => {
            sleep(HANG).await;
            return Err("connection timed out".into());
        }
        Some(Fault::DieAfter) => return kill(&world, process).await,
        _ => sleep(world.millis(0, 10)).await,
    }
    Ok(done)
}

async fn read(request: Request<Body>) -> Result<Asked, BoxError> {
    let (parts, body) = request.into_parts();
    let path: Vec<&str> = parts.uri.path().trim_start_matches("/api/v1/").split('/').collect();
    if path.contains(&"events") {
        let event: Value = serde_json::from_slice(&body.collect_bytes().await?)?;
        return Ok(Asked::Event(format!(
            "{} {}",
            text(&event, "/reason"),
            text(&event, "/message")
        )));
    }
    let query = parts.uri.query().unwrap_or_default();
    let value = |key: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    };
    let number = |key: &str| value(key).and_then(|text| text.parse().ok());
    let (kind, key, rest) = match path.as_slice() {
        ["nodes"] => (Kind::Nodes, None, None),
        ["nodes", name, rest @ ..] => (Kind::Nodes, Some((*name).to_owned()), rest.first()),
        ["services"] => (Kind::Services, None, None),
        ["namespaces", space, "services", name, rest @ ..] => {
            (Kind::Services, Some(format!("{space}/{name}")), rest.first())
        }
        other => return Err(format!("no such path: {other:?}").into()),
    };
    let Some(key) = key else {
        if value("watch") != Some("true") {
            return Ok(Asked::List(kind));
        }
        return Ok(Asked::Watch(WatchRequest {
            kind,
            version: number("resourceVersion").unwrap_or(0),
            lasts: Duration::from_secs(number("timeoutSeconds").unwrap_or(290)),
            initial: value("sendInitialEvents") == Some("true"),
        }));
    };
    let verb = match parts.method {
        Method::GET => Verb::Get,
        Method::DELETE => Verb::Delete,
        _ if parts
            .headers
            .get("content-type")
            .is_some_and(|kind| kind == "application/merge-patch+json") =>
        {
            Verb::Merge
        }
        _ => Verb::Strategic,
    };
    let bytes = body.collect_bytes().await?;
    let body = if bytes.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&bytes)?
    };
    let status = rest == Some(&"status");
    Ok(Asked::One(Operation {
        verb,
        kind,
        key,
        status,
        body,
    }))
}

/// Another writer changes something that is no business of the controllers.
fn touch(world: &World, operation: &Operation) {
    world.edit(operation.kind, &operation.key, |object| {
        let touched = object["metadata"]["labels"]["touched"]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        object["metadata"]["labels"]["touched"] = json!((touched + 1).to_string());
    });
}

/// Judges an operation of a process and lets it take effect.
pub(crate) fn carry_out(world: &World, process: u32, operation: &Operation) -> Result<Value, Refusal> {
    let Operation {
        verb,
        kind,
        key,
        status,
        body,
    } = operation;
    world.step(|| {
        format!(
            "p{process} {verb:?} {} {key}{} {body}",
            kind.name(),
            if *status { "/status" } else { "" }
        )
    });
    let before = world.lock().store.get(*kind, key).cloned();
    let Some(before) = before else {
        world.lock().calls.requests += 1;
        return Err((404, "NotFound", format!("{key} not found")));
    };
    if *verb == Verb::Get {
        world.lock().calls.requests += 1;
        return Ok(before);
    }
    world.lock().calls.writes += 1;
    let named = if *verb == Verb::Delete {
        &body["preconditions"]
    } else {
        &body["metadata"]
    };
    for field in ["uid", "resourceVersion"] {
        if named[field].is_string() && named[field] != before["metadata"][field] {
            return Err((
                409,
                "Conflict",
                format!("the {field} in the precondition is another one"),
            ));
        }
    }
    let mut after = before.clone();
    if *verb == Verb::Delete {
        judge(world, process, operation, &before, None);
        world.lock().store.delete(*kind, key, ambient::now());
        world.publish(*kind);
        return Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 200 }));
    }
    let part = if *status { "status" } else { "spec" };
    for part in ["metadata", part] {
        let Some(patch) = body.get(part) else { continue };
        match verb {
            Verb::Merge => merge(&mut after[part], patch),
            _ => strategic(&mut after[part], patch),
        }
    }
    judge(world, process, operation, &before, Some(&after));
    let after = world.lock().store.replace(*kind, key, after);
    world.publish(*kind);
    debug_assert_eq!(object::uid(&before), object::uid(&after));
    Ok(after)
}

fn list(world: &World, kind: Kind) -> Answer {
    let mut inner = world.lock();
    inner.calls.lists += 1;
    let items: Vec<&Value> = inner.store.all(kind).map(|(_, object)| object).collect();
    let metadata = json!({ "resourceVersion": inner.store.version().to_string() });
    let list =
        json!({ "kind": format!("{}List", kind.name()), "apiVersion": "v1", "metadata": metadata, "items": items });
    answer(StatusCode::OK, &list)
}

fn watch(world: Arc<World>, request: WatchRequest) -> Answer {
    let too_old = !request.initial && world.lock().store.since(request.kind, request.version).is_err();
    // As an answer, or as the first event.
    if too_old && world.lock().chance.percent(50) {
        return refused((410, "Expired", "too old resource version".into()));
    }
    let body = StreamBody::new(Box::pin(events(world, request)));
    Response::new(body.map_err(BoxError::from).boxed_unsync())
}

fn refused((code, reason, message): Refusal) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": message });
    answer(
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        &status,
    )
}

fn answer(code: StatusCode, body: &Value) -> Answer {
    let body = Full::new(Bytes::from(body.to_string()));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = code;
    answer
}
