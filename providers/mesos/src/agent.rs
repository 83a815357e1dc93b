//! An agent as the master returns it, and what it means for its Node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::PROVIDER_ID_PREFIX;

/// The instance type of an agent that has no attribute for it.
const INSTANCE_TYPE: &str = "mesos-agent";

/// What is read of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Its id: the id of the master that gave it, `-S` and a number.
    pub id: String,
    /// Its host name; that of its Node, in whatever case.
    pub hostname: String,
    /// `slave(1)@10.0.0.5:5051`.
    pid: String,
    /// Whether it is connected.
    active: bool,
    /// Texts, numbers and ranges, as the operator sets them.
    attributes: BTreeMap<String, Value>,
    /// From Mesos 1.5 on.
    domain: Domain,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Domain {
    fault_domain: FaultDomain,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct FaultDomain {
    region: Named,
    zone: Named,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

impl Agent {
    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` for one without an address.
    pub fn existing(&self) -> Result<Existing, Failure> {
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.id));
        let domain = &self.domain.fault_domain;
        instance.instance_type = self
            .attribute("instance_type")
            .or_else(|| Some(INSTANCE_TYPE.to_owned()));
        instance.zone = value(&domain.zone.name).or_else(|| self.attribute("zone"));
        instance.region = value(&domain.region.name).or_else(|| self.attribute("region"));
        let Some(ip) = address(&self.pid) else {
            let text = format!(
                "the agent {} ({}) has no address in its pid {:?}",
                self.hostname, self.id, self.pid
            );
            return Err(Failure::unavailable(text));
        };
        instance.addresses = vec![
            Address::new(AddressKind::InternalIp, ip.to_string()),
            Address::new(AddressKind::Hostname, &self.hostname),
        ];
        Ok(match self.active {
            true => Existing::Running(instance),
            false => Existing::Stopped(instance),
        })
    }

    fn attribute(&self, name: &str) -> Option<String> {
        value(self.attributes.get(name)?.as_str()?)
    }
}

/// As a label has it; none where nothing is left.
fn value(name: &str) -> Option<String> {
    Some(label_value(name)).filter(|value| !value.is_empty())
}

/// The address in a pid of libprocess.
fn address(pid: &str) -> Option<IpAddr> {
    let (_, place) = pid.rsplit_once('@')?;
    let (host, _) = place.rsplit_once(':')?;
    host.trim_matches(['[', ']']).parse().ok()
}
