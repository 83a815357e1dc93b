//! Listeners of a Classic Load Balancer.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::{Call, Paging, SLB};
use crate::balancers::fields::{Field, sent, text};
use crate::balancers::listeners::{Listener, Requests};
use crate::balancers::task::{Found, Task};
use crate::balancers::wanted::Port;

/// Requests of Classic Load Balancers, in which a listener is known by its port.
pub struct Clb;

fn read(mut seen: Value) -> Listener {
    let protocol = text(&seen["ListenerProtocol"]).to_ascii_lowercase();
    let own = seen[format!("{}ListenerConfig", protocol.to_ascii_uppercase())].take();
    if let (Value::Object(all), Value::Object(own)) = (&mut seen, own) {
        all.extend(own);
        // As it is called in requests for TCP and UDP.
        if let Some(switch) = all.get("HealthCheck").cloned() {
            all.insert("HealthCheckSwitch".into(), switch);
        }
        if let Some(Value::Array(ids)) = all.get("AclIds").filter(|ids| ids != &&Value::Array(Vec::new())) {
            let mut ids: Vec<String> = ids.iter().map(text).collect();
            ids.sort_unstable();
            all.insert("AclId".into(), ids.join(",").into());
        }
    }
    Listener {
        id: String::new(),
        port: text(&seen["ListenerPort"]),
        protocol,
        name: text(&seen["Description"]),
        status: text(&seen["Status"]),
        seen,
    }
}

fn of(action: &'static str, found: &Found, port: impl ToString) -> Call {
    Call::new(SLB, action)
        .field("LoadBalancerId", &found.id)
        .field("ListenerPort", port)
}

/// All of the load balancer.
pub fn list(task: &Task<'_>, found: &Found) -> Result<Vec<Listener>, Failure> {
    let call = Call::new(SLB, "DescribeLoadBalancerListeners").list("LoadBalancerId", [&found.id]);
    let seen: Vec<Value> = task.cloud.api.list(&call, Paging::Token("MaxResults"), "Listeners")?;
    Ok(seen.into_iter().map(read).collect())
}

impl Requests for Clb {
    const MARK: &'static str = "k8s/";
    const NAMES: [&'static str; 2] = ["Description", "VServerGroupId"];

    fn create(found: &Found, port: &Port, fields: &[Field]) -> Call {
        let (action, layer4) = match port.protocol {
            "tcp" => ("CreateLoadBalancerTCPListener", true),
            "udp" => ("CreateLoadBalancerUDPListener", true),
            "http" => ("CreateLoadBalancerHTTPListener", false),
            _ => ("CreateLoadBalancerHTTPSListener", false),
        };
        // So it is called there, and nowhere else.
        let fields: Vec<Field> = fields
            .iter()
            .cloned()
            .map(|field| match field.name {
                "HealthCheckInterval" if layer4 => Field {
                    name: "healthCheckInterval",
                    ..field
                },
                _ => field,
            })
            .collect();
        // Without a limit.
        sent(of(action, found, port.port).field("Bandwidth", -1), &fields)
    }

    fn change(found: &Found, port: &Port, _: &Listener, fields: &[Field]) -> Call {
        let action = match port.protocol {
            "tcp" => "SetLoadBalancerTCPListenerAttribute",
            "udp" => "SetLoadBalancerUDPListenerAttribute",
            "http" => "SetLoadBalancerHTTPListenerAttribute",
            _ => "SetLoadBalancerHTTPSListenerAttribute",
        };
        // Without it the group is taken and not used.
        sent(of(action, found, port.port).field("VServerGroup", "on"), fields)
    }

    fn start(found: &Found, listener: &Listener) -> Call {
        of("StartLoadBalancerListener", found, &listener.port).field("ListenerProtocol", &listener.protocol)
    }

    fn delete(found: &Found, listener: &Listener) -> Call {
        of("DeleteLoadBalancerListener", found, &listener.port).field("ListenerProtocol", &listener.protocol)
    }
}
