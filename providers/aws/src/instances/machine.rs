//! An instance as EC2 describes it, and the same in the contract's words.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use cloudwit_guest_sdk::xml::Element;

use crate::api::Call;
use crate::api::error::AwsError;
use crate::api::reading::{text, text_at, texts};
use crate::config::Family;
use crate::instances::FARGATE;
use crate::tags::ec2_tags;

/// Whether an instance runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MachineState {
    /// It runs, or is on the way to or from it: AWS reports `shutting-down` before it is gone and `stopping` before it is stopped.
    #[default]
    Running,
    /// It is stopped.
    Stopped,
    /// It has ended, and is listed for another hour.
    Terminated,
}

/// An instance.
#[derive(Debug, Default, PartialEq)]
pub struct Machine {
    /// `i-…`.
    pub id: String,
    /// Whether it runs.
    pub state: MachineState,
    /// Type, such as `m5.large`; empty for Fargate.
    pub kind: String,
    /// Availability zone.
    pub zone: String,
    /// Private DNS name; may be empty.
    pub private_dns: String,
    /// Public DNS name; may be empty.
    pub public_dns: String,
    /// Public address; may be empty.
    pub public_ip: String,
    /// Network interfaces that are in use.
    pub interfaces: Vec<NetworkInterface>,
    /// Names of its block devices, such as `/dev/xvda`.
    pub devices: Vec<String>,
    /// Tags.
    pub tags: Vec<Pair>,
    /// Whether it drops traffic that is not for itself, which the traffic of Pods is not.
    pub source_dest_check: bool,
}

/// A network interface of an instance.
#[derive(Debug, Default, PartialEq)]
pub struct NetworkInterface {
    /// Its place on the machine.
    pub device_index: Option<u32>,
    /// All its private IPv4 addresses, in order.
    pub ipv4: Vec<String>,
    /// The first of its IPv6 addresses.
    pub ipv6: Option<String>,
}

/// Makes a call of `DescribeInstances`: all instances of all pages.
///
/// # Errors
/// As the call, and `other` when an instance has no id.
pub(crate) fn described(call: Call<'_>) -> Result<Vec<Machine>, AwsError> {
    let mut machines = Vec::new();
    call.pages(&["reservationSet"], |reservation| {
        for instance in reservation.all(&["instancesSet", "item"]) {
            machines.push(read(instance)?);
        }
        Ok(())
    })?;
    Ok(machines)
}

fn read(instance: &Element) -> Result<Machine, Failure> {
    let id = text(instance, "instanceId");
    if id.is_empty() {
        return Err(Failure::other("AWS described an instance without an id"));
    }
    let state = match instance.at(&["instanceState", "name"]).map(Element::own_text) {
        Some("stopped") => MachineState::Stopped,
        Some("terminated") => MachineState::Terminated,
        _ => MachineState::Running,
    };
    let mut interfaces = Vec::new();
    for interface in instance.all(&["networkInterfaceSet", "item"]) {
        if interface.text("status") == Some("in-use") {
            interfaces.push(read_interface(interface));
        }
    }
    // Those that are not attached come last.
    interfaces.sort_by_key(|interface| interface.device_index.unwrap_or(u32::MAX));
    Ok(Machine {
        id,
        state,
        kind: text(instance, "instanceType"),
        zone: text_at(instance, &["placement", "availabilityZone"]),
        private_dns: text(instance, "privateDnsName"),
        public_dns: text(instance, "dnsName"),
        public_ip: text(instance, "ipAddress"),
        interfaces,
        devices: texts(instance, &["blockDeviceMapping", "item", "deviceName"]),
        tags: ec2_tags(instance),
        // Absent for an instance with several interfaces; this counts as on, so that it is switched off.
        source_dest_check: instance.text("sourceDestCheck") != Some("false"),
    })
}

fn read_interface(interface: &Element) -> NetworkInterface {
    NetworkInterface {
        device_index: interface
            .at(&["attachment", "deviceIndex"])
            .and_then(|index| index.own_text().parse().ok()),
        ipv4: texts(interface, &["privateIpAddressesSet", "item", "privateIpAddress"]),
        ipv6: some(&text_at(interface, &["ipv6AddressesSet", "item", "ipv6Address"])),
    }
}

impl Machine {
    /// In the contract's words, without labels. The provider id is upstream's: `aws:///zone/id`.
    ///
    /// # Errors
    /// `other` when AWS calls something an address that is none.
    pub(crate) fn instance(&self, families: &[Family], region: &str) -> Result<Instance, AwsError> {
        let mut instance = Instance::new(format!("aws:///{}/{}", self.zone, self.id));
        instance.instance_type = some(&self.kind);
        instance.zone = some(&self.zone);
        instance.region = some(region);
        for family in families {
            match family {
                Family::Ipv4 => self.ipv4_addresses(&mut instance.addresses)?,
                Family::Ipv6 => self.ipv6_addresses(&mut instance.addresses)?,
            }
        }
        Ok(instance)
    }

    /// Upstream's order (`extractIPv4NodeAddresses`): private addresses by device, public address, private name twice, public name.
    fn ipv4_addresses(&self, addresses: &mut Vec<Address>) -> Result<(), AwsError> {
        for text in self.interfaces.iter().flat_map(|interface| &interface.ipv4) {
            addresses.push(self.ip(AddressKind::InternalIp, text)?);
        }
        if !self.public_ip.is_empty() {
            addresses.push(self.ip(AddressKind::ExternalIp, &self.public_ip)?);
        }
        if !self.private_dns.is_empty() {
            addresses.push(Address::new(AddressKind::InternalDns, self.private_dns.clone()));
            if !self.is_fargate() {
                addresses.push(Address::new(AddressKind::Hostname, self.private_dns.clone()));
            }
        }
        if !self.public_dns.is_empty() {
            addresses.push(Address::new(AddressKind::ExternalDns, self.public_dns.clone()));
        }
        Ok(())
    }

    /// One address of each interface. They are never external, for there is no other kind in IPv6.
    fn ipv6_addresses(&self, addresses: &mut Vec<Address>) -> Result<(), AwsError> {
        for text in self.interfaces.iter().filter_map(|interface| interface.ipv6.as_ref()) {
            addresses.push(self.ip(AddressKind::InternalIp, text)?);
        }
        if self.is_fargate() && !self.private_dns.is_empty() {
            addresses.push(Address::new(AddressKind::InternalDns, self.private_dns.clone()));
        }
        Ok(())
    }

    fn is_fargate(&self) -> bool {
        self.id.starts_with(FARGATE)
    }

    fn ip(&self, kind: AddressKind, text: &str) -> Result<Address, AwsError> {
        ip_address(kind, text).ok_or_else(|| {
            AwsError::other(format!(
                "the instance {} has the address \"{text}\", which is none",
                self.id
            ))
        })
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
