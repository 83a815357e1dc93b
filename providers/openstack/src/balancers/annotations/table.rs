//! The annotations of a Service: upstream's, and the table in README.md is printed from this one.

use cloudwit_guest_sdk::annotations::{Annotation, Table};

/// The load balancer's id, written back; or by hand, the load balancer to share.
pub const BALANCER_ID: &str = "load-balancer-id";
/// The load balancer's address, written back.
pub const BALANCER_ADDRESS: &str = "load-balancer-address";
/// Whether there is no floating IP.
pub(super) const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// All annotations.
pub const TABLE: Table = Table::new(
    "loadbalancer.openstack.org/",
    &[
        Annotation::new(INTERNAL, "", "`true`: no floating IP. Default: config `internal-lb`"),
        Annotation::new(
            "class",
            "",
            "the `[LoadBalancerClass]` to take networks and subnets from",
        ),
        Annotation::new(
            "floating-network-id",
            "",
            "network of the floating IP. Default: config, else the first external network with an IPv4 subnet",
        ),
        Annotation::new(
            "floating-subnet",
            "",
            "subnets to try for the floating IP: a name, a glob, or `~` and a regular expression; `!` negates",
        ),
        Annotation::new("floating-subnet-id", "", "subnet of the floating IP"),
        Annotation::new(
            "floating-subnet-tags",
            "",
            "subnets to try: with one of these tags (`a,b`), with all (`&a,b`); `!` negates",
        ),
        Annotation::new(
            "keep-floatingip",
            "false",
            "`true`: the floating IP outlives the Service",
        ),
        Annotation::new("network-id", "", "network of the virtual IP. Default: config"),
        Annotation::new(
            "subnet-id",
            "",
            "subnet of the virtual IP. Default: config; without a network too, that of the first Node",
        ),
        Annotation::new(
            "member-subnet-id",
            "",
            "subnet of the members. Default: class, config, else that of the virtual IP",
        ),
        Annotation::new("port-id", "", "existing port for the virtual IP"),
        Annotation::new(
            "connection-limit",
            "-1",
            "connections at a time for each port; `-1` for no limit",
        ),
        Annotation::new(
            "proxy-protocol",
            "false",
            "`true` or `v1`, `v2`: members get the PROXY protocol (TCP ports; not with OVN)",
        ),
        Annotation::new(
            "x-forwarded-for",
            "false",
            "`true`: TCP ports speak HTTP and add `X-Forwarded-For`; excludes proxy-protocol",
        ),
        Annotation::new(
            "lb-method",
            "",
            "`ROUND_ROBIN`, `LEAST_CONNECTIONS`, `SOURCE_IP` or `SOURCE_IP_PORT`. Default: config",
        ),
        Annotation::new(
            "timeout-client-data",
            "50000",
            "milliseconds without data from the client",
        ),
        Annotation::new("timeout-member-connect", "5000", "milliseconds to connect to a member"),
        Annotation::new(
            "timeout-member-data",
            "50000",
            "milliseconds without data from the member",
        ),
        Annotation::new(
            "timeout-tcp-inspect",
            "0",
            "milliseconds to wait for more TCP content to inspect",
        ),
        Annotation::new(
            "enable-health-monitor",
            "",
            "whether members are checked. Default: config `create-monitor`",
        ),
        Annotation::new(
            "health-monitor-delay",
            "",
            "seconds between checks. Default: config `monitor-delay`",
        ),
        Annotation::new(
            "health-monitor-timeout",
            "",
            "seconds until a check fails. Default: config `monitor-timeout`",
        ),
        Annotation::new(
            "health-monitor-max-retries",
            "",
            "good checks until a member is used, 1 to 10. Default: config",
        ),
        Annotation::new(
            "health-monitor-max-retries-down",
            "",
            "bad checks until a member is not used, 1 to 10. Default: config",
        ),
        Annotation::new("flavor-id", "", "Octavia's flavor, when it is made. Default: config"),
        Annotation::new(
            "availability-zone",
            "",
            "Octavia's availability zone, when it is made. Default: config",
        ),
        Annotation::new(
            "default-tls-container-ref",
            "",
            "URL of a Barbican container or secret: TCP ports end TLS. Default: config",
        ),
        Annotation::new("hostname", "", "published instead of the address"),
        Annotation::new(
            "node-selector",
            "",
            "labels of the Nodes that become members: `key=value,key`. Default: config",
        ),
        Annotation::new(
            BALANCER_ID,
            "",
            "written back; set by hand, the load balancer to share with its owner",
        ),
        Annotation::new(BALANCER_ADDRESS, "", "written back"),
    ],
);
