//! Length limits of the lists and texts of an answer.
//!
//! The numbers are part of the contract: `wit/v0.1` names each of them where it applies.
//!
//! What is over a limit is not used: a machine's data costs the answer about its Node, a route's that route, a load balancer's that call; texts
//! for people are cut. So what a guest says about one object is at most some 64 KiB, and no more is walked without a pause (`walk`).

/// Addresses of one machine. A machine of EC2 has up to 15 interfaces of 50 addresses each, all of which upstream lists.
pub const ADDRESSES: usize = 1024;
/// A host name: RFC 1035, without the last dot.
pub const HOST_NAME: usize = 253;
/// A provider id, or the id of a route. Azure's have up to 300 bytes.
pub const ID: usize = 1024;
/// Machine type, zone, region and the value of a label. Values that are longer than Kubernetes allows (63) are left off by the controllers.
pub const LABEL_VALUE: usize = 253;
/// Labels of one machine.
pub const LABELS: usize = 128;
/// Key of a label or annotation: a DNS name, a slash and a name of 63 bytes.
pub const KEY: usize = 317;
/// Entries of `extra`, where later patches of a version put what is new; their keys have [`KEY`] bytes.
pub const EXTRA: usize = 64;
/// Value of such an entry.
pub const EXTRA_VALUE: usize = 4 << 10;
/// All texts about one machine together.
pub const INSTANCE: usize = 64 << 10;
/// Token of a pending answer.
pub const TOKEN: usize = 4 << 10;
/// Message of a failure, reason of a request for a grant, problem of a configuration; longer ones are cut.
pub const MESSAGE: usize = 2 << 10;
/// Places where one load balancer is reached.
pub const INGRESSES: usize = 128;
/// Ports of one of them.
pub const PORTS: usize = 256;
/// Error of a port (`k8s.io/api/core/v1/types.go`, `PortStatus.Error`).
pub const PORT_ERROR: usize = 316;
/// Annotation changes of one answer.
pub const ANNOTATIONS: usize = 64;
/// Value of an annotation; all of a Service together may have 256 KiB.
pub const ANNOTATION_VALUE: usize = 4 << 10;
/// Name of a load balancer. Octavia allows 255.
pub const BALANCER_NAME: usize = 255;
/// Routes in one list: two for each Node of a cluster of 50,000.
pub const ROUTES: usize = 100_000;
/// A range as text; the longest of IPv6 has 43.
pub const CIDR: usize = 64;
/// Next hops of one route.
pub const NEXT_HOPS: usize = 64;
/// Name, version or provider-id prefix of a provider, name of a secret, a cloud's error code: they appear in log lines.
pub const WORD: usize = 128;
/// Provider-id prefixes of a provider.
pub const PREFIXES: usize = 32;
/// Finalizers of Services that a provider takes over.
pub const SERVICE_FINALIZERS: usize = 8;
/// Interfaces that a provider's configuration switches off.
pub const DISABLED_INTERFACES: usize = 16;
/// HTTP destinations, and as many secrets, that a provider requests to be granted.
pub const GRANT_REQUESTS: usize = 64;
/// Ways to use a secret: each of them once.
pub const SECRET_USES: usize = 4;
/// Where a secret is sent: a host name, a colon and a port, with some room for brackets.
pub const SECRET_HOST: usize = 260;
/// Views of the cluster: each of them once.
pub const CLUSTER_VIEWS: usize = 2;
/// Nodes in one call of `instances.lookup`.
pub const LOOKUP_BATCH: u32 = 1000;
/// Services in one call of `load-balancers.update-targets`.
pub const TARGET_UPDATES: usize = cloudwit_model::MAX_TARGET_UPDATES;
/// Nodes in one call about tags.
pub const TAGGED_NODES: usize = cloudwit_model::MAX_TAGGED_NODES;
/// Methods of one destination.
pub const METHODS: usize = 16;
/// A scheme or method.
pub const METHOD: usize = 32;
/// Entries of one call about many volumes, snapshots or their machines.
pub const VOLUME_BATCH: usize = cloudwit_model::volume::MAX_VOLUME_BATCH;
/// Entries of one page of volumes or snapshots.
pub const VOLUME_PAGE: u32 = cloudwit_model::volume::MAX_VOLUME_PAGE;
/// Name of a CSI driver (`k8s.io/kubernetes/pkg/apis/storage/validation`).
pub const DRIVER_NAME: usize = 63;
/// Things that volumes can be, each once.
pub const VOLUME_FEATURES: usize = 5;
/// Topology keys of a driver, and segments of one place.
pub const SEGMENTS: usize = 16;
/// Value of a label of a Node, which places are compared with.
pub const SEGMENT_VALUE: usize = 63;
/// Places of one volume.
pub const TOPOLOGIES: usize = 32;
/// Sources of PersistentVolumes that a provider has labels for: each of them once.
pub const IN_TREE_SOURCES: usize = 5;
/// Clusters of a cloud.
pub const CLUSTERS: usize = cloudwit_model::known_cluster::MAX_CLUSTERS;
/// Name servers of a machine.
pub const NAMESERVERS: usize = cloudwit_model::resolver::MAX_NAMESERVERS;
/// Search domains of a machine.
pub const SEARCHES: usize = cloudwit_model::resolver::MAX_SEARCHES;
/// One of these, with its last dot.
pub const SEARCH: usize = HOST_NAME + 1;
/// A machine's id for attaching volumes (`node_id` in csi.proto).
pub const NODE_ID: usize = 256;
/// Entries of what goes to the plugin on the machine; their keys, and all together, in bytes (csi.proto, "Size Limits").
pub const CONTEXT: usize = 64;
/// Key of such an entry.
pub const CONTEXT_KEY: usize = 128;
/// All of them together.
pub const CONTEXT_BYTES: usize = 4 << 10;
/// Machines that one volume is attached to.
pub const ATTACHMENTS: usize = 128;
/// Hints for finding one device.
pub const DEVICES: usize = 8;
/// One of these.
pub const DEVICE: usize = 256;
/// Problems of a configuration; further ones are counted.
pub const PROBLEMS: usize = 256;
/// Where in the configuration a problem is; longer texts are cut.
pub const PROBLEM_AT: usize = 253;
/// Reason of an Event (`k8s.io/kubernetes/pkg/apis/core/validation/events.go`).
pub const EVENT_REASON: usize = 128;
/// Message of an Event, likewise; longer ones are cut.
pub const EVENT_MESSAGE: usize = 1024;
/// A log line, and its fields together; longer ones are cut.
pub const LOG_LINE: usize = 4 << 10;
/// Fields of a log line; further ones are dropped.
pub const LOG_FIELDS: usize = 64;

#[cfg(test)]
mod tests;
