//! The network between the machines: a bridge in the hub, which is also the cloud's router.

use anyhow::Result;

use crate::process::call;

/// The hub on the bridge: the machines' default gateway, and where the API server answers.
pub const HUB: &str = "10.99.0.1";

/// The port of the API server.
pub const API_PORT: u16 = 6443;

/// The Service range of the cluster, and the address of the Service `kubernetes` in it.
pub const SERVICES: &str = "10.96.0.0/16";

/// See [`SERVICES`].
pub const KUBERNETES_SERVICE: &str = "10.96.0.1";

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
    // Of this network namespace only.
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(Into::into)
}

/// The address of the machine with this number.
pub fn address(number: u8) -> String {
    format!("10.99.0.{}", 10 + u16::from(number))
}

/// Plugs a machine, whose first process this is, into the bridge.
pub fn attach(number: u8, pid: u32) -> Result<()> {
    let (port, address) = (format!("v{number}"), address(number));
    for line in [
        format!("ip link add {port} type veth peer name eth0 netns {pid}"),
        format!("ip link set {port} master br0 up"),
        format!("nsenter -t {pid} -n ip addr add {address}/24 dev eth0"),
        format!("nsenter -t {pid} -n ip link set eth0 up"),
        format!("nsenter -t {pid} -n ip route add default via {HUB}"),
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
