//! Names and tags of what is made for a Service. They are upstream's and MUST NOT CHANGE: what upstream left is found by them. Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

/// The tag whose value is the load balancer's usual name.
pub const OWNER_TAG: &str = "kubernetes.do.not.delete";

/// The tag whose value is the cluster's id.
pub const CLUSTER_TAG: &str = "ack.aliyun.com";

/// The class of Services that have a Network Load Balancer.
const NLB_CLASS: &str = "alibabacloud.com/nlb";

/// Which kind of load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Classic.
    Clb,
    /// Network.
    Nlb,
}

impl Kind {
    /// That of a Service.
    pub fn of(service: &Service) -> Self {
        match service.class() {
            Some(NLB_CLASS) => Self::Nlb,
            _ => Self::Clb,
        }
    }
}

/// Names for one Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    kind: Kind,
    /// The load balancer's usual name, which is in its tag whatever it is called.
    pub balancer: String,
    /// `SERVICE NAMESPACE CLUSTER`, as they end.
    end: String,
    cluster: String,
}

impl Names {
    /// Those for a Service of this cluster.
    pub fn new(service: &Service, cluster: &str) -> Self {
        let kind = Kind::of(service);
        let (name, namespace) = (&service.name, &service.namespace);
        Self {
            kind,
            balancer: default_balancer_name(service),
            end: match kind {
                Kind::Clb => format!("/{name}/{namespace}/{cluster}"),
                Kind::Nlb => format!(".{name}.{namespace}.{cluster}"),
            },
            cluster: cluster.to_owned(),
        }
    }

    /// Of a listener, by its port, and of a server group, by the Nodes' port.
    pub fn of_port(&self, port: u16, protocol: &str) -> String {
        match self.kind {
            Kind::Clb => format!("k8s/{port}{}", self.end),
            Kind::Nlb => format!("k8s.{port}.{protocol}{}", self.end),
        }
    }

    /// Whether a listener or server group of this name is the Service's.
    pub fn is_own(&self, name: &str) -> bool {
        let middle = name.strip_prefix("k8s").and_then(|rest| rest.strip_suffix(&self.end));
        middle.is_some_and(|middle| match self.kind {
            Kind::Clb => middle.starts_with('/') && middle.matches('/').count() == 1,
            Kind::Nlb => middle.starts_with('.') && middle.matches('.').count() == 2,
        })
    }

    /// Tags of what belongs to the Service.
    pub fn tags(&self) -> Vec<(String, String)> {
        vec![
            (OWNER_TAG.into(), self.balancer.clone()),
            (CLUSTER_TAG.into(), self.cluster.clone()),
        ]
    }
}
