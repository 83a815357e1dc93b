//! Network Load Balancers: changes are jobs, and server groups are things of their own.

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::{Call, NLB, Paging};
use crate::balancers::annotations::{TABLE, text as asked};
use crate::balancers::fields::{Field, sent, text};
use crate::balancers::groups::{Group, Member};
use crate::balancers::listeners::Listener;
use crate::balancers::names::OWNER_TAG;
use crate::balancers::requests::Requests;
use crate::balancers::task::{Found, Task, reason};
use crate::balancers::wanted::{Port, Wanted, Zone};
use crate::balancers::work::{CREATE, Next};

/// Network Load Balancers, in which a listener has an id.
pub struct Nlb;

impl Requests for Nlb {
    const JOBS: bool = true;
    const MARK: &'static str = "k8s.";
    const NAMES: [&'static str; 2] = ["ListenerDescription", "ServerGroupId"];
    const MEMBERS: [&'static str; 3] = [
        "RemoveServersFromServerGroup",
        "AddServersToServerGroup",
        "UpdateServerGroupServersAttribute",
    ];
    /// NLB takes 200.
    const BATCH: usize = 100;

    fn first(task: &Task<'_>, found: &Found) -> Result<Option<Next<Found>>, Failure> {
        Ok(match found.text("LoadBalancerStatus") {
            "Active" => None,
            "CreateFailed" => Some(Next::change(task.deletion(found))),
            status => Some(Next::Wait(format!("the load balancer {} is {status}", found.id))),
        })
    }

    fn create(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Call, Failure> {
        let (global, asked) = (task.cloud.global(), |key: &str| asked(wanted.service, key));
        let mut zones = wanted.zones.clone();
        if zones.is_empty() {
            let vswitches = global.vswitches();
            let only = given(&global.zoneid).filter(|_| vswitches.len() == 1);
            let zone = |(zone, vswitch)| Zone {
                zone,
                vswitch,
                ..Zone::default()
            };
            let known = vswitches.iter().filter_map(|one| Some((one.zone.or(only)?, one.id)));
            zones = known.map(zone).collect();
        }
        if zones.len() < 2 {
            return Err(Failure::failed_precondition(format!(
                "a Network Load Balancer is in two zones at least: write {} or vswitchid of the cloud config like \
                 cn-hangzhou-g:vsw-1,cn-hangzhou-h:vsw-2",
                TABLE.key("zone-maps")
            )));
        }
        let protection = asked("modification-protection").unwrap_or("ConsoleProtection");
        let protected = asked("delete-protection") != Some("off");
        let call = Call::new(NLB, CREATE)
            .field("LoadBalancerName", asked("name").unwrap_or(&task.names.balancer))
            .field("AddressType", address_type(wanted))
            .field("VpcId", global.vpc()?)
            .field("DeletionProtectionConfig.Enabled", protected)
            .opt("AddressIpVersion", asked("ip-version"))
            .opt("BandwidthPackageId", asked("bandwidth-package-id"))
            .opt("ResourceGroupId", task.resource_group())
            .field("ModificationProtectionConfig.Status", protection)
            .opt("ModificationProtectionConfig.Reason", reason(protection));
        Ok(with_zones(call, &zones))
    }

    fn changes(task: &Task<'_>, wanted: &Wanted<'_>, found: &Found) -> Result<Vec<Call>, Failure> {
        let asked = |key: &str| asked(wanted.service, key);
        let is_on = |key: &str| asked(key).map(|value| value.eq_ignore_ascii_case("on"));
        let of = |action| task.call(action, found);
        let mut calls = Vec::new();
        let name = found.lacks("LoadBalancerName", asked("name"));
        calls.extend(name.map(|name| of("UpdateLoadBalancerAttribute").field("LoadBalancerName", name)));
        let cross = found.lacks("CrossZoneEnabled", is_on("cross-zone-enabled"));
        calls.extend(cross.map(|on| of("UpdateLoadBalancerAttribute").field("CrossZoneEnabled", on)));
        if found.lacks("AddressType", asked("address-type")).is_some() {
            calls.push(of("UpdateLoadBalancerAddressTypeConfig").field("AddressType", address_type(wanted)));
        }
        let here = wanted
            .zones
            .iter()
            .map(|zone| format!("{} {}", zone.zone, zone.vswitch));
        let there = found.items("ZoneMappings");
        let there = there.map(|zone| format!("{} {}", text(&zone["ZoneId"]), text(&zone["VSwitchId"])));
        if !wanted.zones.is_empty() && sorted(here) != sorted(there) {
            calls.push(with_zones(of("UpdateLoadBalancerZones"), &wanted.zones));
        }
        if let Some(wanted) = TABLE.read(wanted.service).list("security-group-ids") {
            let wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
            let there: Vec<String> = found.items("SecurityGroupIds").map(text).collect();
            for (action, these, others) in [
                ("LoadBalancerJoinSecurityGroup", &wanted, &there),
                ("LoadBalancerLeaveSecurityGroup", &there, &wanted),
            ] {
                let missing: Vec<&String> = these.iter().filter(|id| !others.contains(id)).collect();
                if !missing.is_empty() {
                    calls.push(of(action).list("SecurityGroupIds", missing));
                }
            }
        }
        if let Some(package) = found.lacks("BandwidthPackageId", asked("bandwidth-package-id")) {
            let former = found.text("BandwidthPackageId");
            if !former.is_empty() {
                calls.push(of("DetachCommonBandwidthPackageFromLoadBalancer").field("BandwidthPackageId", former));
            }
            calls.push(of("AttachCommonBandwidthPackageToLoadBalancer").field("BandwidthPackageId", package));
        }
        let deletion = found.lacks("DeletionProtectionConfig.Enabled", is_on("delete-protection"));
        let modification = found.lacks("ModificationProtectionConfig.Status", asked("modification-protection"));
        if deletion.is_some() || modification.is_some() {
            let call = of("UpdateLoadBalancerProtection").opt("DeletionProtectionEnabled", deletion);
            let call = call.opt("ModificationProtectionStatus", modification);
            calls.push(call.opt("ModificationProtectionReason", modification.and_then(reason)));
        }
        Ok(calls)
    }

    fn unprotect(task: &Task<'_>, found: &Found) -> Option<Call> {
        let call = task.call("UpdateLoadBalancerProtection", found);
        let is_protected = found.seen["DeletionProtectionConfig"]["Enabled"] == true;
        is_protected.then(|| call.field("DeletionProtectionEnabled", false))
    }

    /// By its tag and by their names.
    fn groups(task: &Task<'_>, _: Option<&Found>) -> Result<Vec<Group>, Failure> {
        let tag = [(OWNER_TAG.to_owned(), task.names.balancer.clone())];
        let call = Call::new(NLB, "ListServerGroups").tags(&tag);
        let mut groups = task.groups(&call, Paging::Token("MaxResults"), "ServerGroups", "ServerGroup")?;
        for group in &mut groups {
            // Under the name that requests have for it.
            group.seen["HealthCheckConfig"] = group.seen["HealthCheck"].take();
        }
        Ok(groups)
    }

    fn groups_alone(task: &Task<'_>) -> Result<Vec<Group>, Failure> {
        let groups = Self::groups(task, None)?;
        if groups.is_empty() {
            task.found()?;
        }
        Ok(groups)
    }

    fn change_group(task: &Task<'_>, found: &Found, port: &Port, group: Option<&Group>) -> Option<Call> {
        let Some(group) = group else {
            let call = Call::new(NLB, "CreateServerGroup")
                .field("ServerGroupName", &port.group)
                .field("ServerGroupType", "Instance")
                .field("Protocol", port.protocol.trim_end_matches("SSL"))
                .field("VpcId", found.text("VpcId"))
                .opt("ResourceGroupId", given(&task.cloud.global().resource_group_id))
                .tags(&task.names.tags());
            return Some(sent(call, &port.of_group));
        };
        let differing = differing(&port.of_group, &group.seen);
        let call = of_group("UpdateServerGroupAttribute", group);
        (group.busy().is_none() && !differing.is_empty()).then(|| sent(call, &differing))
    }

    fn delete_group(group: &Group) -> Call {
        of_group("DeleteServerGroup", group)
    }

    fn members(task: &Task<'_>, group: &Group) -> Result<Vec<Value>, Failure> {
        let call = of_group("ListServerGroupServers", group);
        let api = &task.cloud.api;
        let mut seen: Vec<Value> = api.list(&call, Paging::Token("MaxResults"), "Servers")?;
        seen.retain(|server| server["Status"] != "Removing");
        Ok(seen)
    }

    fn change_members(action: &'static str, group: &Group, members: &[Member]) -> Call {
        let removes = action == Self::MEMBERS[0];
        let members = members.iter().enumerate();
        members.fold(of_group(action, group), |call, (at, member)| {
            let name = |field: &str| format!("Servers.{}.{field}", at + 1);
            let call = call
                .field(name("ServerId"), &member.instance)
                .field(name("ServerType"), "Ecs")
                .field(name("Port"), member.port);
            if removes {
                return call;
            }
            call.field(name("Weight"), member.weight)
                .field(name("Description"), &group.name)
        })
    }

    fn listeners(task: &Task<'_>, found: &Found) -> Result<Vec<Listener>, Failure> {
        let call = Call::new(NLB, "ListListeners").list("LoadBalancerIds", [&found.id]);
        let api = &task.cloud.api;
        let seen: Vec<Value> = api.list(&call, Paging::Token("MaxResults"), "Listeners")?;
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

    fn create_listener(found: &Found, port: &Port, fields: &[Field]) -> Call {
        let call = Call::new(NLB, "CreateListener")
            .field("LoadBalancerId", &found.id)
            .field("ListenerPort", port.port)
            .field("ListenerProtocol", port.protocol);
        sent(call, fields)
    }

    fn change_listener(_: &Found, _: &Port, listener: &Listener, fields: &[Field]) -> Call {
        let differing = differing(fields, &listener.seen);
        sent(of_listener("UpdateListenerAttribute", listener), &differing)
    }

    fn start_listener(_: &Found, listener: &Listener) -> Call {
        of_listener("StartListener", listener)
    }

    fn delete_listener(_: &Found, listener: &Listener) -> Call {
        of_listener("DeleteListener", listener)
    }
}

fn of_group(action: &'static str, group: &Group) -> Call {
    Call::new(NLB, action).field("ServerGroupId", &group.id)
}

fn of_listener(action: &'static str, listener: &Listener) -> Call {
    Call::new(NLB, action).field("ListenerId", &listener.id)
}

/// What is shown otherwise is sent alone: NLB keeps the rest.
fn differing(fields: &[Field], seen: &Value) -> Vec<Field> {
    let differing = fields.iter().filter(|field| !field.is_in(seen));
    differing.cloned().collect()
}

fn with_zones(call: Call, zones: &[Zone<'_>]) -> Call {
    zones.iter().enumerate().fold(call, |call, (at, zone)| {
        let name = |field: &str| format!("ZoneMappings.{}.{field}", at + 1);
        call.field(name("ZoneId"), zone.zone)
            .field(name("VSwitchId"), zone.vswitch)
            .opt(&name("PrivateIPv4Address"), zone.address)
            .opt(&name("AllocationId"), zone.elastic)
    })
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort_unstable();
    texts
}

fn address_type(wanted: &Wanted<'_>) -> &'static str {
    if wanted.internal { "Intranet" } else { "Internet" }
}
