//! The network between the machines: a bridge in the hub, which is also the cloud's router, and a client on its other side.

use anyhow::{Context, Result};

use crate::process::call;

/// The hub on the bridge: the machines' default gateway, and where the API server answers.
pub const HUB: &str = "10.99.0.1";

/// The port of the API server.
pub const API_PORT: u16 = 6443;

/// The Service range of the cluster, and the address of the Service `kubernetes` in it.
pub const SERVICES: &str = "10.96.0.0/16";

/// See [`SERVICES`].
pub const KUBERNETES_SERVICE: &str = "10.96.0.1";

/// The client outside of the cloud, and the hub on its side. A network for documentation (RFC 5737).
pub const CLIENT: &str = "192.0.2.10";

/// See [`CLIENT`].
const CLIENTS_GATEWAY: &str = "192.0.2.1";

/// How far machines are numbered from.
const FIRST: u8 = 10;

/// Makes the bridge. Called in the hub.
pub fn prepare() -> Result<()> {
    for line in [
        "ip link set lo up",
        "ip link add br0 type bridge",
        &format!("ip addr add {HUB}/24 dev br0"),
        "ip link set br0 up",
    ] {
        call(line)?;
    }
    // All of this network namespace only. Machines are on one network and would be told to send past the router, routes or not.
    for (setting, value) in [
        ("ip_forward", "1"),
        ("conf/all/send_redirects", "0"),
        ("conf/br0/send_redirects", "0"),
    ] {
        let file = format!("/proc/sys/net/ipv4/{setting}");
        std::fs::write(&file, value).with_context(|| format!("writing {file}"))?;
    }
    Ok(())
}

/// The address of the machine with this number.
pub fn address(number: u8) -> String {
    format!("10.99.0.{}", u16::from(FIRST) + u16::from(number))
}

/// The number of the machine with this address.
pub fn number(address: &str) -> Option<u8> {
    address.strip_prefix("10.99.0.")?.parse::<u8>().ok()?.checked_sub(FIRST)
}

/// Plugs a machine, whose first process this is, into the bridge.
pub fn attach(number: u8, pid: u32) -> Result<()> {
    let port = port(number);
    call(&format!("ip link add {port} type veth peer name eth0 netns {pid}"))?;
    call(&format!("ip link set {port} master br0 up"))?;
    set_up(pid, &address(number), HUB)
}

/// Cuts a machine off from everything else, or connects it again.
pub fn connect(number: u8, connected: bool) -> Result<()> {
    let state = if connected { "up" } else { "down" };
    call(&format!("ip link set {} {state}", port(number)))
}

/// The name of a machine's port of the bridge.
fn port(number: u8) -> String {
    format!("v{number}")
}

/// Connects the client, which is this process, to the hub.
pub fn attach_client(pid: u32) -> Result<()> {
    call(&format!("ip link add outside type veth peer name eth0 netns {pid}"))?;
    call(&format!("ip addr add {CLIENTS_GATEWAY}/24 dev outside"))?;
    call("ip link set outside up")?;
    set_up(pid, CLIENT, CLIENTS_GATEWAY)
}

/// Inside the network namespace of that process.
fn set_up(pid: u32, address: &str, gateway: &str) -> Result<()> {
    for line in [
        format!("nsenter -t {pid} -n ip link set lo up"),
        format!("nsenter -t {pid} -n ip addr add {address}/24 dev eth0"),
        format!("nsenter -t {pid} -n ip link set eth0 up"),
        format!("nsenter -t {pid} -n ip route add default via {gateway}"),
    ] {
        call(&line)?;
    }
    Ok(())
}

/// Sends packets for this range to that address.
pub fn add_route(destination: &str, via: &str) -> Result<()> {
    call(&format!("ip route replace {destination} via {via}"))
}

/// Sends packets for this range nowhere any more.
pub fn remove_route(destination: &str) -> Result<()> {
    call(&format!("ip route del {destination}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_numbered_by_their_addresses() {
        assert_eq!(number(&address(3)), Some(3));
        assert_eq!(number("10.99.0.1"), None);
        assert_eq!(number("10.98.0.13"), None);
    }
}
