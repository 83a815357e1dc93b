//! What a Service's annotations request of its load balancer.
//!
//! [`ANNOTATIONS`] names each one with its default; README.md's table is printed from it. The values are read in
//! [`crate::balancers::annotations::settings`].

pub mod settings;
mod values;

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

/// Every annotation that has an effect, as kubernetes/cloud-provider-aws names it (`pkg/providers/v1/aws.go`).
pub const ANNOTATIONS: Table = Table::new(
    "service.beta.kubernetes.io/aws-load-balancer-",
    &[
        Annotation::new(
            "type",
            "",
            "`nlb`: Network Load Balancer; `nlb-ip` and `external` leave the Service to another controller; anything else: Classic Load Balancer, with a Warning unless it is `classic`. Cannot be changed afterwards",
        ),
        Annotation::new(
            "internal",
            "false",
            "anything but `false` and nothing: no address on the Internet. Cannot be changed afterwards",
        ),
        Annotation::new(
            "subnets",
            "",
            "ids or `Name` tags of subnets; default: one of each availability zone, found by tags and route tables. Network: counts at creation only",
        ),
        Annotation::new(
            "security-groups",
            "",
            "ids of security groups that take the place of the managed one. Network: only with `NLBSecurityGroupMode = Managed`",
        ),
        Annotation::new(
            "extra-security-groups",
            "",
            "Classic: ids of security groups beside the managed one",
        ),
        Annotation::new(
            "additional-resource-tags",
            "",
            "`key=value,key=value`: further tags for everything that is made. An entry without key and what follows a second `=` do not count, with a Warning",
        ),
        Annotation::new(
            "target-node-labels",
            "",
            "`key=value,key=value`: only Nodes with all these labels are targets; an empty value asks for the key alone. Needs the grant `cluster: {nodes: true}`",
        ),
        Annotation::new(
            "proxy-protocol",
            "",
            "Classic: `*` sends the PROXY protocol to all ports",
        ),
        Annotation::new(
            "backend-protocol",
            "",
            "how Nodes are spoken to. Classic: `tcp` (default), `ssl`, `http` or `https`; Network: `ssl` for TLS to the Nodes. Only these very words count; anything else is `tcp`, with a Warning, and refused for a Classic one with a certificate",
        ),
        Annotation::new("ssl-cert", "", "ARN of the certificate for the ports of `ssl-ports`"),
        Annotation::new(
            "ssl-ports",
            "*",
            "numbers and names of the ports that speak TLS when there is a certificate",
        ),
        Annotation::new(
            "ssl-negotiation-policy",
            "",
            "name of the cloud's TLS policy; default: the cloud's own",
        ),
        Annotation::new("access-log-enabled", "false", "whether access logs are written"),
        Annotation::new(
            "access-log-emit-interval",
            "60",
            "Classic: minutes between logs, `5` or `60`",
        ),
        Annotation::new(
            "access-log-s3-bucket-name",
            "",
            "bucket for access logs; has to be there when they are enabled",
        ),
        Annotation::new("access-log-s3-bucket-prefix", "", "prefix in that bucket"),
        Annotation::new(
            "connection-draining-enabled",
            "false",
            "Classic: whether connections to a leaving Node may end by themselves",
        ),
        Annotation::new(
            "connection-draining-timeout",
            "300",
            "Classic: seconds they have for it, 1 to 3600",
        ),
        Annotation::new(
            "connection-idle-timeout",
            "60",
            "Classic: seconds without traffic after which a connection ends, 1 to 4000",
        ),
        Annotation::new(
            "cross-zone-load-balancing-enabled",
            "false",
            "whether each zone sends to the Nodes of all zones",
        ),
        Annotation::new(
            "healthcheck-protocol",
            "",
            "Classic: `tcp`, `ssl`, `http` or `https`; Network: `tcp`, `http` or `https`. Default: `tcp`; `http` for `externalTrafficPolicy: Local`",
        ),
        Annotation::new(
            "healthcheck-port",
            "",
            "a number or `traffic-port`. Default: `traffic-port` (Classic: the first port's); `healthCheckNodePort` for `externalTrafficPolicy: Local`",
        ),
        Annotation::new(
            "healthcheck-path",
            "",
            "path for `http` and `https`. Default: `/`; `/healthz` for `externalTrafficPolicy: Local`",
        ),
        Annotation::new(
            "healthcheck-healthy-threshold",
            "",
            "2 to 10. Default: Classic 2, Network 3 (2 for `Local`)",
        ),
        Annotation::new(
            "healthcheck-unhealthy-threshold",
            "",
            "2 to 10. Default: Classic 6, Network 3 (2 for `Local`)",
        ),
        Annotation::new(
            "healthcheck-timeout",
            "",
            "seconds, less than the interval. Default: Classic 5, Network the cloud's own (10; 6 for `http`)",
        ),
        Annotation::new(
            "healthcheck-interval",
            "",
            "seconds, 5 to 300. Default: Classic 10, Network 30 (10 for `Local`)",
        ),
        Annotation::new(
            "eip-allocations",
            "",
            "Network: allocation ids of Elastic IPs, one for each subnet. Counts at creation only",
        ),
        Annotation::new(
            "private-ipv4-addresses",
            "",
            "Network: private addresses, one for each subnet. Counts at creation only",
        ),
        Annotation::new(
            "target-group-attributes",
            "",
            "Network: `preserve_client_ip.enabled` and `proxy_protocol_v2.enabled`, each `=true` or `=false`",
        ),
    ],
);

/// Which load balancer a Service requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Classic Load Balancer.
    Classic,
    /// Network Load Balancer.
    Network,
    /// One of another controller's.
    Elsewhere,
}

impl Kind {
    /// The annotation's value. Only upstream's exact values count, and everything else means Classic (`isNLB` and `isLBExternal` in
    /// kubernetes/cloud-provider-aws): a Service that was written for upstream keeps its load balancer.
    pub fn of(service: &Service) -> Self {
        match service.annotation(&ANNOTATIONS.key("type")) {
            Some("nlb") => Self::Network,
            Some("nlb-ip" | "external") => Self::Elsewhere,
            _ => Self::Classic,
        }
    }

    /// The kind whose load balancer may have the same name.
    pub fn other(self) -> Self {
        match self {
            Self::Classic => Self::Network,
            _ => Self::Classic,
        }
    }
}

#[cfg(test)]
mod tests;
