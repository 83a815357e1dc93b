//! Classic Load Balancers: changes are made at once, and a listener has a server group of the load balancer.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use crate::api::{Call, Paging, SLB};
use crate::balancers::annotations::{self, TABLE, text as asked};
use crate::balancers::fields::{Field, sent, text};
use crate::balancers::groups::{Group, Member};
use crate::balancers::listeners::Listener;
use crate::balancers::requests::Requests;
use crate::balancers::task::{Found, Task, reason};
use crate::balancers::wanted::{Port, Wanted};
use crate::balancers::work::{CREATE, Next};

/// The size of a load balancer that is paid by size, without the annotation.
const SPEC: &str = "slb.s1.small";

/// Classic Load Balancers, in which a listener is known by its port.
pub struct Clb;

impl Requests for Clb {
    const JOBS: bool = false;
    const MARK: &'static str = "k8s/";
    const NAMES: [&'static str; 2] = ["Description", "VServerGroupId"];
    const MEMBERS: [&'static str; 3] = [
        "RemoveVServerGroupBackendServers",
        "AddVServerGroupBackendServers",
        "SetVServerGroupAttribute",
    ];
    /// The most that CLB takes.
    const BATCH: usize = 20;

    fn first(_: &Task<'_>, found: &Found) -> Result<Option<Next<Found>>, Failure> {
        match found.text("LoadBalancerStatus") {
            "locked" => Err(Failure::failed_precondition(format!(
                "the load balancer {} is locked, since it was not paid or is not safe",
                found.id
            ))),
            _ => Ok(None),
        }
    }

    fn create(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Call, Failure> {
        let (global, asked) = (task.cloud.global(), |key: &str| asked(wanted.service, key));
        let kind = if wanted.internal { "intranet" } else { "internet" };
        let protection = asked("modification-protection").unwrap_or("ConsoleProtection");
        let charged = asked("instance-charge-type").unwrap_or("PayByCLCU");
        let mut call = Call::new(SLB, CREATE)
            .field("LoadBalancerName", asked("name").unwrap_or(&task.names.balancer))
            .field("AddressType", kind)
            .field("DeleteProtection", asked("delete-protection").unwrap_or("on"))
            .field("InstanceChargeType", charged)
            .opt("LoadBalancerSpec", spec(wanted.service))
            .field("ModificationProtectionStatus", protection)
            .opt("ModificationProtectionReason", reason(protection))
            .opt("AddressIPVersion", asked("ip-version"))
            .opt("Bandwidth", asked("bandwidth"))
            .opt("InternetChargeType", asked("charge-type"))
            .opt("MasterZoneId", asked("master-zoneid"))
            .opt("ResourceGroupId", task.resource_group())
            .opt("SlaveZoneId", asked("slave-zoneid"));
        if wanted.internal {
            call = call.opt("Address", asked("ip"));
            if asked("network-type") != Some("classic") {
                let configured = global.vswitches();
                let vswitch = asked("vswitch-id").or(configured.first().map(|vswitch| vswitch.id));
                let none = "an internal load balancer needs a vswitch: write vswitchid into the cloud config, or the annotation vswitch-id";
                call = call
                    .field("VSwitchId", vswitch.ok_or_else(|| Failure::failed_precondition(none))?)
                    .field("VpcId", global.vpc()?);
            }
        }
        Ok(call)
    }

    fn changes(task: &Task<'_>, wanted: &Wanted<'_>, found: &Found) -> Result<Vec<Call>, Failure> {
        let service = wanted.service;
        let of = |action| task.call(action, found);
        let lacks = |key: &str, path: &str| found.lacks(path, asked(service, key));
        if lacks("address-type", "AddressType").is_some() {
            return Err(Failure::invalid(format!(
                "{} cannot be changed: the load balancer {} is {}; delete the Service, or take the annotation back",
                TABLE.key("address-type"),
                found.id,
                found.text("AddressType")
            )));
        }
        let mut calls = Vec::new();
        let name = lacks("name", "LoadBalancerName");
        calls.extend(name.map(|name| of("SetLoadBalancerName").field("LoadBalancerName", name)));
        if let Some(kind) = lacks("instance-charge-type", "InstanceChargeType") {
            let call = of("ModifyLoadBalancerInstanceChargeType").field("InstanceChargeType", kind);
            calls.push(call.opt("LoadBalancerSpec", spec(service)));
        } else if found.text("InstanceChargeType") == "PayBySpec"
            && let Some(spec) = lacks("spec", "LoadBalancerSpec")
        {
            calls.push(of("ModifyLoadBalancerInstanceSpec").field("LoadBalancerSpec", spec));
        }
        let traffic = match found.text("InternetChargeTypeAlias") {
            "" => "InternetChargeType",
            _ => "InternetChargeTypeAlias",
        };
        let by_bandwidth = asked(service, "charge-type").unwrap_or(found.text(traffic)) == "paybybandwidth";
        let bandwidth = asked(service, "bandwidth").filter(|_| by_bandwidth);
        if lacks("charge-type", traffic).is_some() || found.lacks("Bandwidth", bandwidth).is_some() {
            let call = of("ModifyLoadBalancerInternetSpec");
            calls.push(
                call.opt("InternetChargeType", asked(service, "charge-type"))
                    .opt("Bandwidth", bandwidth),
            );
        }
        let protection = lacks("delete-protection", "DeleteProtection");
        calls.extend(protection.map(|value| protect(task, found, value)));
        if let Some(value) = lacks("modification-protection", "ModificationProtectionStatus") {
            let call = of("SetLoadBalancerModificationProtection").field("ModificationProtectionStatus", value);
            calls.push(call.opt("ModificationProtectionReason", reason(value)));
        }
        Ok(calls)
    }

    fn unprotect(task: &Task<'_>, found: &Found) -> Option<Call> {
        (found.text("DeleteProtection") == "on").then(|| protect(task, found, "off"))
    }

    fn groups(task: &Task<'_>, found: Option<&Found>) -> Result<Vec<Group>, Failure> {
        // Those of a load balancer that is gone are gone.
        let Some(found) = found else { return Ok(Vec::new()) };
        let call = task.call("DescribeVServerGroups", found);
        task.groups(&call, Paging::Whole, "VServerGroups.VServerGroup", "VServerGroup")
    }

    fn groups_alone(task: &Task<'_>) -> Result<Vec<Group>, Failure> {
        Self::groups(task, Some(&task.found()?))
    }

    fn change_group(task: &Task<'_>, found: &Found, port: &Port, group: Option<&Group>) -> Option<Call> {
        let create = task.call("CreateVServerGroup", found);
        group.is_none().then(|| create.field("VServerGroupName", &port.group))
    }

    fn delete_group(group: &Group) -> Call {
        of_group("DeleteVServerGroup", group)
    }

    fn members(task: &Task<'_>, group: &Group) -> Result<Vec<Value>, Failure> {
        let call = of_group("DescribeVServerGroupAttribute", group);
        let api = &task.cloud.api;
        api.list(&call, Paging::Whole, "BackendServers.BackendServer")
    }

    fn change_members(action: &'static str, group: &Group, members: &[Member]) -> Call {
        let written = |member: &Member| {
            json!({
                "ServerId": member.instance, "Port": member.port.to_string(), "Weight": member.weight.to_string(), "Type": "ecs",
                "Description": group.name,
            })
        };
        of_group(action, group).field("BackendServers", members.iter().map(written).collect::<Value>())
    }

    fn listeners(task: &Task<'_>, found: &Found) -> Result<Vec<Listener>, Failure> {
        let call = Call::new(SLB, "DescribeLoadBalancerListeners").list("LoadBalancerId", [&found.id]);
        let api = &task.cloud.api;
        let seen: Vec<Value> = api.list(&call, Paging::Token("MaxResults"), "Listeners")?;
        Ok(seen.into_iter().map(read_listener).collect())
    }

    fn create_listener(found: &Found, port: &Port, fields: &[Field]) -> Call {
        let (action, layer4) = match port.protocol {
            "tcp" => ("CreateLoadBalancerTCPListener", true),
            "udp" => ("CreateLoadBalancerUDPListener", true),
            "http" => ("CreateLoadBalancerHTTPListener", false),
            _ => ("CreateLoadBalancerHTTPSListener", false),
        };
        let mut fields = fields.to_vec();
        for field in fields.iter_mut().filter(|_| layer4) {
            // So it is called there, and nowhere else.
            if field.name == "HealthCheckInterval" {
                field.name = "healthCheckInterval";
            }
        }
        // Without a limit.
        sent(of_listener(action, found, port.port).field("Bandwidth", -1), &fields)
    }

    fn change_listener(found: &Found, port: &Port, _: &Listener, fields: &[Field]) -> Call {
        let action = match port.protocol {
            "tcp" => "SetLoadBalancerTCPListenerAttribute",
            "udp" => "SetLoadBalancerUDPListenerAttribute",
            "http" => "SetLoadBalancerHTTPListenerAttribute",
            _ => "SetLoadBalancerHTTPSListenerAttribute",
        };
        // Without it the group is taken and not used.
        sent(
            of_listener(action, found, port.port).field("VServerGroup", "on"),
            fields,
        )
    }

    fn start_listener(found: &Found, listener: &Listener) -> Call {
        let call = of_listener("StartLoadBalancerListener", found, &listener.port);
        call.field("ListenerProtocol", &listener.protocol)
    }

    fn delete_listener(found: &Found, listener: &Listener) -> Call {
        let call = of_listener("DeleteLoadBalancerListener", found, &listener.port);
        call.field("ListenerProtocol", &listener.protocol)
    }
}

fn of_group(action: &'static str, group: &Group) -> Call {
    Call::new(SLB, action).field("VServerGroupId", &group.id)
}

fn of_listener(action: &'static str, found: &Found, port: impl ToString) -> Call {
    let call = Call::new(SLB, action).field("LoadBalancerId", &found.id);
    call.field("ListenerPort", port)
}

fn read_listener(mut seen: Value) -> Listener {
    let protocol = text(&seen["ListenerProtocol"]).to_ascii_lowercase();
    let own = seen[format!("{}ListenerConfig", protocol.to_ascii_uppercase())].take();
    if let (Value::Object(all), Value::Object(own)) = (&mut seen, own) {
        all.extend(own);
        // As it is called in requests for TCP and UDP.
        if let Some(switch) = all.get("HealthCheck").cloned() {
            all.insert("HealthCheckSwitch".into(), switch);
        }
        if let Some(Value::Array(ids)) = all.get("AclIds").filter(|ids| ids != &&json!([])) {
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

/// Switches the protection from deletion `on` or `off`.
fn protect(task: &Task<'_>, found: &Found, value: &str) -> Call {
    let call = task.call("SetLoadBalancerDeleteProtection", found);
    call.field("DeleteProtection", value)
}

/// The size of one that is paid by it.
fn spec(service: &Service) -> Option<&str> {
    let by_spec = annotations::is(service, "instance-charge-type", "PayBySpec");
    by_spec.then(|| asked(service, "spec").unwrap_or(SPEC))
}
