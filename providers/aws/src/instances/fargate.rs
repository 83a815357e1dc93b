//! Fargate's machines: there is no instance to request, only the network interface with the address that is in the id.

use std::net::IpAddr;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::error::AwsError;
use crate::api::reading::{text, texts};
use crate::instances::FARGATE;
use crate::instances::by_id::{Answers, Found};
use crate::instances::by_name::MOST_VALUES;
use crate::instances::machine::{Machine, MachineState, NetworkInterface};

impl Aws {
    /// AWS's answer for each of these ids: `fargate-ip-10-0-0-1.region.compute.internal` or `fargate-10.0.0.1`.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn find_fargate(&self, ids: &[&str], answers: &mut Answers) -> Result<(), AwsError> {
        let mut asked: Vec<(&str, String)> = Vec::new();
        for id in ids {
            match address_in(id) {
                Some(address) => asked.push((id, address.to_string())),
                None => {
                    let text = [
                        "the Fargate id ",
                        id,
                        " has no address in it; it looks like fargate-ip-10-0-0-1.internal",
                    ];
                    answers.insert((*id).to_owned(), Found::Failed(Failure::invalid(text.concat())));
                }
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let vpc = self.vpc_id()?;
        for page in asked.chunks(MOST_VALUES) {
            let addresses: Vec<&str> = page.iter().map(|(_, address)| address.as_str()).collect();
            let call = self
                .api
                .ec2("DescribeNetworkInterfaces")
                .filter("attachment.status", &["attached"][..]);
            let call = call
                .filter("vpc-id", &[vpc.as_str()][..])
                .filter("private-ip-address", &addresses[..]);
            let call = call.field("MaxResults", "1000");
            let interfaces = call.pages(&["networkInterfaceSet"], |interface| Ok(Interface::read(interface)))?;
            for (id, address) in page {
                let with: Vec<&Interface> = interfaces.iter().filter(|interface| interface.has(address)).collect();
                answers.insert((*id).to_owned(), decide(id, address, &with));
            }
        }
        Ok(())
    }
}

fn decide(id: &str, address: &str, interfaces: &[&Interface]) -> Found {
    match interfaces {
        [] => Found::Gone,
        [only] => Found::Machine(Box::new(only.machine(id))),
        several => {
            let ids: Vec<&str> = several.iter().map(|interface| interface.id.as_str()).collect();
            let text = format!(
                "several network interfaces have the address {address}: {}",
                ids.join(", ")
            );
            Found::Failed(Failure::invalid(text))
        }
    }
}

/// The address in an id.
fn address_in(id: &str) -> Option<IpAddr> {
    let name = id.strip_prefix(FARGATE)?;
    let text = match name.strip_prefix("ip-") {
        Some(dashed) => dashed.split('.').next().unwrap_or_default().replace('-', "."),
        None => name.into(),
    };
    text.parse().ok()
}

struct Interface {
    id: String,
    zone: String,
    private_dns: String,
    primary: String,
    addresses: Vec<String>,
    ipv6: Option<String>,
}

impl Interface {
    fn read(element: &Element) -> Self {
        Self {
            id: text(element, "networkInterfaceId"),
            zone: text(element, "availabilityZone"),
            private_dns: text(element, "privateDnsName"),
            primary: text(element, "privateIpAddress"),
            addresses: texts(element, &["privateIpAddressesSet", "item", "privateIpAddress"]),
            ipv6: texts(element, &["ipv6AddressesSet", "item", "ipv6Address"])
                .into_iter()
                .next(),
        }
    }

    fn has(&self, address: &str) -> bool {
        self.primary == address || self.addresses.iter().any(|known| known == address)
    }

    /// Its only address of each family counts, as upstream has it, and it has neither a type nor a state of its own.
    fn machine(&self, id: &str) -> Machine {
        Machine {
            id: id.into(),
            state: MachineState::Running,
            kind: String::new(),
            zone: self.zone.clone(),
            private_dns: self.private_dns.clone(),
            interfaces: vec![NetworkInterface {
                device_index: Some(0),
                ipv4: vec![self.primary.clone()],
                ipv6: self.ipv6.clone(),
            }],
            ..Machine::default()
        }
    }
}
