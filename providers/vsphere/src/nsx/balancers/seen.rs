//! What there is of a Service, found by its tags.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::bodies::{CLUSTER, OWNER, Owner, PORT, SERVICE};
use super::wanted::Port;
use crate::nsx::api::Nsx;
use crate::nsx::object::{has_tags, tag, text, texts};

/// Where virtual servers are.
pub const SERVERS: &str = "/infra/lb-virtual-servers";
/// Where pools are.
pub const POOLS: &str = "/infra/lb-pools";
/// Where monitors are.
pub const MONITORS: &str = "/infra/lb-monitor-profiles";
/// Where load balancer services are.
pub const SERVICES: &str = "/infra/lb-services";

/// Objects of one Service.
#[derive(Default)]
pub struct Seen {
    pub servers: Vec<Value>,
    pub pools: Vec<Value>,
    pub monitors: Vec<Value>,
}

impl Seen {
    /// Reads all of it.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn read(nsx: &Nsx<'_>, owner: &Owner<'_>) -> Result<Self, Failure> {
        let scopes = owner.scopes();
        let own = |object: &Value| is_there(object) && has_tags(object, &scopes);
        Ok(Self {
            servers: nsx.list(SERVERS, own)?,
            pools: nsx.list(POOLS, own)?,
            monitors: nsx.list(MONITORS, |monitor| {
                text(monitor, "resource_type") == "LBTcpMonitorProfile" && own(monitor)
            })?,
        })
    }

    /// The virtual server of a port.
    pub fn server(&self, port: &Port) -> Option<&Value> {
        self.servers.iter().find(|server| is_server_of(server, port))
    }

    /// The pool of a port.
    pub fn pool(&self, port: &Port) -> Option<&Value> {
        of_port(&self.pools, port)
    }

    /// The monitor of a port.
    pub fn monitor(&self, port: &Port) -> Option<&Value> {
        of_port(&self.monitors, port)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.pools.is_empty() && self.monitors.is_empty()
    }
}

/// The first object of a port.
pub fn of_port<'a>(objects: &'a [Value], port: &Port) -> Option<&'a Value> {
    objects.iter().find(|object| tag(object, PORT) == Some(&port.tag))
}

/// Whether a virtual server is the port's: by its tag, and by the port that it has.
pub fn is_server_of(server: &Value, port: &Port) -> bool {
    let mut ports = texts(server, "ports");
    tag(server, PORT) == Some(&port.tag) && ports.next() == Some(&port.port.to_string()) && ports.next().is_none()
}

/// Pools of all Services of the cluster.
///
/// # Errors
/// The error of NSX.
pub fn pools(nsx: &Nsx<'_>, owner: &str, cluster: &str) -> Result<Vec<Value>, Failure> {
    nsx.list(POOLS, |pool| {
        is_there(pool) && has_tags(pool, &[(OWNER, owner), (CLUSTER, cluster)])
    })
}

/// Of these pools those of one Service.
pub fn of_service(pools: &[Value], service: &str) -> Vec<Value> {
    let own = pools.iter().filter(|pool| has_tags(pool, &[(SERVICE, service)]));
    own.cloned().collect()
}

/// What is marked for deletion is on its way out.
pub fn is_there(object: &Value) -> bool {
    object.get("marked_for_delete").and_then(Value::as_bool) != Some(true)
}
