//! The load balancer itself: how it is made, and what of it is changed.

use cloudwit_guest_sdk::prelude::*;

use crate::api::{Call, SLB};
use crate::balancers::annotations::{TABLE, text};
use crate::balancers::task::{Found, Task};
use crate::balancers::wanted::Wanted;
use crate::balancers::work::CREATE;

/// Why it must not be changed by hand; the reason that upstream gives.
pub const REASON: &str = "managed.by.ack";

/// Makes one.
///
/// # Errors
/// `invalid` for annotations that do not fit, `failed-precondition` where the configuration lacks something.
pub fn create(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Call, Failure> {
    let (service, global) = (wanted.service, task.cloud.global());
    let asked = |key: &str| text(service, key);
    let internal = is_internal(service)?;
    if !internal && global.disable_public_slb {
        return Err(Failure::invalid(
            "the cloud config has disablePublicSLB: write intranet into the annotation address-type",
        ));
    }
    let mut call = Call::new(SLB, CREATE)
        .field("LoadBalancerName", asked("name").unwrap_or(&task.names.balancer))
        .field("AddressType", if internal { "intranet" } else { "internet" })
        .field("DeleteProtection", asked("delete-protection").unwrap_or("on"))
        .field(
            "InstanceChargeType",
            asked("instance-charge-type").unwrap_or("PayByCLCU"),
        )
        .field(
            "ModificationProtectionStatus",
            asked("modification-protection").unwrap_or("ConsoleProtection"),
        )
        .opt("AddressIPVersion", asked("ip-version"))
        .opt("Bandwidth", asked("bandwidth"))
        .opt("InternetChargeType", asked("charge-type"))
        .opt("MasterZoneId", asked("master-zoneid"))
        .opt(
            "ResourceGroupId",
            asked("resource-group-id").or(global.resource_group()),
        )
        .opt("SlaveZoneId", asked("slave-zoneid"));
    if asked("modification-protection") != Some("NonProtection") {
        call = call.field("ModificationProtectionReason", REASON);
    }
    if by_spec(service) {
        call = call.field("LoadBalancerSpec", asked("spec").unwrap_or("slb.s1.small"));
    }
    if internal {
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
    Ok(call.tags(&[task.names.tags(), wanted.tags.clone()].concat()))
}

/// What the annotations have otherwise than it is.
///
/// # Errors
/// `invalid` for what cannot be changed.
pub fn changes(task: &Task<'_>, wanted: &Wanted<'_>, found: &Found) -> Result<Vec<Call>, Failure> {
    let service = wanted.service;
    let of = |action| Call::new(SLB, action).field("LoadBalancerId", &found.id);
    // A value that is wanted and not there.
    let differs = |key: &str, seen: &str| text(service, key).filter(|value| !value.eq_ignore_ascii_case(seen));
    if differs("address-type", found.text("AddressType")).is_some() {
        return Err(Failure::invalid(format!(
            "{} cannot be changed: the load balancer {} is {}; delete the Service, or take the annotation back",
            TABLE.key("address-type"),
            found.id,
            found.text("AddressType")
        )));
    }
    let mut calls: Vec<Call> = task.tag(wanted, found).into_iter().collect();
    calls.extend(
        differs("name", found.text("LoadBalancerName"))
            .map(|name| of("SetLoadBalancerName").field("LoadBalancerName", name)),
    );
    let (charged, spec) = (found.text("InstanceChargeType"), text(service, "spec"));
    if let Some(kind) = differs("instance-charge-type", charged) {
        let spec = by_spec(service).then(|| spec.unwrap_or("slb.s1.small"));
        calls.push(
            of("ModifyLoadBalancerInstanceChargeType")
                .field("InstanceChargeType", kind)
                .opt("LoadBalancerSpec", spec),
        );
    } else if charged == "PayBySpec"
        && let Some(spec) = differs("spec", found.text("LoadBalancerSpec"))
    {
        calls.push(of("ModifyLoadBalancerInstanceSpec").field("LoadBalancerSpec", spec));
    }
    let traffic = match found.text("InternetChargeTypeAlias") {
        "" => found.text("InternetChargeType"),
        alias => alias,
    };
    let by_bandwidth = text(service, "charge-type").unwrap_or(traffic) == "paybybandwidth";
    let bandwidth = differs("bandwidth", &found.seen["Bandwidth"].to_string()).filter(|_| by_bandwidth);
    if differs("charge-type", traffic).is_some() || bandwidth.is_some() {
        let call = of("ModifyLoadBalancerInternetSpec").opt("InternetChargeType", text(service, "charge-type"));
        calls.push(call.opt("Bandwidth", text(service, "bandwidth").filter(|_| by_bandwidth)));
    }
    calls.extend(differs("delete-protection", found.text("DeleteProtection")).map(|value| protect(found, value)));
    if let Some(value) = differs("modification-protection", found.text("ModificationProtectionStatus")) {
        let call = of("SetLoadBalancerModificationProtection").field("ModificationProtectionStatus", value);
        calls.push(call.opt(
            "ModificationProtectionReason",
            (value != "NonProtection").then_some(REASON),
        ));
    }
    Ok(calls)
}

/// Switches the protection from deletion `on` or `off`.
pub fn protect(found: &Found, value: &str) -> Call {
    Call::new(SLB, "SetLoadBalancerDeleteProtection")
        .field("LoadBalancerId", &found.id)
        .field("DeleteProtection", value)
}

fn by_spec(service: &Service) -> bool {
    text(service, "instance-charge-type").is_some_and(|kind| kind.eq_ignore_ascii_case("PayBySpec"))
}

fn is_internal(service: &Service) -> Result<bool, Failure> {
    let mut reader = TABLE.read(service);
    let internal = reader.word("address-type", &[("internet", false), ("intranet", true)]);
    reader.finish().map(|()| internal.unwrap_or_default())
}
