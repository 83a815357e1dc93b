//! An instance as EC2 describes it, and the same in the contract's words.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::sort;
use cloudwit_guest_sdk::types::ip_address;
use cloudwit_guest_sdk::xml::Element;

use crate::config::Family;
use crate::instances::FARGATE;
use crate::tags::ec2_tags;

/// Whether an instance runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MachineState {
    /// It runs, or is on the way to or from it: AWS says `shutting-down` of what will be gone and `stopping` of what will be stopped.
    #[default]
    Running,
    /// It is stopped.
    Stopped,
    /// It has ended, and is listed for another hour.
    Terminated,
}

/// An instance.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Tags.
    pub tags: Vec<Pair>,
    /// Whether it drops traffic that is not for itself, which the traffic of Pods is not.
    pub source_dest_check: bool,
}

/// A network interface of an instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkInterface {
    /// Its place on the machine.
    pub device_index: Option<u32>,
    /// All its private IPv4 addresses, in order.
    pub ipv4: Vec<String>,
    /// The first of its IPv6 addresses.
    pub ipv6: Option<String>,
}

/// Reads the instances of one reservation: `reservationSet/item`.
///
/// # Errors
/// `other` when one has no id.
pub fn read_reservation(reservation: &Element) -> Result<Vec<Machine>, Failure> {
    let instances = reservation.child("instancesSet").into_iter();
    instances.flat_map(|set| set.children("item")).map(read).collect()
}

fn read(instance: &Element) -> Result<Machine, Failure> {
    let text = |name| instance.text(name).unwrap_or_default().to_owned();
    let id = text("instanceId");
    if id.is_empty() {
        return Err(Failure::other("AWS described an instance without an id"));
    }
    let state = match instance.at(&["instanceState", "name"]).map(Element::own_text) {
        Some("stopped") => MachineState::Stopped,
        Some("terminated") => MachineState::Terminated,
        _ => MachineState::Running,
    };
    let interfaces = instance.child("networkInterfaceSet").into_iter();
    let mut interfaces: Vec<NetworkInterface> = interfaces
        .flat_map(|set| set.children("item"))
        .filter(|interface| interface.text("status") == Some("in-use"))
        .map(read_interface)
        .collect();
    // Those that are not attached come last.
    sort::sort_by_key(&mut interfaces, |interface| interface.device_index.unwrap_or(u32::MAX));
    Ok(Machine {
        id,
        state,
        kind: text("instanceType"),
        zone: instance
            .at(&["placement", "availabilityZone"])
            .map(|zone| zone.own_text().to_owned())
            .unwrap_or_default(),
        private_dns: text("privateDnsName"),
        public_dns: text("dnsName"),
        public_ip: text("ipAddress"),
        interfaces,
        tags: ec2_tags(instance),
        // Not there for an instance with several interfaces; AWS then has to be told.
        source_dest_check: instance.text("sourceDestCheck") != Some("false"),
    })
}

fn read_interface(interface: &Element) -> NetworkInterface {
    let addresses = |set: &str, name: &str| -> Vec<String> {
        let items = interface.child(set).into_iter().flat_map(|set| set.children("item"));
        let texts = items.filter_map(|item| item.text(name)).filter(|text| !text.is_empty());
        texts.map(Into::into).collect()
    };
    NetworkInterface {
        device_index: interface
            .at(&["attachment", "deviceIndex"])
            .and_then(|index| index.own_text().parse().ok()),
        ipv4: addresses("privateIpAddressesSet", "privateIpAddress"),
        ipv6: addresses("ipv6AddressesSet", "ipv6Address").into_iter().next(),
    }
}

impl Machine {
    /// In the contract's words, without labels. The provider id is upstream's: `aws:///zone/id`.
    ///
    /// # Errors
    /// `other` when AWS calls something an address that is none.
    pub(crate) fn instance(&self, families: &[Family], region: &str) -> Result<Instance, Failure> {
        let mut instance = Instance::new(["aws:///", &self.zone, "/", &self.id].concat());
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
    fn ipv4_addresses(&self, addresses: &mut Vec<Address>) -> Result<(), Failure> {
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
    fn ipv6_addresses(&self, addresses: &mut Vec<Address>) -> Result<(), Failure> {
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

    fn ip(&self, kind: AddressKind, text: &str) -> Result<Address, Failure> {
        ip_address(kind, text).ok_or_else(|| {
            Failure::other(
                [
                    "the instance ",
                    &self.id,
                    " has the address \"",
                    text,
                    "\", which is none",
                ]
                .concat(),
            )
        })
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
