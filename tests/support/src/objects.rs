//! Nodes as kubelet registers them under `--cloud-provider=external`, and Services of type `LoadBalancer`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Service, ServicePort, ServiceSpec, Taint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};

/// The taint that keeps Pods away until a cloud controller has initialised the Node (`k8s.io/cloud-provider/api`,
/// `TaintExternalCloudProvider`).
pub const UNINITIALIZED_TAINT: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// On Nodes whose machines are switched off (`k8s.io/cloud-provider/api`, `TaintNodeShutdown`).
pub const SHUTDOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Where kubelet notes the address of `--node-ip` (`k8s.io/cloud-provider/api`, `AnnotationAlphaProvidedIPAddr`).
pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// A Node as kubelet registers it: tainted, with its host name, Ready, and nothing that only the cloud knows.
#[derive(Debug, Clone)]
pub struct NodeBuilder(Node);

impl NodeBuilder {
    /// A Node of this name.
    pub fn new(name: &str) -> Self {
        let taint = Taint {
            key: UNINITIALIZED_TAINT.into(),
            value: Some("true".into()),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        let labels = [
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
        ];
        let mut node = Node {
            metadata: ObjectMeta {
                name: Some(name.into()),
                labels: Some(map(&labels)),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                taints: Some(vec![taint]),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus::default()),
        };
        status(&mut node).addresses = Some(vec![NodeAddress {
            type_: "Hostname".into(),
            address: name.into(),
        }]);
        Self(node).ready(Some(true))
    }

    /// With `--node-ip`: the annotation, and the address that kubelet reports by itself then.
    pub fn node_ip(mut self, ip: &str) -> Self {
        let annotations = self.0.metadata.annotations.get_or_insert_default();
        annotations.insert(PROVIDED_NODE_IP.into(), ip.into());
        let addresses = status(&mut self.0).addresses.get_or_insert_default();
        addresses.insert(
            0,
            NodeAddress {
                type_: "InternalIP".into(),
                address: ip.into(),
            },
        );
        self
    }

    /// The UUID that the machine's firmware reports.
    pub fn system_uuid(mut self, uuid: &str) -> Self {
        let info = NodeSystemInfo {
            system_uuid: uuid.into(),
            ..NodeSystemInfo::default()
        };
        status(&mut self.0).node_info = Some(info);
        self
    }

    /// With `--provider-id`.
    pub fn provider_id(mut self, id: &str) -> Self {
        self.spec().provider_id = Some(id.into());
        self
    }

    /// The Pod range that kube-controller-manager gave it.
    pub fn pod_cidr(mut self, cidr: &str) -> Self {
        self.spec().pod_cidr = Some(cidr.into());
        self.spec().pod_cidrs = Some(vec![cidr.into()]);
        self
    }

    /// One label more.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .labels
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    /// Without the taint: a Node that has been initialised before.
    pub fn initialised(mut self) -> Self {
        self.spec().taints = None;
        self
    }

    /// The Ready condition: `Some(false)` when kubelet says no, `None` when it is silent (`Unknown`).
    pub fn ready(mut self, ready: Option<bool>) -> Self {
        status(&mut self.0).conditions = Some(vec![ready_condition(ready)]);
        self
    }

    /// The Node.
    pub fn build(self) -> Node {
        self.0
    }

    /// Creates it in the cluster, status included, as kubelet does.
    ///
    /// # Errors
    ///
    /// As the API server answers.
    pub async fn create(self, client: &Client) -> kube::Result<Node> {
        Api::all(client.clone()).create(&PostParams::default(), &self.0).await
    }

    fn spec(&mut self) -> &mut NodeSpec {
        self.0.spec.get_or_insert_default()
    }
}

fn status(node: &mut Node) -> &mut NodeStatus {
    node.status.get_or_insert_default()
}

/// The Ready condition with that status; `None` is `Unknown`, as kube-controller-manager sets it when kubelet is silent.
pub fn ready_condition(ready: Option<bool>) -> NodeCondition {
    let (status, reason) = match ready {
        Some(true) => ("True", "KubeletReady"),
        Some(false) => ("False", "KubeletNotReady"),
        None => ("Unknown", "NodeStatusUnknown"),
    };
    NodeCondition {
        type_: "Ready".into(),
        status: status.into(),
        reason: Some(reason.into()),
        ..NodeCondition::default()
    }
}

/// Whether a Node still waits for its cloud controller.
pub fn is_uninitialised(node: &Node) -> bool {
    let taints = node
        .spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default();
    taints.iter().any(|taint| taint.key == UNINITIALIZED_TAINT)
}

/// Kinds and values of a Node's addresses, such as `InternalIP 10.0.0.1`.
pub fn addresses(node: &Node) -> Vec<String> {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
    let addresses = addresses.into_iter().flatten();
    addresses
        .map(|address| format!("{} {}", address.type_, address.address))
        .collect()
}

/// A Node's provider id.
pub fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

/// Whether a Node is marked as switched off.
pub fn is_shut_down(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref());
    let mut taints = taints.unwrap_or_default().iter();
    taints.any(|taint| taint.key == SHUTDOWN_TAINT)
}

/// A Service of type `LoadBalancer`.
#[derive(Debug, Clone)]
pub struct ServiceBuilder(Service);

impl ServiceBuilder {
    /// A Service of this name in the namespace `default`, with TCP port 80.
    pub fn new(name: &str) -> Self {
        let port = ServicePort {
            name: Some("http".into()),
            port: 80,
            ..ServicePort::default()
        };
        let spec = ServiceSpec {
            type_: Some("LoadBalancer".into()),
            selector: Some(map(&[("app", name)])),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        };
        let metadata = ObjectMeta {
            name: Some(name.into()),
            namespace: Some("default".into()),
            ..ObjectMeta::default()
        };
        Self(Service {
            metadata,
            spec: Some(spec),
            status: None,
        })
    }

    /// In another namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.metadata.namespace = Some(namespace.into());
        self
    }

    /// One annotation more.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    /// Any other change of its specification.
    pub fn spec(mut self, change: impl FnOnce(&mut ServiceSpec)) -> Self {
        change(self.0.spec.get_or_insert_default());
        self
    }

    /// The Service.
    pub fn build(self) -> Service {
        self.0
    }

    /// Creates it in the cluster.
    ///
    /// # Errors
    ///
    /// As the API server answers.
    pub async fn create(self, client: &Client) -> kube::Result<Service> {
        let namespace = self.0.metadata.namespace.clone().unwrap_or_else(|| "default".into());
        Api::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &self.0)
            .await
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
