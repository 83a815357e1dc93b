//! Listeners of a Network Load Balancer.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::{Call, NLB, Paging};
use crate::balancers::fields::{Field, sent, text};
use crate::balancers::listeners::{Listener, Requests};
use crate::balancers::task::{Found, Task};
use crate::balancers::wanted::Port;

/// Requests of Network Load Balancers, in which a listener has an id.
pub struct Nlb;

/// Whether the cloud is changing it.
pub fn is_busy(listener: &Listener) -> bool {
    !matches!(listener.status.as_str(), "Running" | "Stopped")
}

fn of(action: &'static str, listener: &Listener) -> Call {
    Call::new(NLB, action).field("ListenerId", &listener.id)
}

/// All of the load balancer.
pub fn list(task: &Task<'_>, found: &Found) -> Result<Vec<Listener>, Failure> {
    let call = Call::new(NLB, "ListListeners").list("LoadBalancerIds", [&found.id]);
    let seen: Vec<Value> = task.cloud.api.list(&call, Paging::Token("MaxResults"), "Listeners")?;
    let read = |seen: Value| Listener {
        id: text(&seen["ListenerId"]),
        port: text(&seen["ListenerPort"]),
        protocol: text(&seen["ListenerProtocol"]),
        name: text(&seen["ListenerDescription"]),
        status: text(&seen["ListenerStatus"]),
        seen,
    };
    Ok(seen.into_iter().map(read).collect())
}

impl Requests for Nlb {
    const MARK: &'static str = "k8s.";
    const NAMES: [&'static str; 2] = ["ListenerDescription", "ServerGroupId"];

    fn create(found: &Found, port: &Port, fields: &[Field]) -> Call {
        let call = Call::new(NLB, "CreateListener")
            .field("LoadBalancerId", &found.id)
            .field("ListenerPort", port.port)
            .field("ListenerProtocol", port.protocol);
        sent(call, fields)
    }

    /// What is shown otherwise is sent alone: NLB keeps the rest.
    fn change(_: &Found, _: &Port, listener: &Listener, fields: &[Field]) -> Call {
        let differing = fields.iter().filter(|field| !field.is_in(&listener.seen));
        let differing: Vec<Field> = differing.cloned().collect();
        sent(of("UpdateListenerAttribute", listener), &differing)
    }

    fn start(_: &Found, listener: &Listener) -> Call {
        of("StartListener", listener)
    }

    fn delete(_: &Found, listener: &Listener) -> Call {
        of("DeleteListener", listener)
    }
}
