//! Servers in a test's [project](OpenStackProject), as the scheduler and a hypervisor would have made them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::openstack::project::{OpenStackNetwork, OpenStackProject};
use crate::clouds::openstack::{Service, text};

/// The flavor of servers.
pub const FLAVOR: &str = "m1.small";

/// The availability zone of servers.
pub const ZONE: &str = "nova";

/// A server with a port in a network.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenStackServer {
    /// Its id.
    pub id: String,
    /// Its name, and its Node's.
    pub name: String,
    /// The id of its port.
    pub port: String,
    /// Its address.
    pub address: String,
    network: OpenStackNetwork,
}

impl OpenStackServer {
    /// As it stands in a Node.
    pub fn provider_id(&self) -> String {
        format!("openstack:///{}", self.id)
    }
}

impl OpenStackProject<'_> {
    /// A running server with a port in the network.
    ///
    /// # Errors
    ///
    /// When a service refuses.
    pub async fn server(&self, network: &OpenStackNetwork, name: &str) -> Result<OpenStackServer> {
        self.server_with(network, name, json!({})).await
    }

    /// As [`server`](Self::server), with more: `zone`, `status`, `metadata`, `access_ipv4`, `access_ipv6` and what else
    /// `tests/openstack-cloud/nova_stage.py` knows.
    ///
    /// # Errors
    ///
    /// When a service refuses.
    pub async fn server_with(&self, network: &OpenStackNetwork, name: &str, more: Value) -> Result<OpenStackServer> {
        let made = self.cloud.post(
            Service::Network,
            "/v2.0/ports",
            json!({ "port": {
            "network_id": network.id, "name": name, "project_id": self.id,
        } }),
        );
        let port = made.await?;
        let (id, address) = (text(&port, "/port/id")?, text(&port, "/port/fixed_ips/0/ip_address")?);
        let mut server = json!({ "name": name, "zone": ZONE, "nics": [{
            "port": id, "mac": port["port"]["mac_address"], "network": network.id, "name": network.name, "addresses": [address],
        }] });
        for (key, value) in more.as_object().into_iter().flatten() {
            server[key] = value.clone();
        }
        let zone = text(&server, "/zone")?;
        let made = self.insert(json!([server])).await?;
        let server = text(&made, "/servers/0")?;
        let owner = json!({ "port": { "device_id": server, "device_owner": format!("compute:{zone}") } });
        let path = format!("/v2.0/ports/{id}");
        self.cloud.put(Service::Network, &path, owner).await?;
        Ok(OpenStackServer {
            id: server,
            name: name.to_owned(),
            port: id,
            address,
            network: network.clone(),
        })
    }

    /// So many running servers, `NAME-0` and so on, each with a port in the network, quickly. Addresses count up from the subnet's `10.x.16.0`
    /// on, so the subnet has to be `10.x.0.0/16`.
    ///
    /// # Errors
    ///
    /// When a service refuses.
    pub async fn servers(&self, network: &OpenStackNetwork, name: &str, count: usize) -> Result<Vec<OpenStackServer>> {
        let subnet = self
            .cloud
            .get(Service::Network, &format!("/v2.0/subnets/{}", network.subnet))
            .await?;
        let cidr = text(&subnet, "/subnet/cidr")?;
        let begin = cidr
            .strip_suffix(".0.0/16")
            .with_context(|| format!("{cidr} is no 10.x.0.0/16"))?;
        let first = self.many.fetch_add(count, Ordering::Relaxed);
        let address = |at: usize| format!("{begin}.{}.{}", 16 + (first + at) / 250, 1 + (first + at) % 250);
        let plain: Vec<Value> = (0..count)
            .map(|at| json!({ "name": format!("{name}-{at}"), "zone": ZONE, "address": address(at) }))
            .collect();
        let flavor = json!({ "name": FLAVOR });
        self.cloud.stage(Service::Compute, "flavor", flavor).await?;
        let asked = json!({
            "project": self.id, "user": self.user, "flavor": FLAVOR, "servers": plain,
            "network": network.id, "network_name": network.name,
        });
        let made = self.cloud.stage(Service::Compute, "many-servers", asked).await?;
        let made = made["servers"].as_array().context("no servers were made")?.clone();
        let ports: Vec<Value> = made
            .iter()
            .zip(&plain)
            .map(|(server, plain)| {
                json!({ "id": server["port"], "server": server["id"], "zone": ZONE, "name": plain["name"], "address": plain["address"] })
            })
            .collect();
        let asked = json!({ "project": self.id, "network": network.id, "subnet": network.subnet, "ports": ports });
        self.cloud.stage(Service::Network, "ports", asked).await?;
        let server = |(at, server): (usize, &Value)| {
            Ok(OpenStackServer {
                id: text(server, "/id")?,
                name: format!("{name}-{at}"),
                port: text(server, "/port")?,
                address: address(at),
                network: network.clone(),
            })
        };
        made.iter().enumerate().map(server).collect()
    }

    async fn insert(&self, servers: Value) -> Result<Value> {
        let flavor = json!({ "name": FLAVOR });
        self.cloud.stage(Service::Compute, "flavor", flavor).await?;
        let asked = json!({ "project": self.id, "user": self.user, "flavor": FLAVOR, "servers": servers });
        self.cloud.stage(Service::Compute, "servers", asked).await
    }

    /// Changes a server behind Cloudwit's back: `status` (`SHUTOFF`, `ERROR`, `ACTIVE`), `name`, `metadata`, `access_ipv4`, `access_ipv6`.
    ///
    /// # Errors
    ///
    /// When there is no such server.
    pub async fn change_server(&self, server: &OpenStackServer, mut change: Value) -> Result<()> {
        change["server"] = json!(server.id);
        self.cloud.stage(Service::Compute, "change", change).await.map(drop)
    }

    /// Gives a server a floating address, as Nova shows it and as Neutron has it; gives the address.
    ///
    /// # Errors
    ///
    /// When a service refuses; without a [router](Self::router), above all.
    pub async fn floating_address(&self, server: &OpenStackServer) -> Result<String> {
        let public = &self.cloud.public_network().await?.id;
        let asked = json!({ "floatingip": {
            "floating_network_id": public, "port_id": server.port, "project_id": self.id,
        } });
        let made = self.cloud.post(Service::Network, "/v2.0/floatingips", asked).await?;
        let floating = text(&made, "/floatingip/floating_ip_address")?;
        let port = self
            .cloud
            .get(Service::Network, &format!("/v2.0/ports/{}", server.port))
            .await?;
        let pairs: BTreeMap<&str, &str> = [(server.address.as_str(), floating.as_str())].into();
        let nics = json!([{
            "port": server.port, "mac": port["port"]["mac_address"], "network": server.network.id, "name": server.network.name,
            "addresses": [server.address], "floating": pairs,
        }]);
        self.change_server(server, json!({ "nics": nics })).await?;
        Ok(floating)
    }

    /// Deletes a server and its port.
    ///
    /// # Errors
    ///
    /// When there is no such server.
    pub async fn delete_server(&self, server: &OpenStackServer) -> Result<()> {
        let asked = json!({ "server": server.id });
        self.cloud.stage(Service::Compute, "delete", asked).await?;
        let path = format!("/v2.0/ports/{}", server.port);
        self.cloud.delete(Service::Network, &path).await
    }
}
