//! The words of the contract under their Rust names, with the helpers that make them pleasant to build.
//!
//! The types themselves are generated from `wit/v0.1`; what each field means is written there and shown here.

use std::net::IpAddr;
use std::time::Duration;

use crate::bindings;
use crate::failure::millis;

pub use bindings::imports::cloudwit::provider::cluster::Node as ClusterNode;
pub use bindings::imports::cloudwit::provider::common::{
    Address, AddressKind, Evidence, Failure, FailureKind, Instance, NodeRef, Pair, Presence,
};
pub use bindings::imports::cloudwit::provider::config::ClusterInfo;
pub use bindings::imports::cloudwit::provider::events::Kind as EventKind;
pub use bindings::imports::cloudwit::provider::services::{
    Endpoint, Ingress, IpFamily, IpMode, PortStatus, Protocol, Service, ServicePort, TrafficPolicy,
};
pub use bindings::info::exports::cloudwit::provider::info::{
    ClusterView, ClusterWish, Description, HttpWish, Problem, SecretUse, SecretWish, Severity,
};
pub use bindings::load_balancers::exports::cloudwit::provider::load_balancers::{
    AnnotationChange, Balancer, RemainingWork, Target, TargetUpdate,
};
pub use bindings::routes::exports::cloudwit::provider::routes::{
    NewRoute, Outcome as RouteOutcome, Route, Tokens as RouteTokens,
};

impl Pair {
    /// A key and its value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
        }
    }
}

impl Address {
    /// An address of this kind.
    pub fn new(kind: AddressKind, value: impl Into<String>) -> Self {
        Self {
            kind,
            value: value.into(),
        }
    }
}

impl NodeRef {
    /// A Node of this name of which nothing else is known, as it joins.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider_id: None,
            system_uuid: None,
            addresses: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// The same Node with this provider id.
    pub fn with_provider_id(mut self, provider_id: impl Into<String>) -> Self {
        self.provider_id = Some(provider_id.into());
        self
    }
}

impl Instance {
    /// A machine with this provider id of which nothing else is known yet.
    pub fn new(provider_id: impl Into<String>) -> Self {
        Self {
            provider_id: provider_id.into(),
            instance_type: None,
            zone: None,
            region: None,
            addresses: Vec::new(),
            labels: Vec::new(),
            extra: Vec::new(),
        }
    }
}

impl Service {
    /// A Service with this name and uid and nothing else; a start for tests.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
            annotations: Vec::new(),
            labels: Vec::new(),
            ports: Vec::new(),
            load_balancer_ip: None,
            source_ranges: Vec::new(),
            traffic_policy: TrafficPolicy::Cluster,
            session_affinity_seconds: None,
            health_check_node_port: None,
            ip_families: Vec::new(),
            external_ips: Vec::new(),
            ingress: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// `spec.loadBalancerClass`.
    pub fn class(&self) -> Option<&str> {
        let class = self.extra.iter().find(|pair| pair.key == "load-balancer-class");
        class.map(|pair| pair.value.as_str())
    }

    /// The address of `spec.loadBalancerIP`; none where it is empty.
    pub fn fixed_ip(&self) -> Option<&str> {
        self.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty())
    }

    /// Whether an IPv4 address will do: it names this family among others, or none.
    pub fn takes_ipv4(&self) -> bool {
        self.ip_families.is_empty() || self.ip_families.contains(&IpFamily::Ipv4)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations
            .iter()
            .find(|pair| pair.key == key)
            .map(|pair| pair.value.as_str())
    }
}

impl TargetUpdate {
    /// The token that this update continues with; none where it is the first.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }
}

impl Ingress {
    /// An ingress point at this IP address, with the API server's default mode.
    pub fn ip(address: impl Into<String>) -> Self {
        Self {
            endpoint: Endpoint::Ip((address.into(), None)),
            ports: Vec::new(),
        }
    }

    /// The same where connections begin with the PROXY protocol (`proxied`), and must not be cut short inside the cluster.
    #[must_use]
    pub fn proxied(mut self, proxied: bool) -> Self {
        if let Endpoint::Ip((_, mode)) = &mut self.endpoint {
            *mode = proxied.then_some(IpMode::Proxy);
        }
        self
    }

    /// An ingress point at this host name.
    pub fn hostname(name: impl Into<String>) -> Self {
        Self {
            endpoint: Endpoint::Hostname(name.into()),
            ports: Vec::new(),
        }
    }
}

impl Balancer {
    /// A load balancer reached at these points, without annotation changes.
    pub fn at(ingress: Vec<Ingress>) -> Self {
        Self {
            ingress,
            annotations: Vec::new(),
            remaining: None,
        }
    }

    /// For an answer of `ensure`: the load balancer works, and this continues in the cloud. `ensure` is called again after the pause, with the token.
    #[must_use]
    pub fn remaining(self, after: Duration, token: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            remaining: Some(RemainingWork {
                token: token.into(),
                message: message.into(),
                retry_after: Some(millis(after)),
            }),
            ..self
        }
    }

    /// The same for what ended in this failure: a `pending` one continues in the cloud while the load balancer works.
    ///
    /// # Errors
    /// The failure itself, if it is another one.
    pub fn despite(self, failure: Failure) -> Result<Self, Failure> {
        let FailureKind::Pending(token) = failure.kind else {
            return Err(failure);
        };
        Ok(Self {
            remaining: Some(RemainingWork {
                token,
                message: failure.message,
                retry_after: failure.retry_after,
            }),
            ..self
        })
    }
}

impl RouteTokens {
    /// Continues nothing.
    pub fn none() -> Self {
        Self {
            create: Vec::new(),
            delete: Vec::new(),
        }
    }
}

impl AnnotationChange {
    /// Sets an annotation.
    pub fn set(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
        }
    }

    /// Removes an annotation.
    pub fn remove(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: None,
        }
    }
}

impl Problem {
    /// A mistake at this key of the configuration.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            at: at.into(),
            message: message.into(),
        }
    }

    /// Something at this key that the operator should see, and that does no harm.
    pub fn warning(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::new(at, message)
        }
    }
}

impl Description {
    /// A provider of this name and version that requests nothing yet. For the version, `env!("CARGO_PKG_VERSION")` is usual.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            provider_id_prefixes: Vec::new(),
            http: Vec::new(),
            secrets: Vec::new(),
            cluster: Vec::new(),
            lookup_batch: None,
            extra: Vec::new(),
        }
    }

    /// Adds a prefix of the provider ids it gives out, such as `sim://`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.provider_id_prefixes.push(prefix.into());
        self
    }

    /// Requests a grant for a destination.
    pub fn http(mut self, wish: impl IntoIterator<Item = HttpWish>) -> Self {
        self.http.extend(wish);
        self
    }

    /// Requests grants for secrets.
    pub fn secret(mut self, wish: impl IntoIterator<Item = SecretWish>) -> Self {
        self.secrets.extend(wish);
        self
    }

    /// Requests a grant for a view of the cluster, which may be `optional`.
    pub fn view(mut self, view: ClusterView, reason: impl Into<String>, optional: bool) -> Self {
        self.cluster.push(ClusterWish {
            view,
            reason: reason.into(),
            optional,
        });
        self
    }

    /// Finalizers that another controller of this cloud leaves on Services: they go when the load balancer is gone. At most 8, none of Kubernetes' own.
    pub fn service_finalizers(mut self, names: &[&str]) -> Self {
        self.extra.push(Pair {
            key: "service-finalizers".to_owned(),
            value: names.join(","),
        });
        self
    }

    /// The label by which another controller of this cloud notes on Nodes which tags their machines have: `k8s.io/cloud-provider-NAME`.
    pub fn tagging_label(mut self, label: &str) -> Self {
        self.extra.push(Pair {
            key: "tagging-label".to_owned(),
            value: label.to_owned(),
        });
        self
    }

    /// Interfaces that the component exports and that this configuration switches off, by their names in the contract (`load-balancers`): no controller
    /// runs for them, as if they were not exported. At most 16.
    pub fn disabled_interfaces(mut self, names: &[&str]) -> Self {
        if !names.is_empty() {
            self.extra.push(Pair {
                key: "disabled-interfaces".to_owned(),
                value: names.join(","),
            });
        }
        self
    }

    /// The largest number of Nodes in one look-up; 1,000 at most.
    pub fn lookup_batch(mut self, nodes: u32) -> Self {
        self.lookup_batch = Some(nodes);
        self
    }
}

impl SecretWish {
    /// The grant request for this secret with these uses.
    pub fn new(name: impl Into<String>, uses: &[SecretUse], reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reason: reason.into(),
            uses: uses.to_vec(),
            hosts: Vec::new(),
            optional: false,
        }
    }

    /// The same, sent to these destinations only.
    pub fn only_to<'a>(mut self, wishes: impl IntoIterator<Item = &'a HttpWish>) -> Self {
        self.hosts.extend(wishes.into_iter().map(HttpWish::binding));
        self
    }

    /// The same for a secret that the provider works without.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}

impl IntoIterator for SecretWish {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl HttpWish {
    /// The grant request for the host of this URL with these methods; none when it is no `http` or `https` URL.
    pub fn for_url(url: &str, methods: &[&str], reason: impl Into<String>) -> Option<Self> {
        let parts = crate::url::split_url(url)?;
        let (host, port) = split_port(parts.authority);
        Some(Self {
            scheme: parts.scheme.into(),
            host: host.into(),
            port,
            methods: methods.iter().map(|method| (*method).into()).collect(),
            reason: reason.into(),
        })
    }

    /// `host`, or `host:port` where it has one of its own.
    pub fn binding(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }
}

/// Takes `host:port` apart; `[::1]:80` gives `::1` and 80.
fn split_port(authority: &str) -> (&str, Option<u16>) {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']').unwrap_or((rest, ""));
        return (host, port.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (authority, None),
    }
}

/// Takes a provider id of the form `scheme://rest` apart: the rest, if the id starts with this prefix and has one.
///
/// ```
/// # use cloudwit_guest_sdk::types::id_after;
/// assert_eq!(id_after("sim://", "sim://vm-7"), Some("vm-7"));
/// assert_eq!(id_after("sim://", "aws:///z/i-1"), None);
/// ```
pub fn id_after<'a>(prefix: &str, provider_id: &'a str) -> Option<&'a str> {
    provider_id.strip_prefix(prefix).filter(|rest| !rest.is_empty())
}

/// Whether it can be an id that a cloud gives, for use in paths and queries: letters, digits and dashes.
///
/// ```
/// # use cloudwit_guest_sdk::types::is_plain_id;
/// assert!(is_plain_id("i-bp67acfmxazb4p") && !is_plain_id("") && !is_plain_id("a/b"));
/// ```
pub fn is_plain_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// An IP address as the cloud wrote it; none when the text is none, which would make the answer about its machine invalid.
///
/// ```
/// # use cloudwit_guest_sdk::{AddressKind, types::ip_address};
/// assert_eq!(ip_address(AddressKind::InternalIp, "10.0.0.1").unwrap().value, "10.0.0.1");
/// assert_eq!(ip_address(AddressKind::InternalIp, "10.0.0.1/24"), None);
/// ```
pub fn ip_address(kind: AddressKind, text: &str) -> Option<Address> {
    text.parse::<IpAddr>().ok().map(|ip| Address::new(kind, ip.to_string()))
}
