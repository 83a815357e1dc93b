//! Listeners: what differs from the desired state, as calls. Pure.

use cloudwit_guest_sdk::reconcile::diff;
use serde_json::{Value, json};

use super::seen::Listener;
use crate::api::Call;
use crate::config::Product::Blb;

/// The kinds of listeners that Services have. Those of HTTP, HTTPS and SSL are left alone.
pub const PROTOCOLS: [&str; 2] = ["TCP", "UDP"];

/// The list of one kind.
pub fn list(blb: &str, protocol: &str) -> Call {
    Call::get(Blb, path(blb, protocol))
}

/// The next change: what is in the way goes first.
pub fn next(blb: &str, wanted: &[Listener], seen: &[Listener]) -> Option<Call> {
    let same_port = |a: &Listener, b: &Listener| a.protocol == b.protocol && a.listener_port == b.listener_port;
    let diff = diff(wanted, seen, same_port, |wanted, seen| wanted == seen);
    if !diff.delete.is_empty() {
        return Some(delete(blb, diff.delete));
    }
    if let Some((wanted, _)) = diff.change.first() {
        let call = Call::new(Blb, "PUT", path(blb, wanted.protocol)).query("listenerPort", wanted.listener_port);
        return Some(call.json(body(wanted)));
    }
    let wanted = diff.create.first()?;
    let mut body = body(wanted);
    if let Some(body) = body.as_object_mut() {
        body.insert("listenerPort".into(), wanted.listener_port.into());
    }
    Some(Call::new(Blb, "POST", path(blb, wanted.protocol)).json(body))
}

/// Deletes these, in one call.
pub fn delete<'a>(blb: &str, listeners: impl IntoIterator<Item = &'a Listener>) -> Call {
    let listeners = listeners.into_iter();
    let ports: Vec<Value> = listeners
        .map(|one| json!({ "port": one.listener_port, "type": one.protocol }))
        .collect();
    let call = Call::new(Blb, "PUT", format!("/v1/blb/{blb}/listener")).query("batchdelete", "");
    call.json(json!({ "portTypeList": ports }))
}

fn path(blb: &str, protocol: &str) -> String {
    format!("/v1/blb/{blb}/{protocol}listener")
}

fn body(wanted: &Listener) -> Value {
    let mut body = json!({
        "backendPort": wanted.backend_port, "scheduler": wanted.scheduler,
        "healthCheckTimeoutInSecond": wanted.health_check_timeout_in_second, "healthCheckInterval": wanted.health_check_interval,
        "unhealthyThreshold": wanted.unhealthy_threshold, "healthyThreshold": wanted.healthy_threshold,
    });
    if let (Some(body), Some(string)) = (body.as_object_mut(), &wanted.health_check_string) {
        body.insert("healthCheckString".into(), string.as_str().into());
    }
    body
}
